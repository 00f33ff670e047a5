//! Reads of several parts show one moment.
//!
//! Writers put one number under all keys of all column families, in one batch; memtables are small, so they are sealed,
//! flushed and compacted meanwhile. All values that one call reads must be one number. Readers make a fixed number of
//! calls of each kind and at least see so many numbers; the writer goes on until all have.

use crate::library::{Bytes, Errptr, Object, c_functions, outcrop_library, reference_libraries};
use libc::{c_char, c_int, c_uchar, c_void, size_t};
use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_create_missing_column_families: fn(Object, c_uchar);
    rocksdb_options_set_write_buffer_size: fn(Object, size_t);
    rocksdb_options_set_level0_file_num_compaction_trigger: fn(Object, c_int);
    rocksdb_options_set_max_open_files: fn(Object, c_int);
    rocksdb_open_column_families: fn(Object, Bytes, c_int, *const Bytes, *const Object, *mut Object, Errptr) -> Object;
    rocksdb_open_as_secondary_column_families: fn(Object, Bytes, Bytes, c_int, *const Bytes, *const Object, *mut Object, Errptr) -> Object;
    rocksdb_try_catch_up_with_primary: fn(Object, Errptr);
    rocksdb_column_family_handle_destroy: fn(Object);
    rocksdb_close: fn(Object);
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_readoptions_create: fn() -> Object;
    rocksdb_readoptions_set_snapshot: fn(Object, Object);
    rocksdb_readoptions_destroy: fn(Object);
    rocksdb_create_snapshot: fn(Object) -> Object;
    rocksdb_release_snapshot: fn(Object, Object);
    rocksdb_writebatch_create: fn() -> Object;
    rocksdb_writebatch_clear: fn(Object);
    rocksdb_writebatch_put_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_delete_range_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_write: fn(Object, Object, Object, Errptr);
    rocksdb_get_cf: fn(Object, Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_multi_get: fn(Object, Object, size_t, *const Bytes, *const size_t, *mut *mut c_char, *mut size_t, *mut *mut c_char);
    rocksdb_multi_get_cf: fn(Object, Object, *const Object, size_t, *const Bytes, *const size_t, *mut *mut c_char, *mut size_t, *mut *mut c_char);
    rocksdb_create_iterators: fn(Object, Object, *mut Object, *mut Object, size_t, Errptr);
    rocksdb_create_iterator_cf: fn(Object, Object, Object) -> Object;
    rocksdb_iter_seek_to_first: fn(Object);
    rocksdb_iter_valid: fn(Object) -> c_uchar;
    rocksdb_iter_next: fn(Object);
    rocksdb_iter_value: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_get_error: fn(Object, Errptr);
    rocksdb_iter_destroy: fn(Object);
    rocksdb_checkpoint_object_create: fn(Object, Errptr) -> Object;
    rocksdb_checkpoint_object_destroy: fn(Object);
    rocksdb_checkpoint_create: fn(Object, Bytes, u64, Errptr);
    rocksdb_free: fn(*mut c_void);
}

const FAMILIES: usize = 4;
const KEYS: usize = 6;
/// Bytes of a value after its number: memtables of the least size are then full after some twenty batches.
const FILLER: usize = 500;

/// An open database.
struct Database<'a> {
    api: &'a Api,
    db: Object,
    families: [Object; FAMILIES],
    read: Object,
}

// SAFETY: objects of the C API are used by several threads at once; others, such as iterators, stay on one.
unsafe impl Sync for Database<'_> {}

fn check(what: &str, error: *mut c_char) {
    // SAFETY: null or a NUL-terminated message.
    assert!(error.is_null(), "{what}: {}", unsafe { CStr::from_ptr(error) }.to_string_lossy());
}

fn key(number: usize) -> [u8; 4] {
    [b'k', b'e', b'y', b'0' + number as u8]
}

fn number(value: &[u8]) -> u64 {
    u64::from_be_bytes(value[..8].try_into().unwrap())
}

