//! Options that limit a read, a batch or a write, beside RocksDB's: the same calls, the same answers and texts.

use crate::library::{Bytes, Errptr, Lookups, Object, c_functions};
use libc::{c_char, c_int, c_uchar, size_t};
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::null_mut;

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_destroy: fn(Object);
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_close: fn(Object);
    rocksdb_create_column_family: fn(Object, Object, Bytes, Errptr) -> Object;
    rocksdb_drop_column_family: fn(Object, Object, Errptr);
    rocksdb_get_default_column_family_handle: fn(Object) -> Object;
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_writeoptions_set_ignore_missing_column_families: fn(Object, c_uchar);
    rocksdb_readoptions_create: fn() -> Object;
    rocksdb_readoptions_set_read_tier: fn(Object, c_int);
    rocksdb_readoptions_set_ignore_range_deletions: fn(Object, c_uchar);
    rocksdb_readoptions_set_max_skippable_internal_keys: fn(Object, u64);
    rocksdb_readoptions_set_iterate_upper_bound: fn(Object, Bytes, size_t);
    rocksdb_readoptions_set_snapshot: fn(Object, Object);
    rocksdb_create_snapshot: fn(Object) -> Object;
    rocksdb_release_snapshot: fn(Object, Object);
    rocksdb_delete: fn(Object, Object, Bytes, size_t, Errptr);
    rocksdb_readoptions_set_value_size_soft_limit: fn(Object, u64);
    rocksdb_readoptions_set_merge_operand_count_threshold: fn(Object, size_t);
    rocksdb_options_set_uint64add_merge_operator: fn(Object);
    rocksdb_writeoptions_disable_WAL: fn(Object, c_int);
    rocksdb_merge: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_readoptions_set_deadline: fn(Object, u64);
    rocksdb_readoptions_set_io_timeout: fn(Object, u64);
    rocksdb_put: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_delete_range_cf: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_get: fn(Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_multi_get: fn(Object, Object, size_t, *const Bytes, *const size_t, *mut *mut c_char, *mut size_t, *mut *mut c_char);
    rocksdb_multi_get_cf: fn(Object, Object, *const Object, size_t, *const Bytes, *const size_t, *mut *mut c_char, *mut size_t, *mut *mut c_char);
    rocksdb_put_cf: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_column_family_handle_destroy: fn(Object);
    rocksdb_create_iterator: fn(Object, Object) -> Object;
    rocksdb_iter_seek_to_first: fn(Object);
    rocksdb_iter_seek_to_last: fn(Object);
    rocksdb_iter_seek: fn(Object, Bytes, size_t);
    rocksdb_iter_seek_for_prev: fn(Object, Bytes, size_t);
    rocksdb_iter_prev: fn(Object);
    rocksdb_iter_valid: fn(Object) -> c_uchar;
    rocksdb_iter_next: fn(Object);
    rocksdb_iter_key: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_get_error: fn(Object, Errptr);
    rocksdb_iter_destroy: fn(Object);
    rocksdb_writebatch_create: fn() -> Object;
    rocksdb_writebatch_create_with_params: fn(size_t, size_t, size_t, size_t) -> Object;
    rocksdb_writebatch_put: fn(Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_put_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_delete: fn(Object, Bytes, size_t);
    rocksdb_writebatch_count: fn(Object) -> c_int;
    rocksdb_writebatch_data: fn(Object, *mut size_t) -> Bytes;
    rocksdb_write: fn(Object, Object, Object, Errptr);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_flush: fn(Object, Object, Errptr);
    rocksdb_wait_for_compact_options_create: fn() -> Object;
    rocksdb_wait_for_compact_options_set_close_db: fn(Object, c_uchar);
    rocksdb_wait_for_compact_options_get_close_db: fn(Object) -> c_uchar;
    rocksdb_wait_for_compact: fn(Object, Object, Errptr);
    rocksdb_free: fn(*mut libc::c_void);
}

struct Session<'a> {
    api: &'a Api,
    db: Object,
}

