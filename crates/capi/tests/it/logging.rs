//! LOG beside RocksDB's: what a logger of the application's is told at which level, and what files there are.

use crate::library::{Bytes, Errptr, Object, c_functions, libraries};
use libc::{c_char, c_int, c_uchar, c_uint, c_void, size_t};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::Mutex;

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_destroy: fn(Object);
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_info_log: fn(Object, Object);
    rocksdb_options_get_info_log: fn(Object) -> Object;
    rocksdb_options_set_info_log_level: fn(Object, c_int);
    rocksdb_options_set_max_log_file_size: fn(Object, size_t);
    rocksdb_options_set_keep_log_file_num: fn(Object, size_t);
    rocksdb_options_set_db_log_dir: fn(Object, Bytes);
    rocksdb_logger_create_callback_logger: fn(c_int, unsafe extern "C" fn(*mut c_void, c_uint, *mut c_char, size_t), *mut c_void) -> Object;
    rocksdb_logger_destroy: fn(Object);
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_destroy_db: fn(Object, Bytes, Errptr);
    rocksdb_close: fn(Object);
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_put: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_flush: fn(Object, Object, Errptr);
    rocksdb_compact_range: fn(Object, Bytes, size_t, Bytes, size_t);
    rocksdb_options_set_uint64add_merge_operator: fn(Object);
    rocksdb_options_add_compact_on_deletion_collector_factory: fn(Object, size_t, size_t);
    rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio: fn(Object, size_t, size_t, f64);
    rocksdb_block_based_options_create: fn() -> Object;
    rocksdb_block_based_options_set_block_cache: fn(Object, Object);
    rocksdb_block_based_options_set_block_size: fn(Object, size_t);
    rocksdb_options_set_block_based_table_factory: fn(Object, Object);
    rocksdb_cache_create_lru: fn(size_t) -> Object;
}

fn loaded() -> impl Iterator<Item = (&'static str, Api)> {
    libraries().into_iter().map(|(name, path)| (name, Api::load(&path)))
}

/// Opens, flushes so many times, compacts and closes.
unsafe fn live(api: &Api, options: Object, path: &Path, flushes: usize) {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: objects of the library.
    unsafe {
        let mut error = null_mut();
        let db = (api.rocksdb_open)(options, path.as_ptr(), &mut error);
        assert!(error.is_null() && !db.is_null());
        let (write, flush) = ((api.rocksdb_writeoptions_create)(), (api.rocksdb_flushoptions_create)());
        for _ in 0..flushes {
            // Tables that overlap cannot be moved: whichever compaction takes them writes one.
            for key in [b"key", b"kez"] {
                let key = key.as_ptr().cast();
                (api.rocksdb_put)(db, write, key, 3, key, 3, &mut error);
            }
            (api.rocksdb_flush)(db, flush, &mut error);
            assert!(error.is_null());
        }
        (api.rocksdb_compact_range)(db, null(), 0, null(), 0);
        (api.rocksdb_close)(db);
    }
}

type Lines = Mutex<Vec<(u32, String)>>;

unsafe extern "C" fn keep(lines: *mut c_void, level: c_uint, text: *mut c_char, len: size_t) {
    // SAFETY: the state is the list below, the text has that many bytes.
    unsafe {
        let bytes = std::slice::from_raw_parts(text.cast::<u8>(), len);
        let lines = &*lines.cast::<Lines>();
        lines.lock().unwrap().push((level, String::from_utf8_lossy(bytes).into_owned()));
    }
}

/// The lines that a logger of that level gets.
fn told(api: &Api, level: c_int) -> Vec<(u32, String)> {
    let dir = tempfile::tempdir().unwrap();
    let lines = Box::new(Lines::default());
    // SAFETY: the list outlives the database.
    unsafe {
        let options = (api.rocksdb_options_create)();
        (api.rocksdb_options_set_create_if_missing)(options, 1);
        let state = (&raw const *lines).cast_mut().cast();
        let logger = (api.rocksdb_logger_create_callback_logger)(level, keep, state);
        (api.rocksdb_options_set_info_log)(options, logger);
        (api.rocksdb_logger_destroy)(logger);
        (api.rocksdb_logger_destroy)((api.rocksdb_options_get_info_log)(options));
        live(api, options, &dir.path().join("db"), 5);
        assert!(!dir.path().join("db/LOG").exists(), "there is no file beside a logger");
        (api.rocksdb_options_destroy)(options);
    }
    lines.into_inner().unwrap()
}

