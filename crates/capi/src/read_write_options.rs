//! Options of single reads, writes, flushes and compactions, and snapshots in them.

use crate::memory::{give_back, hand_out, slice};
use libc::{c_char, c_int, c_uchar, size_t};
use outcrop::{CompactRangeOptions, ReadOptions, Snapshot, WaitForCompactOptions, WriteOptions};
use std::time::Duration;

#[derive(Default)]
pub struct rocksdb_readoptions_t(pub(crate) ReadOptions);
#[derive(Default)]
pub struct rocksdb_writeoptions_t(pub(crate) WriteOptions);
pub struct rocksdb_flushoptions_t {
    pub(crate) wait: bool,
}
#[derive(Default)]
pub struct rocksdb_compactoptions_t(pub(crate) CompactRangeOptions);
#[derive(Default)]
pub struct rocksdb_wait_for_compact_options_t(pub(crate) WaitForCompactOptions);
pub struct rocksdb_snapshot_t(pub(crate) Snapshot);

macro_rules! lifecycle {
    ($($type:ty: $create:ident $destroy:ident $default:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $create() -> *mut $type {
            hand_out($default)
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $destroy(options: *mut $type) {
            // SAFETY: the contract of the C API.
            unsafe { give_back(options) }
        }
    )*};
}

lifecycle! {
    rocksdb_readoptions_t: rocksdb_readoptions_create rocksdb_readoptions_destroy Default::default();
    rocksdb_writeoptions_t: rocksdb_writeoptions_create rocksdb_writeoptions_destroy Default::default();
    rocksdb_flushoptions_t: rocksdb_flushoptions_create rocksdb_flushoptions_destroy
        rocksdb_flushoptions_t { wait: true };
    rocksdb_compactoptions_t: rocksdb_compactoptions_create rocksdb_compactoptions_destroy Default::default();
    rocksdb_wait_for_compact_options_t: rocksdb_wait_for_compact_options_create
        rocksdb_wait_for_compact_options_destroy Default::default();
}

macro_rules! setters {
    ($($name:ident($type:ty, $value:ident: $value_type:ty) |$options:ident| $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(options: *mut $type, $value: $value_type) {
            // SAFETY: the contract of the C API.
            let $options = unsafe { &mut *options };
            $body;
        }
    )*};
}

setters! {
    rocksdb_readoptions_set_fill_cache(rocksdb_readoptions_t, value: c_uchar) |o| o.0.fill_cache = value != 0;
    rocksdb_readoptions_set_readahead_size(rocksdb_readoptions_t, value: size_t)
        |o| o.0.readahead_size = value;
    rocksdb_readoptions_set_snapshot(rocksdb_readoptions_t, value: *const rocksdb_snapshot_t)
        // SAFETY: the contract of the C API: null or a live snapshot.
        |o| o.0.snapshot = unsafe { value.as_ref() }.map(|snapshot| snapshot.0.sequence());
    rocksdb_writeoptions_set_sync(rocksdb_writeoptions_t, value: c_uchar) |o| o.0.sync = value != 0;
    rocksdb_writeoptions_disable_WAL(rocksdb_writeoptions_t, value: c_int) |o| o.0.disable_wal = value != 0;
    rocksdb_writeoptions_set_no_slowdown(rocksdb_writeoptions_t, value: c_uchar)
        |o| o.0.no_slowdown = value != 0;
    rocksdb_flushoptions_set_wait(rocksdb_flushoptions_t, value: c_uchar) |o| o.wait = value != 0;
    rocksdb_wait_for_compact_options_set_abort_on_pause(rocksdb_wait_for_compact_options_t, value: c_uchar)
        |o| o.0.abort_on_pause = value != 0;
    rocksdb_wait_for_compact_options_set_flush(rocksdb_wait_for_compact_options_t, value: c_uchar)
        |o| o.0.flush = value != 0;
    rocksdb_wait_for_compact_options_set_timeout(rocksdb_wait_for_compact_options_t, value: u64)
        |o| o.0.timeout = (value > 0).then(|| Duration::from_micros(value));
}

/// Checksums of blocks are always verified when they are loaded; the call is accepted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_readoptions_set_verify_checksums(
    _options: *mut rocksdb_readoptions_t,
    _value: c_uchar,
) {
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_readoptions_set_iterate_upper_bound(
    options: *mut rocksdb_readoptions_t,
    key: *const c_char,
    len: size_t,
) {
    // SAFETY: the contract of the C API.
    unsafe { (*options).0.iterate_upper_bound = (!key.is_null()).then(|| slice(key, len).to_vec()) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_readoptions_set_iterate_lower_bound(
    options: *mut rocksdb_readoptions_t,
    key: *const c_char,
    len: size_t,
) {
    // SAFETY: the contract of the C API.
    unsafe { (*options).0.iterate_lower_bound = (!key.is_null()).then(|| slice(key, len).to_vec()) };
}
