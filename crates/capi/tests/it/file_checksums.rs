//! Checksums of whole files beside RocksDB's: each library compares the files of the other with the checksums the other wrote
//! down, and tells of damage in the same words.

use crate::library::{Bytes, Errptr, Object, c_functions, error_of, outcrop_library, reference, succeeding};
use libc::{c_int, c_uchar, c_void, size_t};
use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::ptr::null;

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_destroy: fn(Object);
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_enable_blob_files: fn(Object, c_uchar);
    rocksdb_options_set_min_blob_size: fn(Object, u64);
    rocksdb_options_set_file_checksum_gen_factory: fn(Object, Object);
    rocksdb_file_checksum_gen_crc32c_factory_create: fn() -> Object;
    rocksdb_file_checksum_gen_factory_destroy: fn(Object);
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_close: fn(Object);
    rocksdb_put: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_flush: fn(Object, Object, Errptr);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_readoptions_create: fn() -> Object;
    rocksdb_compact_range: fn(Object, Bytes, size_t, Bytes, size_t);
    rocksdb_verify_file_checksums: fn(Object, Errptr);
    rocksdb_verify_file_checksums_with_options: fn(Object, Object, Errptr);
    rocksdb_livefiles_storage_info_options_create: fn() -> Object;
    rocksdb_livefiles_storage_info_options_set_include_checksum_info: fn(Object, c_uchar);
    rocksdb_get_livefiles_storage_info: fn(Object, Object, Errptr) -> Object;
    rocksdb_livefiles_storage_info_count: fn(Object) -> size_t;
    rocksdb_livefiles_storage_info_relative_filename: fn(Object, size_t) -> Bytes;
    rocksdb_livefiles_storage_info_file_type: fn(Object, size_t) -> c_int;
    rocksdb_livefiles_storage_info_file_checksum_func_name: fn(Object, size_t) -> Bytes;
    rocksdb_livefiles_storage_info_destroy: fn(Object);
    rocksdb_envoptions_create: fn() -> Object;
    rocksdb_sstfilewriter_create: fn(Object, Object) -> Object;
    rocksdb_sstfilewriter_open: fn(Object, Bytes, Errptr);
    rocksdb_sstfilewriter_put: fn(Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_sstfilewriter_finish: fn(Object, Errptr);
    rocksdb_sstfilewriter_destroy: fn(Object);
    rocksdb_ingestexternalfileoptions_create: fn() -> Object;
    rocksdb_ingest_external_file: fn(Object, *const Bytes, size_t, Object, Errptr);
    rocksdb_free: fn(*mut c_void);
}