impl<'a> Session<'a> {
    fn open(api: &'a Api, dir: &Path) -> Session<'a> {
        let path = CString::new(dir.to_str().unwrap()).unwrap();
        // SAFETY: live objects and a NUL-terminated path.
        unsafe {
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_options_set_create_if_missing)(options, 1);
            (api.rocksdb_options_set_uint64add_merge_operator)(options);
            let mut error = null_mut();
            let db = (api.rocksdb_open)(options, path.as_ptr(), &raw mut error);
            (api.rocksdb_options_destroy)(options);
            let session = Session { api, db };
            assert_eq!(session.text(error), "");
            session
        }
    }

    fn text(&self, text: *mut c_char) -> String {
        if text.is_null() {
            return String::new();
        }
        // SAFETY: NUL-terminated and malloc'ed.
        unsafe {
            let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
            (self.api.rocksdb_free)(text.cast());
            copy
        }
    }

    /// The error of a call, empty if there is none.
    fn error(&self, call: impl FnOnce(Errptr)) -> String {
        let mut error = null_mut();
        call(&raw mut error);
        self.text(error)
    }

    fn put(&self, key: &str) {
        // SAFETY: live objects.
        let error = self.error(|e| unsafe {
            let (key, len) = (key.as_ptr().cast(), key.len());
            (self.api.rocksdb_put)(self.db, (self.api.rocksdb_writeoptions_create)(), key, len, key, len, e);
        });
        assert_eq!(error, "");
    }

    fn delete(&self, key: &str) {
        // SAFETY: live objects.
        let error = self.error(|e| unsafe {
            let write = (self.api.rocksdb_writeoptions_create)();
            (self.api.rocksdb_delete)(self.db, write, key.as_ptr().cast(), key.len(), e);
        });
        assert_eq!(error, "");
    }

    fn delete_range(&self, begin: &str, end: &str) {
        let api = self.api;
        // SAFETY: live objects.
        let error = self.error(|e| unsafe {
            let write = (api.rocksdb_writeoptions_create)();
            let cf = (api.rocksdb_get_default_column_family_handle)(self.db);
            let (first, last) = (begin.as_ptr().cast(), end.as_ptr().cast());
            (api.rocksdb_delete_range_cf)(self.db, write, cf, first, begin.len(), last, end.len(), e);
        });
        assert_eq!(error, "");
    }

    /// The keys that `steps` come to: `<` and `>` the ends, `n` and `p` a step, anything else a seek to that key or, in capitals, to or before
    /// it.
    fn walk(&self, read: Object, steps: &str) -> String {
        // SAFETY: live objects.
        unsafe {
            let a = self.api;
            let iter = (a.rocksdb_create_iterator)(self.db, read);
            let mut shown = String::new();
            for step in steps.split(' ') {
                // From nowhere no step is made.
                if matches!(step, "n" | "p") && (a.rocksdb_iter_valid)(iter) == 0 {
                    continue;
                }
                let lower = step.to_lowercase();
                let (key, len) = (lower.as_ptr().cast(), lower.len());
                match step {
                    "<" => (a.rocksdb_iter_seek_to_first)(iter),
                    ">" => (a.rocksdb_iter_seek_to_last)(iter),
                    "n" => (a.rocksdb_iter_next)(iter),
                    "p" => (a.rocksdb_iter_prev)(iter),
                    _ if step == lower => (a.rocksdb_iter_seek)(iter, key, len),
                    _ => (a.rocksdb_iter_seek_for_prev)(iter, key, len),
                }
                if (a.rocksdb_iter_valid)(iter) == 0 {
                    shown += &format!("{step}:{} ", self.error(|e| (a.rocksdb_iter_get_error)(iter, e)));
                    continue;
                }
                let mut len = 0;
                let key = (a.rocksdb_iter_key)(iter, &raw mut len);
                let key = std::slice::from_raw_parts(key.cast::<u8>(), len);
                shown += &format!("{step}:{} ", String::from_utf8_lossy(key));
            }
            (a.rocksdb_iter_destroy)(iter);
            shown
        }
    }

    fn flush(&self) {
        // SAFETY: live objects.
        let error = self.error(|e| unsafe {
            (self.api.rocksdb_flush)(self.db, (self.api.rocksdb_flushoptions_create)(), e);
        });
        assert_eq!(error, "");
    }