impl<'a> Database<'a> {
    /// Opens `path`, as a secondary with its own files in `beside` if that is given.
    fn open(api: &'a Api, path: &Path, beside: Option<&Path>) -> Database<'a> {
        let text = |path: &Path| CString::new(path.to_str().unwrap()).unwrap();
        let names: [CString; FAMILIES] = std::array::from_fn(|i| match i {
            0 => CString::new("default").unwrap(),
            i => CString::new(format!("family{i}")).unwrap(),
        });
        let names: [Bytes; FAMILIES] = std::array::from_fn(|i| names[i].as_ptr());
        let (mut families, mut error) = ([null_mut(); FAMILIES], null_mut());
        // SAFETY: the contract of the C API: live objects, NUL-terminated names, arrays of FAMILIES.
        unsafe {
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_options_set_create_if_missing)(options, 1);
            (api.rocksdb_options_set_create_missing_column_families)(options, 1);
            (api.rocksdb_options_set_write_buffer_size)(options, 64 << 10);
            (api.rocksdb_options_set_level0_file_num_compaction_trigger)(options, 3);
            (api.rocksdb_options_set_max_open_files)(options, -1);
            let (path, options) = (text(path), [options; FAMILIES]);
            let (count, list, handles) = (FAMILIES as c_int, options.as_ptr(), families.as_mut_ptr());
            let db = match beside {
                None => (api.rocksdb_open_column_families)(
                    options[0],
                    path.as_ptr(),
                    count,
                    names.as_ptr(),
                    list,
                    handles,
                    &raw mut error,
                ),
                Some(beside) => (api.rocksdb_open_as_secondary_column_families)(
                    options[0],
                    path.as_ptr(),
                    text(beside).as_ptr(),
                    count,
                    names.as_ptr(),
                    list,
                    handles,
                    &raw mut error,
                ),
            };
            check("open", error);
            Database { api, db, families, read: (api.rocksdb_readoptions_create)() }
        }
    }

    /// One batch: `number` under every key of every column family, for some numbers after a range tombstone over them.
    fn write(&self, (options, batch): (Object, Object), number: u64) {
        let mut value = number.to_be_bytes().to_vec();
        value.resize(8 + FILLER, number as u8);
        let mut error = null_mut();
        // SAFETY: live objects and slices.
        unsafe {
            (self.api.rocksdb_writebatch_clear)(batch);
            for family in self.families {
                if number.is_multiple_of(3) {
                    let (begin, end) = (c"k".as_ptr(), c"l".as_ptr());
                    (self.api.rocksdb_writebatch_delete_range_cf)(batch, family, begin, 1, end, 1);
                }
                for key in (0..KEYS).map(key) {
                    let (key, len) = (key.as_ptr().cast(), key.len());
                    (self.api.rocksdb_writebatch_put_cf)(
                        batch,
                        family,
                        key,
                        len,
                        value.as_ptr().cast(),
                        value.len(),
                    );
                }
            }
            (self.api.rocksdb_write)(self.db, options, batch, &raw mut error);
        }
        check("write", error);
    }

    /// The numbers that a multi-get of all keys of `families` finds.
    fn multi_get(&self, families: &[usize]) -> Vec<u64> {
        let keys: Vec<[u8; 4]> = (0..KEYS).map(key).collect();
        let pairs: Vec<(usize, usize)> =
            (0..KEYS).flat_map(|k| families.iter().map(move |f| (*f, k))).collect();
        let handles: Vec<Object> = pairs.iter().map(|(family, _)| self.families[*family]).collect();
        let pointers: Vec<Bytes> = pairs.iter().map(|(_, k)| keys[*k].as_ptr().cast()).collect();
        let lens = vec![4; pairs.len()];
        let mut values = vec![null_mut(); pairs.len()];
        let (mut found, mut errors) = (vec![0; pairs.len()], values.clone());
        let out = (values.as_mut_ptr(), found.as_mut_ptr(), errors.as_mut_ptr());
        // SAFETY: live objects and arrays of the same length; values are malloc'ed.
        unsafe {
            let (keys, lens) = (pointers.as_ptr(), lens.as_ptr());
            if families == [0] {
                (self.api.rocksdb_multi_get)(
                    self.db,
                    self.read,
                    pairs.len(),
                    keys,
                    lens,
                    out.0,
                    out.1,
                    out.2,
                );
            } else {
                let handles = handles.as_ptr();
                (self.api.rocksdb_multi_get_cf)(
                    self.db,
                    self.read,
                    handles,
                    pairs.len(),
                    keys,
                    lens,
                    out.0,
                    out.1,
                    out.2,
                );
            }
        }
        errors.iter().for_each(|error| check("multi_get", *error));
        values.iter().zip(&found).map(|(value, len)| self.take(*value, *len)).collect()
    }

    /// The number of a value that a call gave; no value is 0.
    fn take(&self, value: *mut c_char, len: usize) -> u64 {
        if value.is_null() {
            return 0;
        }
        // SAFETY: a malloc'ed value of that length, which nobody else frees.
        unsafe {
            let read = number(std::slice::from_raw_parts(value.cast(), len));
            (self.api.rocksdb_free)(value.cast());
            read
        }
    }

