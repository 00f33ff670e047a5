//! Calling C functions: arguments, errors, and what the library allocated.

use crate::library::{Api, Bytes, Errptr};
use libc::{c_char, size_t};
use std::ffi::{CStr, CString};
use std::ptr::null_mut;

/// The result of a call; the error is the engine's text.
pub type Outcome<T> = Result<T, String>;

/// Calls a function of the table, or fails with its name. Must be used in an unsafe block.
macro_rules! call {
    ($api:expr, $name:ident($($arg:expr),* $(,)?)) => {
        ($api.$name.ok_or_else(|| format!("the library has no {}", stringify!($name)))?)($($arg),*)
    };
}

pub(crate) use call;

/// A slice as the C API takes it.
pub fn parts(bytes: &[u8]) -> (Bytes, size_t) {
    (bytes.as_ptr().cast(), bytes.len())
}

/// A text for the C API.
pub fn c_string(text: &str) -> Outcome<CString> {
    CString::new(text).map_err(|_| format!("{text:?} holds a NUL"))
}

/// Runs a call that may store an error.
pub fn with_error<T>(api: &Api, call: impl FnOnce(Errptr) -> Outcome<T>) -> Outcome<T> {
    let mut error: *mut c_char = null_mut();
    let result = call(&raw mut error);
    match take_error(api, error) {
        Some(text) => Err(text),
        None => result,
    }
}

/// Copies and frees an error's text.
pub fn take_error(api: &Api, error: *mut c_char) -> Option<String> {
    if error.is_null() {
        return None;
    }
    // SAFETY: a NUL-terminated message that the library allocated.
    unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        if let Some(free) = api.rocksdb_free {
            free(error.cast());
        }
        Some(text)
    }
}

/// Copies what a library allocated with `len` bytes, and frees it; null is `None`.
pub fn take_bytes(api: &Api, bytes: *mut c_char, len: size_t) -> Option<Vec<u8>> {
    if bytes.is_null() {
        return None;
    }
    // SAFETY: allocated by the library with `len` readable bytes.
    unsafe {
        let copy = std::slice::from_raw_parts(bytes.cast::<u8>(), len).to_vec();
        if let Some(free) = api.rocksdb_free {
            free(bytes.cast());
        }
        Some(copy)
    }
}