    /// The value of a key, or `-`, or the error.
    fn get(&self, read: Object, key: &str) -> String {
        let (mut len, mut error) = (0, null_mut());
        // SAFETY: live objects; the value has `len` bytes.
        unsafe {
            let value = (self.api.rocksdb_get)(
                self.db,
                read,
                key.as_ptr().cast(),
                key.len(),
                &raw mut len,
                &raw mut error,
            );
            if value.is_null() {
                return if error.is_null() { "-".to_string() } else { self.text(error) };
            }
            let copy =
                String::from_utf8_lossy(std::slice::from_raw_parts(value.cast::<u8>(), len)).into_owned();
            (self.api.rocksdb_free)(value.cast());
            copy
        }
    }

    /// The same of one key by way of many.
    fn multi_get(&self, read: Object, key: &str) -> String {
        let (mut value, mut len, mut error) = ([null_mut()], [0], [null_mut()]);
        // SAFETY: live objects, lists of one.
        unsafe {
            let (keys, lens) = ([key.as_ptr().cast()], [key.len()]);
            (self.api.rocksdb_multi_get)(
                self.db,
                read,
                1,
                keys.as_ptr(),
                lens.as_ptr(),
                value.as_mut_ptr(),
                len.as_mut_ptr(),
                error.as_mut_ptr(),
            );
            match (value[0].is_null(), error[0].is_null()) {
                (true, true) => "-".to_string(),
                (true, false) => self.text(error[0]),
                (false, _) => {
                    (self.api.rocksdb_free)(value[0].cast());
                    format!("{} bytes", len[0])
                }
            }
        }
    }

    /// Of several: the length of each value, or `-`, or the error.
    fn multi_get_all(&self, read: Object, keys: &[&str]) -> Vec<String> {
        let mut of = Lookups::of(keys);
        // SAFETY: live objects, lists of as many.
        unsafe {
            (self.api.rocksdb_multi_get)(
                self.db,
                read,
                keys.len(),
                of.keys.as_ptr(),
                of.lens.as_ptr(),
                of.values.as_mut_ptr(),
                of.value_lens.as_mut_ptr(),
                of.errors.as_mut_ptr(),
            );
        }
        self.found(of)
    }

    /// The same of keys with their column families.
    fn multi_get_pairs(&self, read: Object, pairs: &[(Object, &str)]) -> Vec<String> {
        let keys: Vec<&str> = pairs.iter().map(|(_, key)| *key).collect();
        let families: Vec<Object> = pairs.iter().map(|(family, _)| *family).collect();
        let mut of = Lookups::of(&keys);
        // SAFETY: as above.
        unsafe {
            (self.api.rocksdb_multi_get_cf)(
                self.db,
                read,
                families.as_ptr(),
                keys.len(),
                of.keys.as_ptr(),
                of.lens.as_ptr(),
                of.values.as_mut_ptr(),
                of.value_lens.as_mut_ptr(),
                of.errors.as_mut_ptr(),
            );
        }
        self.found(of)
    }

    fn found(&self, of: Lookups) -> Vec<String> {
        let results = of.values.into_iter().zip(of.value_lens).zip(of.errors);
        let text = |((value, len), error): ((*mut c_char, size_t), *mut c_char)| {
            if value.is_null() {
                return if error.is_null() { "-".to_string() } else { self.text(error) };
            }
            // SAFETY: a malloc'ed value.
            unsafe { (self.api.rocksdb_free)(value.cast()) };
            len.to_string()
        };
        results.map(text).collect()
    }

    /// Puts what may be lost.
    fn write_without_wal(&self, key: &str) {
        // SAFETY: live objects.
        let error = self.error(|e| unsafe {
            let write = (self.api.rocksdb_writeoptions_create)();
            (self.api.rocksdb_writeoptions_disable_WAL)(write, 1);
            let (key, len) = (key.as_ptr().cast(), key.len());
            (self.api.rocksdb_put)(self.db, write, key, len, c"lost".as_ptr(), 4, e);
        });
        assert_eq!(error, "");
    }