    /// All rows of `iterators`, which end here.
    fn rows(&self, iterators: &[Object]) -> Vec<u64> {
        let (mut rows, mut error) = (Vec::new(), null_mut());
        for iter in iterators {
            let before = rows.len();
            // SAFETY: live iterators of this thread.
            unsafe {
                (self.api.rocksdb_iter_seek_to_first)(*iter);
                while (self.api.rocksdb_iter_valid)(*iter) != 0 {
                    let mut len = 0;
                    let value = (self.api.rocksdb_iter_value)(*iter, &raw mut len);
                    rows.push(number(std::slice::from_raw_parts(value.cast(), len)));
                    (self.api.rocksdb_iter_next)(*iter);
                }
                (self.api.rocksdb_iter_get_error)(*iter, &raw mut error);
                (self.api.rocksdb_iter_destroy)(*iter);
            }
            // A column family without rows is one before the first batch.
            rows.resize(before + KEYS, 0);
        }
        check("iterate", error);
        rows
    }

    fn iterators(&self) -> Vec<u64> {
        let (mut families, mut made, mut error) = (self.families, [null_mut(); FAMILIES], null_mut());
        let (handles, iterators) = (families.as_mut_ptr(), made.as_mut_ptr());
        // SAFETY: live objects and arrays of FAMILIES.
        unsafe {
            (self.api.rocksdb_create_iterators)(
                self.db,
                self.read,
                handles,
                iterators,
                FAMILIES,
                &raw mut error,
            )
        };
        check("create_iterators", error);
        self.rows(&made)
    }

    fn iterator(&self) -> Vec<u64> {
        // SAFETY: live objects.
        self.rows(&[unsafe { (self.api.rocksdb_create_iterator_cf)(self.db, self.read, self.families[1]) }])
    }

    /// Gets and an iterator at a snapshot, which must still be there after more was written.
    fn snapshot(&self) -> Vec<u64> {
        let mut found = Vec::new();
        // SAFETY: live objects and slices.
        unsafe {
            let (read, snapshot) =
                ((self.api.rocksdb_readoptions_create)(), (self.api.rocksdb_create_snapshot)(self.db));
            (self.api.rocksdb_readoptions_set_snapshot)(read, snapshot);
            for family in self.families {
                for key in (0..KEYS).map(key) {
                    let (mut len, mut error) = (0, null_mut());
                    let (key, key_len) = (key.as_ptr().cast(), key.len());
                    let (len_out, errptr) = (&raw mut len, &raw mut error);
                    let value =
                        (self.api.rocksdb_get_cf)(self.db, read, family, key, key_len, len_out, errptr);
                    check("get", error);
                    found.push(self.take(value, len));
                }
            }
            let iter = (self.api.rocksdb_create_iterator_cf)(self.db, read, self.families[0]);
            found.extend(self.rows(&[iter]));
            (self.api.rocksdb_readoptions_destroy)(read);
            (self.api.rocksdb_release_snapshot)(self.db, snapshot);
        }
        found
    }

    /// The numbers that a checkpoint holds.
    fn checkpoint(&self, target: &Path) -> Vec<u64> {
        let _ = std::fs::remove_dir_all(target);
        let path = CString::new(target.to_str().unwrap()).unwrap();
        let mut error = null_mut();
        // SAFETY: live objects and a NUL-terminated path.
        unsafe {
            let checkpoint = (self.api.rocksdb_checkpoint_object_create)(self.db, &raw mut error);
            (self.api.rocksdb_checkpoint_create)(checkpoint, path.as_ptr(), 0, &raw mut error);
            (self.api.rocksdb_checkpoint_object_destroy)(checkpoint);
        }
        check("checkpoint", error);
        Database::open(self.api, target, None).multi_get(&[0, 1, 2, 3])
    }

    fn catch_up(&self) {
        let mut error = null_mut();
        // SAFETY: a live secondary.
        unsafe { (self.api.rocksdb_try_catch_up_with_primary)(self.db, &raw mut error) };
        check("catch_up", error);
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        // SAFETY: nobody uses them any more.
        unsafe {
            (self.api.rocksdb_readoptions_destroy)(self.read);
            self.families.iter().for_each(|family| (self.api.rocksdb_column_family_handle_destroy)(*family));
            (self.api.rocksdb_close)(self.db);
        }
    }
}

