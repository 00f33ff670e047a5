//! No panic crosses the boundary to C: every exported function stands in `boundary!`, and application code that panics
//! inside of the engine becomes an error, once for each kind of function that can meet one.

use crate::library::error_text;
use libc::{c_char, c_int, c_uchar, c_void, size_t};
use outcrop_capi::*;
use std::cell::Cell;
use std::ffi::CString;
use std::path::Path;
use std::ptr::{null, null_mut};

/// The text between the bracket at `start` and the one that closes it.
fn bracketed(source: &str, start: usize) -> &str {
    let open = source.as_bytes()[start];
    let close = if open == b'(' { b')' } else { b'}' };
    let mut depth = 0;
    for (i, byte) in source.bytes().enumerate().skip(start) {
        depth += i32::from(byte == open) - i32::from(byte == close);
        if depth == 0 {
            return &source[start + 1..i];
        }
    }
    panic!("a bracket is not closed")
}

/// Functions of `source` that are not what they must be; counts all.
fn outside_of_the_boundary(source: &str, count: &mut usize) -> Vec<String> {
    let mut wrong = Vec::new();
    for (at, found) in source.match_indices("extern \"C\" fn ") {
        *count += 1;
        let arguments_at = at + source[at..].find('(').unwrap();
        let name = source[at + found.len()..arguments_at].trim();
        let arguments = bracketed(source, arguments_at);
        let body_at = arguments_at + source[arguments_at..].find('{').unwrap();
        let body = bracketed(source, body_at).trim();
        let place = if arguments.contains("errptr:") { "errptr," } else { "" };
        let stands = body.strip_prefix("boundary!(").is_some_and(|rest| {
            // Nothing before it, and nothing after it.
            let all = bracketed(body, "boundary!".len()).len() + "boundary!()".len() == body.len();
            all && rest.trim_start().trim_start_matches('$').starts_with(place)
        });
        if !stands && !body.is_empty() {
            wrong.push(name.to_string());
        }
    }
    wrong
}

#[test]
fn every_exported_function_stands_in_the_boundary() {
    let (mut wrong, mut count, mut exported) = (Vec::new(), 0, 0);
    let mut dirs = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            exported += source.matches("#[unsafe(no_mangle)]").count();
            let found = outside_of_the_boundary(&source, &mut count);
            wrong.extend(found.into_iter().map(|name| format!("{}: {name}", path.display())));
        }
    }
    assert!(count > 300, "only {count} functions found");
    assert_eq!(count, exported, "every exported function is `extern \"C\" fn`, and the other way round");
    assert!(wrong.is_empty(), "not empty and not in boundary!, or without its errptr: {wrong:#?}");
}

#[test]
fn the_check_sees_what_it_must() {
    let mut count = 0;
    let source = r#"
        extern "C" fn a() {} extern "C" fn b() { f() } extern "C" fn c(errptr: E) { boundary!(f()) }
        extern "C" fn d(errptr: E) -> X { boundary!(errptr, f()) } extern "C" fn e() { boundary!({ f(); }); g() }
        extern "C" fn g() { boundary!(iter, { f() }) } extern "C" fn h() { g(); boundary!(f()) }"#;
    assert_eq!(outside_of_the_boundary(source, &mut count), ["b", "c", "e", "h"]);
    assert_eq!(count, 7);
}

thread_local! {
    /// Whether application code panics on this thread.
    static PANICS: Cell<bool> = const { Cell::new(false) };
}

fn step() {
    if PANICS.get() {
        // A panic without the hook's message.
        std::panic::resume_unwind(Box::new("sprung"));
    }
}

unsafe extern "C-unwind" fn compare(
    _: *mut c_void,
    a: *const c_char,
    a_len: size_t,
    b: *const c_char,
    b_len: size_t,
) -> c_int {
    step();
    // SAFETY: the library passes two keys with their lengths.
    let (a, b) = unsafe {
        (std::slice::from_raw_parts(a.cast::<u8>(), a_len), std::slice::from_raw_parts(b.cast::<u8>(), b_len))
    };
    a.cmp(b) as c_int
}

unsafe extern "C-unwind" fn full_merge(
    _: *mut c_void,
    _: *const c_char,
    _: size_t,
    _: *const c_char,
    _: size_t,
    _: *const *const c_char,
    _: *const size_t,
    _: c_int,
    success: *mut c_uchar,
    len: *mut size_t,
) -> *mut c_char {
    step();
    // SAFETY: the library passes places for the answer, and frees what is given.
    unsafe {
        (*success, *len) = (1, 6);
        libc::strdup(c"merged".as_ptr())
    }
}