    /// All keys, and what ends them.
    fn scan(&self, read: Object, from: Option<&str>) -> String {
        // SAFETY: live objects.
        unsafe {
            let a = self.api;
            let iter = (a.rocksdb_create_iterator)(self.db, read);
            match from {
                Some(key) => (a.rocksdb_iter_seek)(iter, key.as_ptr().cast(), key.len()),
                None => (a.rocksdb_iter_seek_to_first)(iter),
            }
            let mut keys = String::new();
            while (a.rocksdb_iter_valid)(iter) != 0 {
                let mut len = 0;
                let key = (a.rocksdb_iter_key)(iter, &raw mut len);
                keys += &String::from_utf8_lossy(std::slice::from_raw_parts(key.cast::<u8>(), len));
                keys += " ";
                (a.rocksdb_iter_next)(iter);
            }
            let error = self.error(|e| (a.rocksdb_iter_get_error)(iter, e));
            (a.rocksdb_iter_destroy)(iter);
            keys + &error
        }
    }

    fn close(self) {
        // SAFETY: a live database.
        unsafe { (self.api.rocksdb_close)(self.db) };
    }
}

#[test]
fn reads_of_the_cache_alone() {
    let told = Api::same_on_both(|api, dir| {
        let session = Session::open(api, dir);
        session.put("a");
        session.flush();
        session.close();
        let session = Session::open(api, dir);
        session.put("m");
        // SAFETY: live options.
        let cached = unsafe {
            let cached = (api.rocksdb_readoptions_create)();
            (api.rocksdb_readoptions_set_read_tier)(cached, 1);
            cached
        };
        // SAFETY: no preconditions.
        let plain = unsafe { (api.rocksdb_readoptions_create)() };
        let mut told = vec![
            session.get(cached, "m"),
            session.get(cached, "z"),
            session.get(cached, "a"),
            session.scan(cached, None),
            session.scan(cached, Some("a")),
        ];
        told.extend([session.get(plain, "a"), session.get(cached, "a"), session.multi_get(cached, "a")]);
        told.push(session.scan(cached, None));
        session.close();
        told
    });
    assert_eq!(told[2], "Result incomplete: no blocking io");
    assert_eq!(told[5..], ["a", "a", "1 bytes", "a m "]);
}

#[test]
fn reads_of_what_is_persisted_and_of_memtables_alone() {
    let told = Api::same_on_both(|api, dir| {
        let session = Session::open(api, dir);
        // SAFETY: live options.
        let [persisted, memtables] = [2, 3].map(|tier| unsafe {
            let read = (api.rocksdb_readoptions_create)();
            (api.rocksdb_readoptions_set_read_tier)(read, tier);
            read
        });
        session.put("a");
        session.flush();
        session.put("b");
        let look = || {
            let mut told = Vec::new();
            for read in [persisted, memtables] {
                told.extend(["a", "b", "c"].map(|key| session.get(read, key)));
                told.extend(session.multi_get_all(read, &["c", "b", "a"]));
                told.push(session.scan(read, None));
                told.push(session.walk(read, "a b > p"));
            }
            told
        };
        // All of it is in a table or in the WAL.
        let mut told = look();
        session.write_without_wal("c");
        told.extend(look());
        session.flush();
        told.extend(look());
        session.close();
        told
    });
    assert_eq!(told[..3], ["a", "b", "-"]);
    assert_eq!(told[16..19], ["a", "-", "-"], "with a write that may be lost memtables do not count");
    assert_eq!(told[24..27], ["a", "b", "lost"]);
    assert_eq!(told[30], "b c ", "an iterator of memtables");
}

#[test]
fn many_keys_with_a_limit_on_bytes() {
    let told = Api::same_on_both(|api, dir| {
        let session = Session::open(api, dir);
        let names: Vec<String> = (0..70).map(|number| format!("key{number:02}")).collect();
        let keys: Vec<&str> = names.iter().map(String::as_str).collect();
        // In the order of keys, whatever the order of the list. Keys that are not there RocksDB calls aborted in the group that has reached the limit.
        let list: Vec<&str> = keys[50..].iter().chain(&keys[..50]).copied().collect();
        keys.iter().for_each(|key| session.put(key));
        let look = || {
            let limits = [0, 1, 5, 6, 40, 200, 348, 350, u64::MAX];
            limits.map(|limit| {
                // SAFETY: live options.
                let read = unsafe {
                    let read = (api.rocksdb_readoptions_create)();
                    (api.rocksdb_readoptions_set_value_size_soft_limit)(read, limit);
                    read
                };
                session.multi_get_all(read, &list)
            })
        };
        let in_memory = look();
        session.flush();
        let in_tables = look();
        session.close();
        (in_memory, in_tables)
    });
    let read = |results: &[String]| results.iter().filter(|result| *result == "5").count();
    assert_eq!(told.0.each_ref().map(|results| read(results)), [1, 1, 2, 2, 9, 41, 70, 70, 70]);
    assert_eq!(told.0, told.1);
}