/// Calls `read` until it was made `calls` times and showed `numbers` different numbers; gives how many calls showed more
/// than one number, and one of them.
fn torn(calls: usize, numbers: usize, mut read: impl FnMut() -> Vec<u64>) -> (usize, Option<Vec<u64>>) {
    let (mut seen, mut made, mut torn) = (BTreeSet::new(), 0, (0, None));
    while made < calls || seen.len() < numbers {
        let found = read();
        made += 1;
        seen.insert(found[0]);
        if found.iter().any(|number| *number != found[0]) {
            torn = (torn.0 + 1, Some(found));
        }
    }
    torn
}

/// One kind of read: its name, how many calls, and of them at least so many of different moments.
type Kind<'a> = (&'static str, usize, usize, Box<dyn FnMut() -> Vec<u64> + Send + 'a>);

/// Kinds of reads that showed two moments; those of a secondary if one is to `follow`.
fn mixed(library: &Path, follow: bool) -> Vec<String> {
    let api = Api::load(library);
    let dir = tempfile::tempdir().unwrap();
    let (primary, beside) = (dir.path().join("db"), dir.path().join("secondary"));
    let (db, ended) = (Database::open(&api, &primary, None), AtomicBool::new(false));
    // SAFETY: no arguments.
    let write = unsafe { ((api.rocksdb_writeoptions_create)(), (api.rocksdb_writebatch_create)()) };
    // Addresses, which threads may take with them.
    let write = (write.0 as usize, write.1 as usize);
    db.write((write.0 as Object, write.1 as Object), 1);
    let secondary = Database::open(&api, &primary, Some(&beside));
    let (db, secondary) = (&db, &secondary);
    let copy = dir.path().join("checkpoint");
    let mut kinds: Vec<Kind<'_>> = vec![
        ("multi_get_cf", 1500, 50, Box::new(|| db.multi_get(&[0, 1, 2, 3]))),
        ("multi_get_cf of one", 800, 50, Box::new(|| db.multi_get(&[2]))),
        ("multi_get", 800, 50, Box::new(|| db.multi_get(&[0]))),
        ("create_iterators", 800, 50, Box::new(|| db.iterators())),
        ("create_iterator", 800, 50, Box::new(|| db.iterator())),
        ("snapshot", 400, 50, Box::new(|| db.snapshot())),
        ("checkpoint", 4, 2, Box::new(|| db.checkpoint(&copy))),
    ];
    let of_secondary: [Kind<'_>; 3] = [
        ("secondary: multi_get_cf", 800, 8, Box::new(|| secondary.multi_get(&[0, 1, 2, 3]))),
        ("secondary: create_iterators", 400, 8, Box::new(|| secondary.iterators())),
        ("secondary: multi_get", 800, 8, Box::new(|| secondary.multi_get(&[0]))),
    ];
    kinds.extend(of_secondary.into_iter().filter(|_| follow));
    let left = AtomicUsize::new(kinds.len());
    std::thread::scope(|scope| {
        let (ended, left) = (&ended, &left);
        scope.spawn(move || {
            for number in 2.. {
                db.write((write.0 as Object, write.1 as Object), number);
                if ended.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        scope.spawn(move || {
            while follow && !ended.load(Ordering::Relaxed) {
                secondary.catch_up();
            }
        });
        let readers: Vec<_> = kinds
            .into_iter()
            .map(|(name, calls, numbers, read)| {
                scope.spawn(move || {
                    /// The last reader ends the writers, also if it panics.
                    struct Done<'a>(&'a AtomicUsize, &'a AtomicBool);
                    impl Drop for Done<'_> {
                        fn drop(&mut self) {
                            if self.0.fetch_sub(1, Ordering::Relaxed) == 1 {
                                self.1.store(true, Ordering::Relaxed);
                            }
                        }
                    }
                    let _done = Done(left, ended);
                    let (torn, example) = torn(calls, numbers, read);
                    example.map(|example| format!("{name}: {torn} calls, such as {example:?}"))
                })
            })
            .collect();
        readers.into_iter().filter_map(|reader| reader.join().unwrap()).collect()
    })
}

#[test]
fn reads_of_several_parts_show_one_moment() {
    assert_eq!(mixed(&outcrop_library(), true), Vec::<String>::new());
    // A test that RocksDB failed would ask for too much. Iterators of several column families are of one moment since
    // version 9, those of secondaries never.
    for (version, path) in reference_libraries().into_iter().filter(|(version, _)| version.starts_with("11."))
    {
        assert_eq!(mixed(&path, false), Vec::<String>::new(), "RocksDB {version}");
    }
}
