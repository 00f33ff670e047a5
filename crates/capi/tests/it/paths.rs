//! Tables in several directories beside RocksDB's: each library opens what the other left in two paths, and goes on there.

use crate::library::{Bytes, Errptr, Object, c_functions, outcrop_library, reference, succeeding};
use libc::{c_int, c_uchar, c_void, size_t};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::ptr::null;

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_destroy: fn(Object);
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_compression: fn(Object, c_int);
    rocksdb_options_set_enable_blob_files: fn(Object, c_uchar);
    rocksdb_options_set_min_blob_size: fn(Object, u64);
    rocksdb_options_set_db_paths: fn(Object, *const Object, size_t);
    rocksdb_dbpath_create: fn(Bytes, u64) -> Object;
    rocksdb_dbpath_destroy: fn(Object);
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_close: fn(Object);
    rocksdb_destroy_db: fn(Object, Bytes, Errptr);
    rocksdb_put: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_flush: fn(Object, Object, Errptr);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_readoptions_create: fn() -> Object;
    rocksdb_compactoptions_create: fn() -> Object;
    rocksdb_compactoptions_set_target_path_id: fn(Object, c_int);
    rocksdb_compactoptions_set_bottommost_level_compaction: fn(Object, c_uchar);
    rocksdb_compact_range_opt: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_create_iterator: fn(Object, Object) -> Object;
    rocksdb_iter_seek_to_first: fn(Object);
    rocksdb_iter_valid: fn(Object) -> c_uchar;
    rocksdb_iter_next: fn(Object);
    rocksdb_iter_key: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_value: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_get_error: fn(Object, Errptr);
    rocksdb_iter_destroy: fn(Object);
    rocksdb_livefiles: fn(Object) -> Object;
    rocksdb_livefiles_count: fn(Object) -> c_int;
    rocksdb_livefiles_directory: fn(Object, c_int) -> Bytes;
    rocksdb_livefiles_destroy: fn(Object);
    rocksdb_free: fn(*mut c_void);
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn text(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

/// A database with two paths.
struct Place(PathBuf);

impl Place {
    fn db(&self) -> PathBuf {
        self.0.join("db")
    }

    fn paths(&self) -> [PathBuf; 2] {
        [self.0.join("fast"), self.0.join("large")]
    }
}

impl Api {
    fn well<T>(&self, call: impl FnOnce(Errptr) -> T) -> T {
        succeeding(self.rocksdb_free, call)
    }

    fn options(&self, place: &Place) -> Object {
        // SAFETY: live objects; the paths are copied.
        unsafe {
            let options = (self.rocksdb_options_create)();
            (self.rocksdb_options_set_create_if_missing)(options, 1);
            (self.rocksdb_options_set_compression)(options, 0);
            (self.rocksdb_options_set_enable_blob_files)(options, 1);
            (self.rocksdb_options_set_min_blob_size)(options, 300);
            let path = |path: &PathBuf| (self.rocksdb_dbpath_create)(text(path).as_ptr(), 1 << 30);
            let paths = place.paths().each_ref().map(path);
            (self.rocksdb_options_set_db_paths)(options, paths.as_ptr(), paths.len());
            paths.iter().for_each(|path| (self.rocksdb_dbpath_destroy)(*path));
            options
        }
    }

    fn open(&self, place: &Place) -> Object {
        // SAFETY: live objects and a NUL-terminated path.
        unsafe {
            let options = self.options(place);
            let db = self.well(|e| (self.rocksdb_open)(options, text(&place.db()).as_ptr(), e));
            (self.rocksdb_options_destroy)(options);
            db
        }
    }

    fn fill(&self, db: Object, model: &mut Rows, from: usize, value: u8) {
        // SAFETY: live objects and slices.
        unsafe {
            let write = (self.rocksdb_writeoptions_create)();
            for i in from..from + 60 {
                let (key, value) = (format!("{i:04}").into_bytes(), vec![value; (i % 60) * 10]);
                let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
                self.well(|e| (self.rocksdb_put)(db, write, k, key.len(), v, value.len(), e));
                model.insert(key, value);
            }
            self.well(|e| (self.rocksdb_flush)(db, (self.rocksdb_flushoptions_create)(), e));
        }
    }

    /// Writes everything anew, into a path.
    fn compact(&self, db: Object, path: c_int) {
        // SAFETY: live objects.
        unsafe {
            let options = (self.rocksdb_compactoptions_create)();
            (self.rocksdb_compactoptions_set_target_path_id)(options, path);
            // Forced.
            (self.rocksdb_compactoptions_set_bottommost_level_compaction)(options, 2);
            (self.rocksdb_compact_range_opt)(db, options, null(), 0, null(), 0);
        }
    }

    fn rows(&self, db: Object) -> Rows {
        let mut rows = Rows::new();
        // SAFETY: live objects; keys and values are copied before the next step.
        unsafe {
            let iter = (self.rocksdb_create_iterator)(db, (self.rocksdb_readoptions_create)());
            (self.rocksdb_iter_seek_to_first)(iter);
            while (self.rocksdb_iter_valid)(iter) != 0 {
                let mut len = 0;
                let key = (self.rocksdb_iter_key)(iter, &raw mut len);
                let key = std::slice::from_raw_parts(key.cast::<u8>(), len).to_vec();
                let value = (self.rocksdb_iter_value)(iter, &raw mut len);
                rows.insert(key, std::slice::from_raw_parts(value.cast::<u8>(), len).to_vec());
                (self.rocksdb_iter_next)(iter);
            }
            self.well(|e| (self.rocksdb_iter_get_error)(iter, e));
            (self.rocksdb_iter_destroy)(iter);
        }
        rows
    }

    /// The directories that tables are in.
    fn directories(&self, db: Object) -> BTreeSet<PathBuf> {
        // SAFETY: live objects; indexes within the count.
        unsafe {
            let files = (self.rocksdb_livefiles)(db);
            let directory =
                |i| CStr::from_ptr((self.rocksdb_livefiles_directory)(files, i)).to_str().unwrap();
            let all =
                (0..(self.rocksdb_livefiles_count)(files)).map(|i| PathBuf::from(directory(i))).collect();
            (self.rocksdb_livefiles_destroy)(files);
            all
        }
    }

    fn close(&self, db: Object) {
        // SAFETY: a live object.
        unsafe { (self.rocksdb_close)(db) }
    }
}

#[test]
fn each_goes_on_in_the_paths_of_the_other() {
    let Some(reference) = reference() else { return };
    let (ours, theirs) = (Api::load(&outcrop_library()), Api::load(&reference));
    for sides in [[&ours, &theirs], [&theirs, &ours]] {
        let temp = tempfile::tempdir().unwrap();
        let place = Place(temp.path().to_path_buf());
        let [fast, large] = place.paths();
        let mut model = Rows::new();
        for turn in 0..6_u8 {
            let api = sides[usize::from(turn) % 2];
            let db = api.open(&place);
            assert_eq!(api.rows(db), model, "turn {turn}");
            api.fill(db, &mut model, usize::from(turn % 3) * 40, turn);
            assert!(api.directories(db).contains(&fast), "turn {turn}: a flush goes to the first path");
            if turn % 3 == 1 {
                api.compact(db, 1);
                assert_eq!(api.directories(db), BTreeSet::from([large.clone()]), "turn {turn}");
                api.fill(db, &mut model, 200, turn);
                assert_eq!(api.directories(db), BTreeSet::from([fast.clone(), large.clone()]));
            } else if turn % 3 == 2 {
                api.compact(db, 0);
                assert_eq!(api.directories(db), BTreeSet::from([fast.clone()]), "turn {turn}");
            }
            assert_eq!(api.rows(db), model, "turn {turn}");
            api.close(db);
        }
        let tables = |dir: &Path| {
            let names = std::fs::read_dir(dir).into_iter().flatten().flatten();
            names.filter(|entry| entry.path().extension().is_some_and(|e| e == "sst" || e == "blob")).count()
        };
        assert_eq!(tables(&place.db()), 0, "the database's own directory has none");
        // SAFETY: live objects and a NUL-terminated path.
        unsafe {
            let (api, path) = (sides[0], place.db());
            let options = api.options(&place);
            api.well(|e| (api.rocksdb_destroy_db)(options, text(&path).as_ptr(), e));
        }
        assert_eq!(tables(&fast) + tables(&large), 0);
    }
}