#[test]
fn a_logger_is_told_what_the_database_does() {
    for (name, api) in loaded() {
        let lines = told(&api, 1);
        for kind in [
            "RocksDB version: ",
            "Git sha ",
            "DB SUMMARY",
            "DB Session ID: ",
            "SST files in ",
            "Write Ahead Log file in ",
            "Compression algorithms supported:",
            "Fast CRC32 supported: ",
            "Options.create_if_missing: 1",
            "Options.wal_recovery_mode: 2",
            "Options for column family [default]:",
            "Options.write_buffer_size: 67108864",
            "table_factory options: ",
            "DB ID: ",
            "DB pointer ",
            "New memtable created with log file: ",
            "EVENT_LOG_v1 {\"time_micros\": ",
            "\"event\": \"flush_started\"",
            "\"event\": \"table_file_creation\"",
            "\"event\": \"flush_finished\"",
            "\"event\": \"compaction_started\"",
            "\"event\": \"compaction_finished\"",
            "\"event\": \"table_file_deletion\"",
            "Shutdown: canceling all background work",
            "Shutdown complete",
        ] {
            let found = lines.iter().find(|(_, text)| text.contains(kind));
            assert_eq!(found.map(|(level, _)| *level), Some(1), "{name}: {kind}\n{lines:#?}");
        }
        assert!(lines.len() > 250, "{name}: {} lines", lines.len());
        for event in lines.iter().filter_map(|(_, text)| text.split_once("EVENT_LOG_v1 ")) {
            let (_, json) = event;
            assert!(json.starts_with('{') && json.trim_end().ends_with('}'), "{name}: {json}");
        }
    }
}

#[test]
fn options_of_tables_and_objects_have_rocksdbs_lines() {
    for (name, api) in loaded() {
        let dir = tempfile::tempdir().unwrap();
        // SAFETY: objects of the library.
        let text = unsafe {
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_options_set_create_if_missing)(options, 1);
            (api.rocksdb_options_set_uint64add_merge_operator)(options);
            (api.rocksdb_options_add_compact_on_deletion_collector_factory)(options, 100, 10);
            (api.rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio)(options, 0, 0, 0.5);
            let table = (api.rocksdb_block_based_options_create)();
            (api.rocksdb_block_based_options_set_block_cache)(table, (api.rocksdb_cache_create_lru)(3 << 20));
            (api.rocksdb_block_based_options_set_block_size)(table, 5000);
            (api.rocksdb_options_set_block_based_table_factory)(options, table);
            live(&api, options, &dir.path().join("db"), 1);
            std::fs::read_to_string(dir.path().join("db/LOG")).unwrap()
        };
        for line in [
            "Options.comparator: leveldb.BytewiseComparator\n",
            "Options.merge_operator: UInt64AddOperator\n",
            "Options.compaction_filter: None\n",
            "Options.compaction_filter_factory: None\n",
            "Options.sst_partitioner_factory: None\n",
            "Options.memtable_factory: SkipListFactory\n",
            "Options.table_factory: BlockBasedTable\n",
            "  block_cache: 0x",
            "  block_cache_options:\n    capacity : 3145728\n",
            "    strict_capacity_limit : 0\n",
            "  block_size: 5000\n",
            "  filter_policy: nullptr\n",
            "Options.bottommost_compression: Disabled\n",
            "Options.compression_opts.enabled: false\n",
            "Options.max_bytes_for_level_multiplier_addtl[6]: 1\n",
            "Options.table_properties_collectors: CompactOnDeletionCollector (Sliding window size = 100 \
             Deletion trigger = 10 Deletion ratio = 0);CompactOnDeletionCollector (Sliding window size = 0 \
             Deletion trigger = 0 Deletion ratio = 0.5);\n",
            "Options.enable_blob_files: false\n",
            "Options.blob_compression_type: NoCompression\n",
        ] {
            assert!(text.contains(line), "{name}: {line}\n{text}");
        }
    }
}