/// The limit ends at the first column family, by id, that goes beyond it; each begins with nothing.
#[test]
fn many_keys_of_several_families_with_a_limit_on_bytes() {
    let told = Api::same_on_both(|api, dir| {
        let session = Session::open(api, dir);
        // SAFETY: live objects, of this library.
        let families = unsafe {
            let options = (api.rocksdb_options_create)();
            let mut families = vec![(api.rocksdb_get_default_column_family_handle)(session.db)];
            for name in [c"one", c"two"] {
                let mut error = null_mut();
                families.push((api.rocksdb_create_column_family)(
                    session.db,
                    options,
                    name.as_ptr(),
                    &raw mut error,
                ));
                assert_eq!(session.text(error), "");
            }
            (api.rocksdb_options_destroy)(options);
            families
        };
        let names: Vec<String> = (0..40).map(|number| format!("key{number:02}")).collect();
        for (family, name) in families.iter().flat_map(|family| names.iter().map(move |name| (*family, name)))
        {
            // SAFETY: live objects.
            let error = session.error(|e| unsafe {
                let (key, len) = (name.as_ptr().cast(), name.len());
                (api.rocksdb_put_cf)(
                    session.db,
                    (api.rocksdb_writeoptions_create)(),
                    family,
                    key,
                    len,
                    key,
                    len,
                    e,
                );
            });
            assert_eq!(error, "");
        }
        let take = |family: usize, many: usize| {
            let family = families[family];
            names[..many].iter().map(move |name| (family, name.as_str()))
        };
        // Later families first: the order is that of ids.
        let pairs: Vec<(Object, &str)> = take(2, 3).chain(take(0, 6)).chain(take(1, 40)).collect();
        let told = [0, 4, 14, 15, 16, 29, 30, 31, 100, 199, 200, 201, u64::MAX].map(|limit| {
            // SAFETY: live options.
            let read = unsafe {
                let read = (api.rocksdb_readoptions_create)();
                (api.rocksdb_readoptions_set_value_size_soft_limit)(read, limit);
                read
            };
            session.multi_get_pairs(read, &pairs)
        });
        // SAFETY: made above; RocksDB has them given back before the database is closed.
        families.iter().for_each(|family| unsafe { (api.rocksdb_column_family_handle_destroy)(*family) });
        session.close();
        told
    });
    let found = |results: &[String]| results.iter().filter(|result| *result == "5").count();
    assert_eq!(found(&told[0]), 1, "the first key of the default one");
    assert_eq!(found(&told[12]), 49);
}

/// RocksDB marks its status, which C functions do not show.
#[test]
fn merges_of_more_operands_than_were_asked_for() {
    let told = Api::same_on_both(|api, dir| {
        let session = Session::open(api, dir);
        for _ in 0..3 {
            // SAFETY: live objects.
            let error = session.error(|e| unsafe {
                let one = 1_u64.to_le_bytes();
                let write = (api.rocksdb_writeoptions_create)();
                (api.rocksdb_merge)(session.db, write, c"n".as_ptr(), 1, one.as_ptr().cast(), 8, e);
            });
            assert_eq!(error, "");
        }
        // SAFETY: live options.
        let read = unsafe {
            let read = (api.rocksdb_readoptions_create)();
            (api.rocksdb_readoptions_set_merge_operand_count_threshold)(read, 2);
            read
        };
        let told = (session.get(read, "n"), session.multi_get_all(read, &["n"]), session.scan(read, None));
        session.close();
        told
    });
    assert_eq!(told, ("\u{3}\0\0\0\0\0\0\0".into(), vec!["8".into()], "n ".into()));
}

