//! Figures of compactions beside RocksDB's: values read of blob files, single deletions without their put, times of file calls.

use crate::library::{Bytes, Errptr, Object, c_functions, succeeding};
use libc::{c_char, c_double, c_int, c_uchar, c_void, size_t};
use std::ffi::CString;
use std::path::Path;
use std::ptr::null_mut;

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_destroy: fn(Object);
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_disable_auto_compactions: fn(Object, c_int);
    rocksdb_options_set_compression: fn(Object, c_int);
    rocksdb_options_set_uint64add_merge_operator: fn(Object);
    rocksdb_options_set_enable_blob_files: fn(Object, c_uchar);
    rocksdb_options_set_min_blob_size: fn(Object, u64);
    rocksdb_options_set_enable_blob_gc: fn(Object, c_uchar);
    rocksdb_options_set_blob_gc_age_cutoff: fn(Object, c_double);
    rocksdb_options_set_report_bg_io_stats: fn(Object, c_int);
    rocksdb_options_get_report_bg_io_stats: fn(Object) -> c_uchar;
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_close: fn(Object);
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_put: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_merge: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_singledelete: fn(Object, Object, Bytes, size_t, Errptr);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_flush: fn(Object, Object, Errptr);
    rocksdb_livefiles: fn(Object) -> Object;
    rocksdb_livefiles_count: fn(Object) -> c_int;
    rocksdb_livefiles_name: fn(Object, c_int) -> Bytes;
    rocksdb_livefiles_destroy: fn(Object);
    rocksdb_compaction_options_create: fn() -> Object;
    rocksdb_compact_files: fn(Object, Object, *const Bytes, size_t, c_int, c_int, *mut *mut *mut c_char, *mut size_t, Object, Errptr);
    rocksdb_compactionjobinfo_create: fn() -> Object;
    rocksdb_compactionjobinfo_destroy: fn(Object);
    rocksdb_compactionjobinfo_stats: fn(Object) -> Object;
    rocksdb_compaction_job_stats_num_blobs_read: fn(Object) -> u64;
    rocksdb_compaction_job_stats_total_blob_bytes_read: fn(Object) -> u64;
    rocksdb_compaction_job_stats_num_filtered_input_files: fn(Object) -> size_t;
    rocksdb_compaction_job_stats_total_skipped_input_bytes: fn(Object) -> u64;
    rocksdb_compaction_job_stats_num_single_del_fallthru: fn(Object) -> u64;
    rocksdb_compaction_job_stats_num_single_del_mismatch: fn(Object) -> u64;
    rocksdb_compaction_job_stats_num_output_records: fn(Object) -> u64;
    rocksdb_compaction_job_stats_file_write_nanos: fn(Object) -> u64;
    rocksdb_compaction_job_stats_file_range_sync_nanos: fn(Object) -> u64;
    rocksdb_compaction_job_stats_file_fsync_nanos: fn(Object) -> u64;
    rocksdb_free: fn(*mut c_void);
}