unsafe extern "C-unwind" fn partial_merge(
    _: *mut c_void,
    _: *const c_char,
    _: size_t,
    _: *const *const c_char,
    _: *const size_t,
    _: c_int,
    success: *mut c_uchar,
    _: *mut size_t,
) -> *mut c_char {
    // SAFETY: the library passes a place for the answer.
    unsafe { *success = 0 };
    null_mut()
}

unsafe extern "C-unwind" fn keep(
    _: *mut c_void,
    _: c_int,
    _: *const c_char,
    _: size_t,
    _: *const c_char,
    _: size_t,
    _: *mut *mut c_char,
    _: *mut size_t,
    _: *mut c_uchar,
) -> c_uchar {
    // Filters run on threads of the engine.
    std::panic::resume_unwind(Box::new("sprung"));
}

unsafe extern "C-unwind" fn named(_: *mut c_void) -> *const c_char {
    c"test.Trap".as_ptr()
}

unsafe extern "C-unwind" fn put_seen(
    _: *mut c_void,
    _: *const c_char,
    _: size_t,
    _: *const c_char,
    _: size_t,
) {
    step();
}

unsafe extern "C-unwind" fn deleted_seen(_: *mut c_void, _: *const c_char, _: size_t) {}

/// A database whose comparator, and merge operator and filter where wanted, panic.
struct Trapped {
    db: *mut rocksdb_t,
    options: *mut rocksdb_options_t,
    comparator: *mut rocksdb_comparator_t,
    filter: *mut rocksdb_compactionfilter_t,
    read: *mut rocksdb_readoptions_t,
    write: *mut rocksdb_writeoptions_t,
    _dir: tempfile::TempDir,
}

impl Trapped {
    fn open(filtered: bool) -> Trapped {
        let dir = tempfile::tempdir().unwrap();
        let path = CString::new(dir.path().to_str().unwrap()).unwrap();
        let mut error = null_mut();
        // SAFETY: the contract of the C API; `drop` ends what is made.
        unsafe {
            let comparator = rocksdb_comparator_create(null_mut(), None, compare, Some(named));
            let filter = rocksdb_compactionfilter_create(null_mut(), None, keep, Some(named));
            let merge =
                rocksdb_mergeoperator_create(null_mut(), None, full_merge, partial_merge, None, Some(named));
            let options = rocksdb_options_create();
            rocksdb_options_set_create_if_missing(options, settings::Flag(1));
            rocksdb_options_set_comparator(options, comparator);
            rocksdb_options_set_merge_operator(options, merge);
            if filtered {
                rocksdb_options_set_compaction_filter(options, filter);
            }
            let db = rocksdb_open(options, path.as_ptr(), &mut error);
            assert!(error.is_null());
            let (read, write) = (rocksdb_readoptions_create(), rocksdb_writeoptions_create());
            Trapped { db, options, comparator, filter, read, write, _dir: dir }
        }
    }

    fn put(&self, key: &str) -> Option<String> {
        let mut error = null_mut();
        let (key, len) = bytes(key);
        // SAFETY: the contract of the C API.
        unsafe { rocksdb_put(self.db, self.write, key, len, key, len, &mut error) };
        text(error)
    }
}

impl Drop for Trapped {
    fn drop(&mut self) {
        // SAFETY: the contract of the C API.
        unsafe {
            rocksdb_close(self.db);
            rocksdb_options_destroy(self.options);
            rocksdb_comparator_destroy(self.comparator);
            rocksdb_compactionfilter_destroy(self.filter);
            rocksdb_readoptions_destroy(self.read);
            rocksdb_writeoptions_destroy(self.write);
        }
    }
}

fn bytes(text: &str) -> (*const c_char, size_t) {
    (text.as_ptr().cast(), text.len())
}

/// The message, which is freed.
fn text(error: *mut c_char) -> Option<String> {
    // SAFETY: null, or a message of the library.
    unsafe { error_text(error, rocksdb_free) }
}

fn panicking<T>(call: impl FnOnce() -> T) -> T {
    PANICS.set(true);
    let given = call();
    PANICS.set(false);
    given
}

/// Checks that `error` is of the class of a panic and says what panicked and why.
#[track_caller]
fn told(error: *mut c_char, function: &str) {
    let text = text(error).expect("the panic is told");
    assert!(text.starts_with("Operation aborted: "), "{text}");
    assert!(text.contains(&format!("{function} panicked: sprung")), "{text}");
}