#[test]
fn deleted_ranges_that_count_for_nothing() {
    let told = Api::same_on_both(|api, dir| {
        let session = Session::open(api, dir);
        for key in ["a", "b", "c"] {
            session.put(key);
        }
        session.flush();
        session.delete_range("a", "c");
        // SAFETY: live options.
        let (plain, ignoring) = unsafe {
            let ignoring = (api.rocksdb_readoptions_create)();
            (api.rocksdb_readoptions_set_ignore_range_deletions)(ignoring, 1);
            ((api.rocksdb_readoptions_create)(), ignoring)
        };
        let look = || {
            [plain, ignoring]
                .map(|read| [session.get(read, "a"), session.multi_get(read, "b"), session.scan(read, None)])
                .concat()
        };
        let mut told = look();
        session.flush();
        told.extend(look());
        session.close();
        told
    });
    assert_eq!(told[..6], ["-", "-", "c ", "a", "1 bytes", "a b c "]);
    assert_eq!(told[6..], told[..6]);
}

#[test]
fn batches_grow_to_their_limit() {
    Api::same_on_both(|api, _| {
        // SAFETY: live objects.
        unsafe {
            let batch = (api.rocksdb_writebatch_create_with_params)(0, 40, 0, 0);
            let mut told = Vec::new();
            for len in [10, 20, 5, 8, 1, 1] {
                let value = vec![b'v'; len];
                (api.rocksdb_writebatch_put)(batch, c"k".as_ptr(), 1, value.as_ptr().cast(), len);
                let mut size = 0;
                let _ = (api.rocksdb_writebatch_data)(batch, &raw mut size);
                told.push(((api.rocksdb_writebatch_count)(batch), size));
            }
            (api.rocksdb_writebatch_delete)(batch, c"longer than is left".as_ptr(), 19);
            told.push(((api.rocksdb_writebatch_count)(batch), 0));
            told
        }
    });
}

#[test]
fn records_of_column_families_that_are_gone() {
    let told = Api::same_on_both(|api, dir| {
        let session = Session::open(api, dir);
        // SAFETY: live objects.
        unsafe {
            let options = (api.rocksdb_options_create)();
            let mut error = null_mut();
            let cf =
                (api.rocksdb_create_column_family)(session.db, options, c"gone".as_ptr(), &raw mut error);
            assert_eq!(session.text(error), "");
            let batch = (api.rocksdb_writebatch_create)();
            (api.rocksdb_writebatch_put)(batch, c"a".as_ptr(), 1, c"1".as_ptr(), 1);
            (api.rocksdb_writebatch_put_cf)(batch, cf, c"b".as_ptr(), 1, c"2".as_ptr(), 1);
            (api.rocksdb_writebatch_put)(batch, c"c".as_ptr(), 1, c"3".as_ptr(), 1);
            assert_eq!(session.error(|e| (api.rocksdb_drop_column_family)(session.db, cf, e)), "");
            let write = (api.rocksdb_writeoptions_create)();
            // Without it RocksDB refuses the batch, and all writes after it.
            (api.rocksdb_writeoptions_set_ignore_missing_column_families)(write, 1);
            let passed = session.error(|e| (api.rocksdb_write)(session.db, write, batch, e));
            let read = (api.rocksdb_readoptions_create)();
            let rows = session.scan(read, None);
            session.close();
            // And again when it is recovered.
            let session = Session::open(api, dir);
            let again = session.scan((api.rocksdb_readoptions_create)(), None);
            session.close();
            (passed, rows, again)
        }
    });
    assert_eq!(told, (String::new(), "a c ".into(), "a c ".into()));
}

#[test]
fn waiting_that_closes_the_database() {
    let (set, error) = Api::same_on_both(|api, dir| {
        let session = Session::open(api, dir);
        session.put("a");
        // SAFETY: live objects.
        unsafe {
            let options = (api.rocksdb_wait_for_compact_options_create)();
            (api.rocksdb_wait_for_compact_options_set_close_db)(options, 1);
            let set = (api.rocksdb_wait_for_compact_options_get_close_db)(options);
            let error = session.error(|e| (api.rocksdb_wait_for_compact)(session.db, options, e));
            // The lock is released.
            let other = Session::open(api, dir);
            assert_eq!(other.get((api.rocksdb_readoptions_create)(), "a"), "a");
            other.close();
            session.close();
            (set, error)
        }
    });
    assert_eq!((set, error.as_str()), (1, ""));
}