fn text(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

impl Api {
    /// The text of the error of `call`; empty if it did well.
    fn call(&self, call: impl FnOnce(Errptr)) -> String {
        error_of(self.rocksdb_free, call)
    }

    fn well<T>(&self, call: impl FnOnce(Errptr) -> T) -> T {
        succeeding(self.rocksdb_free, call)
    }

    /// Options of databases with blob files, and with checksums if they are wanted. They outlive the factory.
    fn options(&self, checksums: bool) -> Object {
        // SAFETY: live objects.
        unsafe {
            let options = (self.rocksdb_options_create)();
            (self.rocksdb_options_set_create_if_missing)(options, 1);
            (self.rocksdb_options_set_enable_blob_files)(options, 1);
            (self.rocksdb_options_set_min_blob_size)(options, 300);
            if checksums {
                let factory = (self.rocksdb_file_checksum_gen_crc32c_factory_create)();
                (self.rocksdb_options_set_file_checksum_gen_factory)(options, factory);
                (self.rocksdb_file_checksum_gen_factory_destroy)(factory);
            }
            options
        }
    }

    fn open(&self, dir: &Path, checksums: bool) -> Object {
        // SAFETY: live objects and a NUL-terminated path.
        unsafe {
            let options = self.options(checksums);
            let db = self.well(|e| (self.rocksdb_open)(options, text(dir).as_ptr(), e));
            (self.rocksdb_options_destroy)(options);
            db
        }
    }

    /// Writes a table and a blob file, and compacts all of it if that is wanted.
    fn fill(&self, db: Object, name: &str, compact: bool) {
        // SAFETY: live objects and slices.
        unsafe {
            let write = (self.rocksdb_writeoptions_create)();
            for i in 0..60_usize {
                let (key, value) = (format!("{name}{i:03}"), vec![b'v'; i * 10]);
                let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
                self.well(|e| (self.rocksdb_put)(db, write, k, key.len(), v, value.len(), e));
            }
            self.well(|e| (self.rocksdb_flush)(db, (self.rocksdb_flushoptions_create)(), e));
            if compact {
                (self.rocksdb_compact_range)(db, null(), 0, null(), 0);
            }
        }
    }

    fn ingest(&self, db: Object, file: &Path, key: &str) {
        // SAFETY: live objects, slices and NUL-terminated paths.
        unsafe {
            let (env, options) = ((self.rocksdb_envoptions_create)(), self.options(true));
            let writer = (self.rocksdb_sstfilewriter_create)(env, options);
            self.well(|e| (self.rocksdb_sstfilewriter_open)(writer, text(file).as_ptr(), e));
            let k = key.as_ptr().cast();
            self.well(|e| (self.rocksdb_sstfilewriter_put)(writer, k, key.len(), k, key.len(), e));
            self.well(|e| (self.rocksdb_sstfilewriter_finish)(writer, e));
            (self.rocksdb_sstfilewriter_destroy)(writer);
            let (path, how) = (text(file), (self.rocksdb_ingestexternalfileoptions_create)());
            self.well(|e| (self.rocksdb_ingest_external_file)(db, [path.as_ptr()].as_ptr(), 1, how, e));
        }
    }

    fn verify(&self, db: Object) -> String {
        // SAFETY: live objects.
        unsafe {
            let told = self.call(|e| (self.rocksdb_verify_file_checksums)(db, e));
            let read = (self.rocksdb_readoptions_create)();
            let again = self.call(|e| (self.rocksdb_verify_file_checksums_with_options)(db, read, e));
            assert_eq!(told, again);
            told
        }
    }

    /// Name of each table and blob file, and of the function of its checksum.
    fn functions(&self, db: Object) -> Vec<(String, String)> {
        // SAFETY: live objects; indexes within the count; texts are copied before the info goes.
        unsafe {
            let options = (self.rocksdb_livefiles_storage_info_options_create)();
            (self.rocksdb_livefiles_storage_info_options_set_include_checksum_info)(options, 1);
            let info = self.well(|e| (self.rocksdb_get_livefiles_storage_info)(db, options, e));
            let c_text = |text| CStr::from_ptr(text).to_str().unwrap().to_string();
            let count = (self.rocksdb_livefiles_storage_info_count)(info);
            let all = (0..count).map(|i| {
                let function = (self.rocksdb_livefiles_storage_info_file_checksum_func_name)(info, i);
                let name = (self.rocksdb_livefiles_storage_info_relative_filename)(info, i);
                ((self.rocksdb_livefiles_storage_info_file_type)(info, i), c_text(name), c_text(function))
            });
            let data = all.filter(|(_, name, _)| name.ends_with(".sst") || name.ends_with(".blob"));
            let files = data.map(|(_, name, function)| (name, function)).collect();
            (self.rocksdb_livefiles_storage_info_destroy)(info);
            files
        }
    }

    fn close(&self, db: Object) {
        // SAFETY: a live object.
        unsafe { (self.rocksdb_close)(db) }
    }
}

#[test]
fn each_verifies_the_files_of_the_other() {
    let Some(reference) = reference() else { return };
    let (ours, theirs) = (Api::load(&outcrop_library()), Api::load(&reference));
    for sides in [[&ours, &theirs], [&theirs, &ours]] {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("db");
        for turn in 0..4 {
            let api = sides[turn % 2];
            let db = api.open(&dir, true);
            // Before this one has rewritten anything: what the other wrote.
            assert_eq!(api.verify(db), "", "turn {turn}");
            api.fill(db, &format!("{}", turn % 3), turn > 1);
            api.ingest(db, &temp.path().join(format!("{turn}.sst")), &format!("z{turn}"));
            assert_eq!(api.verify(db), "", "turn {turn}");
            let files = api.functions(db);
            assert!(files.iter().any(|(name, _)| name.ends_with(".blob")), "{files:?}");
            for (name, function) in &files {
                assert_eq!(function, "FileChecksumCrc32c", "{name}, turn {turn}");
            }
            api.close(db);
        }
    }
}

#[test]
fn damage_is_told_in_the_same_words() {
    let Some(reference) = reference() else { return };
    let apis = [Api::load(&outcrop_library()), Api::load(&reference)];
    for writer in &apis {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("db");
        let db = writer.open(&dir, true);
        writer.fill(db, "a", false);
        let files: Vec<PathBuf> =
            writer.functions(db).iter().map(|(name, _)| dir.join(name.trim_start_matches('/'))).collect();
        writer.close(db);
        for file in files {
            let whole = std::fs::read(&file).unwrap();
            let mut damaged = whole.clone();
            // In the first record or block: opening looks at the end.
            damaged[40] ^= 1;
            std::fs::write(&file, &damaged).unwrap();
            let told = apis.each_ref().map(|api| {
                let db = api.open(&dir, true);
                let told = api.verify(db);
                api.close(db);
                told
            });
            assert!(told[0].contains("file checksum mismatch"), "{told:?}");
            assert_eq!(told[0], told[1]);
            std::fs::write(&file, &whole).unwrap();
        }
        let without = apis.each_ref().map(|api| {
            let db = api.open(&dir, false);
            let told = api.verify(db);
            api.close(db);
            told
        });
        assert_eq!(without[0], without[1]);
        assert!(without[0].starts_with("Invalid argument: Cannot verify file checksum"), "{without:?}");
    }
}