#[test]
fn a_comparator_that_panics_in_a_read_is_an_error() {
    let trapped = Trapped::open(false);
    for key in ["a", "b", "c", "d"] {
        assert_eq!(trapped.put(key), None);
    }
    let (db, read) = (trapped.db, trapped.read);
    let (mut error, mut len) = (null_mut(), 7);
    let keys = [c"b".as_ptr(), c"c".as_ptr()];
    let filled = std::ptr::dangling_mut::<c_char>();
    let (mut values, mut lens, mut errors) = ([filled; 2], [1; 2], [filled; 2]);
    let mut found = 0;
    // SAFETY: the contract of the C API.
    unsafe {
        let value = panicking(|| rocksdb_get(db, read, c"b".as_ptr(), 1, &mut len, &mut error));
        assert!(value.is_null());
        told(error, "rocksdb_get");
        error = null_mut();
        let pinned = panicking(|| rocksdb_get_pinned(db, read, c"b".as_ptr(), 1, &mut error));
        assert!(pinned.is_null());
        told(error, "rocksdb_get_pinned");

        let (values, lens, errors) = (values.as_mut_ptr(), lens.as_mut_ptr(), errors.as_mut_ptr());
        panicking(|| {
            rocksdb_multi_get(db, read, 2, keys.as_ptr(), [1; 2].as_ptr(), values, lens, errors);
        });

        let may = panicking(|| {
            rocksdb_key_may_exist(db, read, c"b".as_ptr(), 1, null_mut(), null_mut(), null(), 0, &mut found)
        });
        assert_eq!((may, found), (1, 0), "a key that cannot be looked up may exist");
    }
    assert_eq!(values, [null_mut(); 2]);
    errors.into_iter().for_each(|error| told(error, "rocksdb_multi_get"));
    assert_eq!(trapped.put("e"), None, "the database goes on");
}

#[test]
fn an_iterator_that_panicked_is_invalid_and_says_why() {
    let trapped = Trapped::open(false);
    for key in ["a", "b", "c", "d"] {
        assert_eq!(trapped.put(key), None);
    }
    let mut error = null_mut();
    // SAFETY: the contract of the C API.
    unsafe {
        let iter = rocksdb_create_iterator(trapped.db, trapped.read);
        rocksdb_iter_seek(iter, c"b".as_ptr(), 1);
        assert_eq!(rocksdb_iter_valid(iter), 1);
        panicking(|| rocksdb_iter_seek(iter, c"c".as_ptr(), 1));
        assert_eq!(rocksdb_iter_valid(iter), 0);
        rocksdb_iter_get_error(iter, &mut error);
        told(error, "rocksdb_iter_seek");
        rocksdb_iter_next(iter);
        rocksdb_iter_seek_to_first(iter);
        assert_eq!(rocksdb_iter_valid(iter), 0);
        rocksdb_iter_destroy(iter);
    }
}

#[test]
fn a_write_that_panics_is_refused_and_told() {
    let trapped = Trapped::open(false);
    assert_eq!(trapped.put("a"), None);
    let error = panicking(|| trapped.put("b")).expect("the panic is told");
    assert!(error.starts_with("Operation aborted: ") && error.contains("panicked: sprung"), "{error}");
}

#[test]
fn a_merge_operator_that_panics_is_an_error() {
    let trapped = Trapped::open(false);
    let (mut error, mut len) = (null_mut(), 0);
    // SAFETY: the contract of the C API.
    unsafe {
        rocksdb_merge(trapped.db, trapped.write, c"k".as_ptr(), 1, c"v".as_ptr(), 1, &mut error);
        assert!(error.is_null());
        let value =
            panicking(|| rocksdb_get(trapped.db, trapped.read, c"k".as_ptr(), 1, &mut len, &mut error));
        assert!(value.is_null());
        told(error, "rocksdb_get");
    }
}

#[test]
fn a_filter_that_panics_is_an_error_of_the_next_write_that_waits_for_it() {
    let trapped = Trapped::open(true);
    assert_eq!(trapped.put("a"), None);
    let mut error = null_mut();
    // SAFETY: the contract of the C API.
    unsafe {
        let flush = rocksdb_flushoptions_create();
        rocksdb_flush(trapped.db, flush, &mut error);
        rocksdb_flushoptions_destroy(flush);
        if error.is_null() {
            rocksdb_compact_range(trapped.db, null(), 0, null(), 0);
            assert!(trapped.put("b").is_some_and(|error| error.contains("panicked: sprung")));
        } else {
            assert!(text(error).unwrap().contains("panicked: sprung"));
        }
    }
}

#[test]
fn a_callback_of_a_function_without_errptr_does_not_end_the_process() {
    // SAFETY: the contract of the C API.
    unsafe {
        let batch = rocksdb_writebatch_create();
        rocksdb_writebatch_put(batch, c"k".as_ptr(), 1, c"v".as_ptr(), 1);
        panicking(|| rocksdb_writebatch_iterate(batch, null_mut(), put_seen, deleted_seen));
        assert_eq!(rocksdb_writebatch_count(batch), 1);
        rocksdb_writebatch_destroy(batch);
    }
}