/// A script that ends with a compaction of everything; gives the compaction's figures, and which events of LOG have times of file calls.
fn figures(api: &Api, dir: &Path, timed: bool) -> String {
    let path = CString::new(dir.to_str().unwrap()).unwrap();
    // SAFETY: live objects, and pointers to live bytes.
    unsafe {
        let options = (api.rocksdb_options_create)();
        (api.rocksdb_options_set_create_if_missing)(options, 1);
        (api.rocksdb_options_set_disable_auto_compactions)(options, 1);
        (api.rocksdb_options_set_compression)(options, 0);
        (api.rocksdb_options_set_uint64add_merge_operator)(options);
        (api.rocksdb_options_set_enable_blob_files)(options, 1);
        (api.rocksdb_options_set_min_blob_size)(options, 100);
        (api.rocksdb_options_set_enable_blob_gc)(options, 1);
        (api.rocksdb_options_set_blob_gc_age_cutoff)(options, 1.0);
        (api.rocksdb_options_set_report_bg_io_stats)(options, if timed { 2 } else { 0 });
        assert_eq!((api.rocksdb_options_get_report_bg_io_stats)(options), c_uchar::from(timed));
        let db = succeeding(api.rocksdb_free, |e| (api.rocksdb_open)(options, path.as_ptr(), e));
        let writing = (api.rocksdb_writeoptions_create)();
        let flushing = (api.rocksdb_flushoptions_create)();
        let put = |key: &str, value: &[u8]| {
            let (from, len) = (value.as_ptr().cast(), value.len());
            succeeding(api.rocksdb_free, |e| {
                (api.rocksdb_put)(db, writing, key.as_ptr().cast(), key.len(), from, len, e);
            });
        };
        let single_delete = |key: &str| {
            succeeding(api.rocksdb_free, |e| {
                (api.rocksdb_singledelete)(db, writing, key.as_ptr().cast(), key.len(), e);
            });
        };
        let flush = || succeeding(api.rocksdb_free, |e| (api.rocksdb_flush)(db, flushing, e));
        for number in 0..10 {
            put(&format!("blob {number}"), &[b'v'; 200]);
        }
        put("paired", b"1");
        put("twice", b"1");
        succeeding(api.rocksdb_free, |e| {
            (api.rocksdb_merge)(db, writing, c"merged".as_ptr(), 6, 1u64.to_le_bytes().as_ptr().cast(), 8, e);
        });
        flush();
        for key in ["alone", "paired", "twice", "merged"] {
            single_delete(key);
        }
        flush();
        single_delete("twice");
        put("blob 3", &[b'w'; 150]);
        flush();
        let files = (api.rocksdb_livefiles)(db);
        let names: Vec<Bytes> = (0..(api.rocksdb_livefiles_count)(files))
            .map(|at| (api.rocksdb_livefiles_name)(files, at))
            .collect();
        let info = (api.rocksdb_compactionjobinfo_create)();
        let (mut outputs, mut count) = (null_mut(), 0);
        let how = (api.rocksdb_compaction_options_create)();
        let (given, number) = (names.as_ptr(), names.len());
        succeeding(api.rocksdb_free, |e| {
            (api.rocksdb_compact_files)(
                db,
                how,
                given,
                number,
                6,
                0,
                &raw mut outputs,
                &raw mut count,
                info,
                e,
            );
        });
        (api.rocksdb_livefiles_destroy)(files);
        let stats = (api.rocksdb_compactionjobinfo_stats)(info);
        let told = format!(
            "blobs {} bytes {} left out {} {} single deletions alone {} mismatched {} out {} write {} range sync {} sync {}",
            (api.rocksdb_compaction_job_stats_num_blobs_read)(stats),
            (api.rocksdb_compaction_job_stats_total_blob_bytes_read)(stats),
            (api.rocksdb_compaction_job_stats_num_filtered_input_files)(stats),
            (api.rocksdb_compaction_job_stats_total_skipped_input_bytes)(stats),
            (api.rocksdb_compaction_job_stats_num_single_del_fallthru)(stats),
            (api.rocksdb_compaction_job_stats_num_single_del_mismatch)(stats),
            (api.rocksdb_compaction_job_stats_num_output_records)(stats),
            (api.rocksdb_compaction_job_stats_file_write_nanos)(stats) > 0,
            (api.rocksdb_compaction_job_stats_file_range_sync_nanos)(stats) > 0,
            (api.rocksdb_compaction_job_stats_file_fsync_nanos)(stats) > 0,
        );
        (api.rocksdb_compactionjobinfo_destroy)(info);
        (api.rocksdb_close)(db);
        (api.rocksdb_options_destroy)(options);
        let log = std::fs::read_to_string(dir.join("LOG")).unwrap();
        let has_times = |event: &str| {
            let mut lines = log.lines().filter(|line| line.contains(event)).peekable();
            assert!(lines.peek().is_some(), "{event} is in LOG");
            let fields =
                ["file_write_nanos", "file_range_sync_nanos", "file_fsync_nanos", "file_prepare_write_nanos"];
            lines.all(|line| fields.iter().all(|field| line.contains(field)))
        };
        format!("{told} LOG {} {}", has_times("\"flush_finished\""), has_times("\"compaction_finished\""))
    }
}

#[test]
fn figures_of_compactions_are_those_of_rocksdb() {
    // Ten values are moved, one of them a newer one: 32 bytes of header, 6 of key, and the value.
    let counts = "blobs 10 bytes 2330 left out 0 0 single deletions alone 1 mismatched 2 out 10";
    assert_eq!(
        Api::same_on_both(|api, dir| figures(api, dir, true)),
        format!("{counts} write true range sync false sync true LOG true true")
    );
    assert_eq!(
        Api::same_on_both(|api, dir| figures(api, dir, false)),
        format!("{counts} write false range sync false sync false LOG false false")
    );
}