#[test]
fn a_logger_gets_no_lines_below_its_level() {
    for (name, api) in loaded() {
        for level in [2, 3, 4] {
            let lines = told(&api, level);
            // The header of LOG is written at any level.
            let begins = lines.iter().position(|(_, text)| text.contains("DB pointer ")).expect("a header");
            let lines = &lines[begins + 1..];
            assert!(lines.iter().all(|(of, _)| *of >= level as u32), "{name}: {level}\n{lines:#?}");
            assert!(!lines.iter().any(|(_, text)| text.contains("EVENT_LOG")), "{name}: {level}");
        }
    }
}

/// Names of the files of LOG in `dir`, without what is a time.
fn log_files(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().contains("LOG"))
        .collect();
    found.sort();
    found
}

#[test]
fn lines_below_the_level_are_not_in_the_file() {
    for (name, api) in loaded() {
        let dir = tempfile::tempdir().unwrap();
        // SAFETY: objects of the library.
        let text = unsafe {
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_options_set_create_if_missing)(options, 1);
            (api.rocksdb_options_set_info_log_level)(options, 3);
            live(&api, options, &dir.path().join("db"), 2);
            (api.rocksdb_options_destroy)(options);
            std::fs::read_to_string(dir.path().join("db/LOG")).unwrap()
        };
        assert_eq!(text, "", "{name}");
    }
}

#[test]
fn the_file_rolls_by_size_and_old_ones_go() {
    for (name, api) in loaded() {
        let dir = tempfile::tempdir().unwrap();
        let db = dir.path().join("db");
        // SAFETY: objects of the library.
        unsafe {
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_options_set_create_if_missing)(options, 1);
            (api.rocksdb_options_set_max_log_file_size)(options, 30_000);
            (api.rocksdb_options_set_keep_log_file_num)(options, 3);
            live(&api, options, &db, 60);
            live(&api, options, &db, 60);
            (api.rocksdb_options_destroy)(options);
        }
        let files = log_files(&db);
        assert_eq!(files.len(), 3, "{name}: {files:?}");
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            // Each file begins with what the first one began with; one line may go over the size.
            assert!(text.contains("DB SUMMARY"), "{name}: {}", file.display());
            assert!(text.len() < 45_000, "{name}: {} has {} bytes", file.display(), text.len());
        }
    }
}

#[test]
fn a_directory_of_its_own_names_the_database_in_the_file() {
    for (name, api) in loaded() {
        let dir = tempfile::tempdir().unwrap();
        let (db, logs) = (dir.path().join("db"), dir.path().join("logs"));
        // SAFETY: objects of the library.
        unsafe {
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_options_set_create_if_missing)(options, 1);
            let log_dir = CString::new(logs.to_str().unwrap()).unwrap();
            (api.rocksdb_options_set_db_log_dir)(options, log_dir.as_ptr());
            live(&api, options, &db, 1);
            live(&api, options, &db, 1);
            assert!(!db.join("LOG").exists(), "{name}");
            let expected = db.to_str().unwrap().trim_start_matches('/').replace('/', "_") + "_LOG";
            let files = log_files(&logs);
            assert_eq!(files.len(), 2, "{name}: {files:?}");
            assert_eq!(files[0], logs.join(&expected), "{name}");
            assert!(files[1].to_str().unwrap().contains(&format!("{expected}.old.")), "{name}: {files:?}");
            let mut error = null_mut();
            let path = CString::new(db.to_str().unwrap()).unwrap();
            (api.rocksdb_destroy_db)(options, path.as_ptr(), &mut error);
            assert!(error.is_null());
            // RocksDB leaves them, and one more, of the destruction itself.
            assert!(name != "outcrop" || log_files(&logs).is_empty(), "{name}");
            (api.rocksdb_options_destroy)(options);
        }
    }
}
