//! Resident memory after large values, in a process of its own.

use crate::library::{Bytes, Errptr, Object, c_functions, outcrop_library, reference_libraries};
use libc::{c_char, c_uchar, c_void, size_t};
use std::ffi::{CStr, CString};
use std::path::Path;
use std::process::Command;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_write_buffer_size: fn(Object, size_t);
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_close: fn(Object);
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_readoptions_create: fn() -> Object;
    rocksdb_put: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_get: fn(Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_flush: fn(Object, Object, Errptr);
    rocksdb_free: fn(*mut c_void);
}

/// Names the library to the child.
const LIBRARY: &str = "OUTCROP_MEMORY_LIBRARY";
const VALUE: usize = 100 << 20;
/// Memory of a database beside the values, generously; less than one of them.
const BESIDE: usize = 80 << 20;

/// Resident bytes of this process, without pages of files.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

/// Resident memory once threads in the background have dropped what they had: when it is little, or after `patience`.
fn resident_when_idle(before: usize, patience: Duration) -> usize {
    let begun = Instant::now();
    while resident() > before + BESIDE && begun.elapsed() < patience {
        std::thread::sleep(Duration::from_millis(5));
    }
    resident()
}

/// Two large values, put, flushed and read; what is resident after each step, beside what was before.
fn steps(library: &Path, patience: Duration) -> [usize; 3] {
    let api = Api::load(library);
    let dir = tempfile::tempdir().unwrap();
    let path = CString::new(dir.path().join("db").to_str().unwrap()).unwrap();
    let mut error = null_mut();
    let check = |error: *mut c_char| {
        // SAFETY: null or a NUL-terminated message.
        assert!(error.is_null(), "{}", unsafe { CStr::from_ptr(error) }.to_string_lossy());
    };
    let value = vec![7u8; VALUE];
    // SAFETY: live objects and slices; values are malloc'ed.
    unsafe {
        let options = (api.rocksdb_options_create)();
        (api.rocksdb_options_set_create_if_missing)(options, 1);
        // Room for both: nothing is flushed before it is asked for.
        (api.rocksdb_options_set_write_buffer_size)(options, 1 << 30);
        let db = (api.rocksdb_open)(options, path.as_ptr(), &raw mut error);
        check(error);
        let (write, read) = ((api.rocksdb_writeoptions_create)(), (api.rocksdb_readoptions_create)());
        let before = resident();
        let keys = [c"first", c"other"].map(|key| key.as_ptr());
        for key in keys {
            (api.rocksdb_put)(db, write, key, 5, value.as_ptr().cast(), value.len(), &raw mut error);
            check(error);
        }
        let put = resident();
        (api.rocksdb_flush)(db, (api.rocksdb_flushoptions_create)(), &raw mut error);
        check(error);
        let flushed = resident_when_idle(before, patience);
        for key in keys {
            let mut len = 0;
            let found = (api.rocksdb_get)(db, read, key, 5, &raw mut len, &raw mut error);
            check(error);
            assert_eq!(len, VALUE);
            (api.rocksdb_free)(found.cast());
        }
        let got = resident_when_idle(before, patience);
        (api.rocksdb_close)(db);
        [put, flushed, got].map(|now| now.saturating_sub(before))
    }
}

/// The child: does nothing unless the test below starts it.
#[test]
fn child() {
    if let Ok(library) = std::env::var(LIBRARY) {
        let library = Path::new(&library);
        // RocksDB's allocator decides by itself when it gives memory back, and nothing is asked of it here.
        let patience = if library == outcrop_library() { 600 } else { 0 };
        println!("resident: {:?}", steps(library, Duration::from_secs(patience)));
    }
}

/// The figures that the child reports of `library`.
fn measured(library: &Path) -> [usize; 3] {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "memory::child", "--nocapture"])
        .env(LIBRARY, library)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(child.status.success(), "{text}{}", String::from_utf8_lossy(&child.stderr));
    let numbers = text.split("resident: [").nth(1).unwrap().split(']').next().unwrap();
    let numbers: Vec<usize> = numbers.split(", ").map(|number| number.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

#[test]
fn large_values_leave_no_copies_behind() {
    let [put, flushed, got] = measured(&outcrop_library());
    let all = [put, flushed, got].map(|bytes| bytes >> 20);
    // Both are in the memtable, once each.
    assert!(put <= 2 * VALUE + BESIDE, "MiB after puts, flush, gets: {all:?}");
    assert!(flushed <= BESIDE, "MiB after puts, flush, gets: {all:?}");
    assert!(got <= BESIDE, "MiB after puts, flush, gets: {all:?}");
    println!("MiB after puts, flush, gets: {all:?}");
    for (version, path) in reference_libraries().into_iter().filter(|(version, _)| version.starts_with("11."))
    {
        println!("RocksDB {version}: {:?}", measured(&path).map(|bytes| bytes >> 20));
    }
}
