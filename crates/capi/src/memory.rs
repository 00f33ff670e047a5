//! Passing memory over the boundary: `malloc`ed copies, errors, borrowed slices.

use libc::{c_char, c_void, size_t};
use outcrop::Error;

/// Where a function stores its error message.
pub type Errptr = *mut *mut c_char;

/// A `malloc`ed copy of `bytes`, freed by [`rocksdb_free`].
pub(crate) fn copy_out(bytes: &[u8]) -> *mut c_char {
    // SAFETY: malloc has no preconditions; the copy stays within the allocation.
    unsafe {
        let copy = libc::malloc(bytes.len().max(1)).cast::<u8>();
        if !copy.is_null() {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), copy, bytes.len());
        }
        copy.cast()
    }
}

/// A `malloc`ed, NUL-terminated copy of `text`; bytes after a NUL inside it are lost.
pub(crate) fn copy_out_text(text: &str) -> *mut c_char {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    copy_out(&bytes)
}

/// A `malloc`ed list of `malloc`ed copies of `texts`, freed by [`give_back_texts`].
pub(crate) fn copy_out_texts<T: AsRef<str>>(texts: &[T]) -> *mut *mut c_char {
    // SAFETY: malloc has no preconditions; each entry lies within the allocation.
    unsafe {
        let list = libc::malloc(texts.len().max(1) * size_of::<*mut c_char>()).cast::<*mut c_char>();
        if !list.is_null() {
            for (i, text) in texts.iter().enumerate() {
                list.add(i).write(copy_out_text(text.as_ref()));
            }
        }
        list
    }
}

/// Frees a list of `count` texts; null is no list.
pub(crate) unsafe fn give_back_texts(list: *mut *mut c_char, count: size_t) {
    if list.is_null() {
        return;
    }
    // SAFETY: the caller passes what `copy_out_texts` gave, with its length.
    unsafe {
        (0..count).for_each(|i| libc::free((*list.add(i)).cast()));
        libc::free(list.cast());
    }
}

/// Stores `error` in `*errptr`. Where the caller gave no place for it, it goes to standard error: it is not lost.
pub(crate) unsafe fn set_error(errptr: *mut *mut c_char, error: &Error) {
    if errptr.is_null() {
        return crate::boundary::warn(error);
    }
    // SAFETY: the caller passes a valid `errptr`; it points to null or to memory that this library malloc'ed.
    unsafe {
        if !(*errptr).is_null() {
            libc::free((*errptr).cast());
        }
        *errptr = copy_out_text(&error.to_string());
    }
}

/// Stores the error of `result`, if it is one; gives its value.
pub(crate) unsafe fn report<T>(errptr: *mut *mut c_char, result: outcrop::Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            // SAFETY: as for `set_error`.
            unsafe { set_error(errptr, &error) };
            None
        }
    }
}

/// The bytes at `start`; empty for length 0, whatever the pointer.
pub(crate) unsafe fn slice<'a>(start: *const c_char, len: size_t) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller passes `len` readable bytes that stay unchanged while they are used.
    unsafe { std::slice::from_raw_parts(start.cast(), len) }
}

/// The text of a NUL-terminated string, empty for null; bytes that are not UTF-8 are replaced.
pub(crate) unsafe fn text(start: *const c_char) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: the caller passes a NUL-terminated string.
    unsafe { std::ffi::CStr::from_ptr(start) }.to_string_lossy().into_owned()
}

/// `value` on the heap, owned by C until [`give_back`].
pub(crate) fn hand_out<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// Takes back and drops what [`hand_out`] gave; null is ignored.
pub(crate) unsafe fn give_back<T>(value: *mut T) {
    if !value.is_null() {
        // SAFETY: the caller passes a pointer from `hand_out` that was not given back before.
        drop(unsafe { Box::from_raw(value) });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_free(memory: *mut c_void) {
    boundary!(libc::free(memory))
}
