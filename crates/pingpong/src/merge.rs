//! `StringAppendOperator` as a merge operator made of C functions, for engines that offer no ready one.

use crate::library::Bytes;
use libc::{c_char, c_int, c_uchar, c_void, size_t};

/// There is no state to free.
pub unsafe extern "C" fn destroy(_state: *mut c_void) {}

/// The name of RocksDB's own operator, so that each can open what the other wrote.
pub unsafe extern "C" fn name(_state: *mut c_void) -> Bytes {
    c"StringAppendOperator".as_ptr()
}

/// Joins the existing value and the operands.
pub unsafe extern "C" fn full_merge(
    _state: *mut c_void,
    _key: Bytes,
    _key_len: size_t,
    existing: Bytes,
    existing_len: size_t,
    operands: *const Bytes,
    operand_lens: *const size_t,
    count: c_int,
    success: *mut c_uchar,
    len: *mut size_t,
) -> *mut c_char {
    // SAFETY: the contract of the C API: arrays of `count`, null for no existing value.
    unsafe {
        let mut all = Vec::new();
        if !existing.is_null() {
            all.push(std::slice::from_raw_parts(existing.cast::<u8>(), existing_len));
        }
        collect(operands, operand_lens, count, &mut all);
        if all.contains(&UNMERGEABLE) {
            return refuse(success, len);
        }
        hand_out(&join(&all), success, len)
    }
}

/// An operand that the operator refuses.
pub const UNMERGEABLE: &[u8] = b"not to be merged";

/// Joins operands.
pub unsafe extern "C" fn partial_merge(
    _state: *mut c_void,
    _key: Bytes,
    _key_len: size_t,
    operands: *const Bytes,
    operand_lens: *const size_t,
    count: c_int,
    success: *mut c_uchar,
    len: *mut size_t,
) -> *mut c_char {
    // SAFETY: the contract of the C API: arrays of `count`.
    unsafe {
        let mut all = Vec::new();
        collect(operands, operand_lens, count, &mut all);
        if all.contains(&UNMERGEABLE) {
            return refuse(success, len);
        }
        hand_out(&join(&all), success, len)
    }
}

/// Frees what the functions above gave.
pub unsafe extern "C" fn delete_value(_state: *mut c_void, value: Bytes, _len: size_t) {
    // SAFETY: allocated by `hand_out`.
    unsafe { libc::free(value.cast_mut().cast()) }
}

/// Values and operands joined by commas.
pub fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.join(&b',')
}

/// # Safety
/// Arrays of `count` live slices.
unsafe fn collect(operands: *const Bytes, lens: *const size_t, count: c_int, all: &mut Vec<&[u8]>) {
    for i in 0..count.max(0) as usize {
        // SAFETY: the caller's promise.
        unsafe {
            let (bytes, len) = (*operands.add(i), *lens.add(i));
            all.push(if len == 0 { &[] } else { std::slice::from_raw_parts(bytes.cast::<u8>(), len) });
        }
    }
}

/// Says that nothing can be merged. RocksDB copies `len` bytes all the same, and has not set it.
///
/// # Safety
/// `success` and `len` can be written.
unsafe fn refuse(success: *mut c_uchar, len: *mut size_t) -> *mut c_char {
    // SAFETY: the caller's promise.
    unsafe {
        *success = 0;
        *len = 0;
    }
    std::ptr::null_mut()
}

/// # Safety
/// `success` and `len` can be written.
unsafe fn hand_out(value: &[u8], success: *mut c_uchar, len: *mut size_t) -> *mut c_char {
    // SAFETY: the caller's promise; `malloc` gives at least as many bytes as are copied.
    unsafe {
        let copy = libc::malloc(value.len().max(1)).cast::<u8>();
        *success = c_uchar::from(!copy.is_null());
        if !copy.is_null() {
            copy.copy_from_nonoverlapping(value.as_ptr(), value.len());
            *len = value.len();
        }
        copy.cast()
    }
}