/// Seeks and steps that there and back pass over deleted, overwritten and newer entries.
const WALKS: [&str; 10] = [
    "o n p p n n",
    "> p p p p n",
    "< n n n n n n",
    "> p p p p p p",
    "a n p n p n p",
    "b n n",
    "n00 n n",
    "D D p p n",
    "m k z < >",
    "Z p p p n n",
];

#[test]
fn iterators_that_pass_over_too_much() {
    let told = Api::same_on_both(|api, dir| {
        let session = Session::open(api, dir);
        session.put("a");
        (0..4).for_each(|n| session.put(&format!("c{n}")));
        session.put("d");
        session.flush();
        (0..4).for_each(|n| session.delete(&format!("c{n}")));
        // Overwritten twice.
        session.put("d");
        session.put("m");
        session.flush();
        session.put("d");
        // SAFETY: a live database.
        let snapshot = unsafe { (api.rocksdb_create_snapshot)(session.db) };
        // Newer than the snapshot.
        (0..3).for_each(|n| session.put(&format!("e{n}")));
        session.put("m");
        (0..3).for_each(|n| session.delete(&format!("x{n}")));
        // More versions than are stepped over one by one; and what a range tombstone hides.
        (0..30).for_each(|_| session.put("o"));
        (0..60).for_each(|n| session.put(&format!("r{}", n % 20)));
        session.delete_range("r", "s");
        session.put("t");
        let mut told = Vec::new();
        for most in (0..9).chain([20, 40]) {
            for (with_snapshot, bound) in [(false, ""), (true, ""), (false, "d"), (true, "f")] {
                // SAFETY: live objects.
                let read = unsafe {
                    let read = (api.rocksdb_readoptions_create)();
                    (api.rocksdb_readoptions_set_max_skippable_internal_keys)(read, most);
                    if with_snapshot {
                        (api.rocksdb_readoptions_set_snapshot)(read, snapshot);
                    }
                    if !bound.is_empty() {
                        (api.rocksdb_readoptions_set_iterate_upper_bound)(
                            read,
                            bound.as_ptr().cast(),
                            bound.len(),
                        );
                    }
                    read
                };
                for walk in WALKS {
                    let what = format!("{most} {with_snapshot} {bound:?}: ");
                    told.push(what + &session.walk(read, walk));
                }
            }
        }
        // SAFETY: a live snapshot.
        unsafe { (api.rocksdb_release_snapshot)(session.db, snapshot) };
        session.close();
        told
    });
    // After the two walks about many versions and range tombstones.
    assert_eq!(told[2], "0 false \"\": <:a n:d n:e0 n:e1 n:e2 n:m n:o ");
    assert_eq!(
        told[4 * WALKS.len() + 2],
        "1 false \"\": <:a n:Result incomplete: Too many internal keys skipped. "
    );
}

#[test]
fn reads_that_are_late() {
    let told = Api::same_on_both(|api, dir| {
        let session = Session::open(api, dir);
        session.put("a");
        session.flush();
        session.close();
        let session = Session::open(api, dir);
        session.put("m");
        // SAFETY: live options. Both moments are far from now.
        let (late, early) = unsafe {
            let (late, early) = ((api.rocksdb_readoptions_create)(), (api.rocksdb_readoptions_create)());
            (api.rocksdb_readoptions_set_deadline)(late, 1);
            (api.rocksdb_readoptions_set_deadline)(early, 1 << 62);
            (api.rocksdb_readoptions_set_io_timeout)(early, 1);
            (late, early)
        };
        let look = |read| {
            [
                session.get(read, "m"),
                session.get(read, "z"),
                session.get(read, "a"),
                session.multi_get(read, "m"),
                session.multi_get(read, "a"),
                session.scan(read, None),
                session.scan(read, Some("a")),
                session.walk(read, "> p p"),
            ]
        };
        let told = [look(late), look(early), look(late)].concat();
        session.close();
        told
    });
    assert_eq!(told[2], "Operation timed out: Deadline exceeded");
    assert_eq!(told[3], "Operation timed out: ");
    assert_eq!(told[8..14], ["m", "-", "a", "1 bytes", "1 bytes", "a m "]);
    assert_eq!(
        (&told[18][..], &told[20][..]),
        ("a", "Operation timed out: "),
        "what is cached is found late, too"
    );
}
