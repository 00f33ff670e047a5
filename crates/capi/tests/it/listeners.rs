//! Listeners beside RocksDB's: the same calls on both, what is told compared by kind, in order, with the main fields.
//!
//! Not compared: numbers and sizes of files, times, threads and job numbers, which differ between any two runs. Facts
//! that must hold in each by itself are asserted where they are told.

use crate::library::{Bytes, Errptr, Object, c_functions, error_text, outcrop_library, reference};
use libc::{c_char, c_int, c_uchar, c_void, size_t};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::Mutex;

type Callback = unsafe extern "C" fn(*mut c_void, Object, Object);
type PlainCallback = unsafe extern "C" fn(*mut c_void, Object);

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_destroy: fn(Object);
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_disable_auto_compactions: fn(Object, c_int);
    rocksdb_options_set_compression: fn(Object, c_int);
    rocksdb_options_set_level0_file_num_compaction_trigger: fn(Object, c_int);
    rocksdb_options_set_level0_slowdown_writes_trigger: fn(Object, c_int);
    rocksdb_options_set_level_compaction_dynamic_level_bytes: fn(Object, c_uchar);
    rocksdb_options_set_enable_blob_files: fn(Object, c_uchar);
    rocksdb_options_set_min_blob_size: fn(Object, u64);
    rocksdb_options_set_write_buffer_size: fn(Object, size_t);
    rocksdb_options_add_eventlistener: fn(Object, Object);
    rocksdb_eventlistener_create: fn(*mut c_void, unsafe extern "C" fn(*mut c_void), Callback, Callback, Callback, Callback,
        PlainCallback, PlainCallback, Callback, unsafe extern "C" fn(*mut c_void, u32, Object), PlainCallback, PlainCallback) -> Object;
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_close: fn(Object);
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_put: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_delete: fn(Object, Object, Bytes, size_t, Errptr);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_flushoptions_set_listener_wait: fn(Object, c_uchar);
    rocksdb_flush: fn(Object, Object, Errptr);
    rocksdb_compact_range: fn(Object, Bytes, size_t, Bytes, size_t);
    rocksdb_wait_for_compact_options_create: fn() -> Object;
    rocksdb_wait_for_compact: fn(Object, Object, Errptr);
    rocksdb_get_latest_sequence_number: fn(Object) -> u64;
    rocksdb_envoptions_create: fn() -> Object;
    rocksdb_sstfilewriter_create: fn(Object, Object) -> Object;
    rocksdb_sstfilewriter_open: fn(Object, Bytes, Errptr);
    rocksdb_sstfilewriter_put: fn(Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_sstfilewriter_finish: fn(Object, Errptr);
    rocksdb_sstfilewriter_destroy: fn(Object);
    rocksdb_ingestexternalfileoptions_create: fn() -> Object;
    rocksdb_ingest_external_file: fn(Object, *const Bytes, size_t, Object, Errptr);
    rocksdb_livefiles: fn(Object) -> Object;
    rocksdb_livefiles_count: fn(Object) -> c_int;
    rocksdb_livefiles_name: fn(Object, c_int) -> Bytes;
    rocksdb_compaction_options_create: fn() -> Object;
    rocksdb_compact_files: fn(Object, Object, *const Bytes, size_t, c_int, c_int, *mut *mut *mut c_char, *mut size_t, Object, Errptr);
    rocksdb_compactionjobinfo_create: fn() -> Object;
    rocksdb_compactionjobinfo_destroy: fn(Object);
    rocksdb_free: fn(*mut c_void);
    rocksdb_flushjobinfo_cf_id: fn(Object) -> u32;
    rocksdb_flushjobinfo_cf_name: fn(Object, *mut size_t) -> Bytes;
    rocksdb_flushjobinfo_file_path: fn(Object, *mut size_t) -> Bytes;
    rocksdb_flushjobinfo_file_number: fn(Object) -> u64;
    rocksdb_flushjobinfo_oldest_blob_file_number: fn(Object) -> u64;
    rocksdb_flushjobinfo_job_id: fn(Object) -> c_int;
    rocksdb_flushjobinfo_thread_id: fn(Object) -> u64;
    rocksdb_flushjobinfo_triggered_writes_slowdown: fn(Object) -> c_uchar;
    rocksdb_flushjobinfo_triggered_writes_stop: fn(Object) -> c_uchar;
    rocksdb_flushjobinfo_smallest_seqno: fn(Object) -> u64;
    rocksdb_flushjobinfo_largest_seqno: fn(Object) -> u64;
    rocksdb_flushjobinfo_flush_reason: fn(Object) -> u32;
    rocksdb_flushjobinfo_blob_compression_type: fn(Object) -> u32;
    rocksdb_flushjobinfo_table_properties: fn(Object) -> Object;
    rocksdb_flushjobinfo_blob_file_addition_infos_count: fn(Object) -> size_t;
    rocksdb_flushjobinfo_blob_file_addition_info_at: fn(Object, size_t) -> Object;
    rocksdb_blob_file_addition_info_total_blob_count: fn(Object) -> u64;
    rocksdb_blob_file_addition_info_total_blob_bytes: fn(Object) -> u64;
    rocksdb_table_properties_num_entries: fn(Object) -> u64;
    rocksdb_table_properties_num_deletions: fn(Object) -> u64;
    rocksdb_table_properties_num_range_deletions: fn(Object) -> u64;
    rocksdb_table_properties_raw_key_size: fn(Object) -> u64;
    rocksdb_table_properties_raw_value_size: fn(Object) -> u64;
    rocksdb_table_properties_column_family_id: fn(Object) -> u64;
    rocksdb_table_properties_key_smallest_seqno: fn(Object) -> u64;
    rocksdb_table_properties_key_largest_seqno: fn(Object) -> u64;
    rocksdb_table_properties_has_key_largest_seqno: fn(Object) -> c_uchar;
    rocksdb_table_properties_user_defined_timestamps_persisted: fn(Object) -> u64;
    rocksdb_table_properties_column_family_name: fn(Object, *mut size_t) -> Bytes;
    rocksdb_table_properties_comparator_name: fn(Object, *mut size_t) -> Bytes;
    rocksdb_table_properties_property_collectors_names: fn(Object, *mut size_t) -> Bytes;
    rocksdb_table_properties_user_collected_properties_count: fn(Object) -> size_t;
    rocksdb_table_properties_user_collected_properties_key_at: fn(Object, size_t, *mut size_t) -> Bytes;
    rocksdb_compactionjobinfo_cf_id: fn(Object) -> u32;
    rocksdb_compactionjobinfo_cf_name: fn(Object, *mut size_t) -> Bytes;
    rocksdb_compactionjobinfo_status: fn(Object, Errptr);
    rocksdb_compactionjobinfo_job_id: fn(Object) -> c_int;
    rocksdb_compactionjobinfo_num_l0_files: fn(Object) -> c_int;
    rocksdb_compactionjobinfo_base_input_level: fn(Object) -> c_int;
    rocksdb_compactionjobinfo_output_level: fn(Object) -> c_int;
    rocksdb_compactionjobinfo_compaction_reason: fn(Object) -> u32;
    rocksdb_compactionjobinfo_compression: fn(Object) -> u32;
    rocksdb_compactionjobinfo_aborted: fn(Object) -> c_uchar;
    rocksdb_compactionjobinfo_input_files_count: fn(Object) -> size_t;
    rocksdb_compactionjobinfo_output_files_count: fn(Object) -> size_t;
    rocksdb_compactionjobinfo_input_file_infos_count: fn(Object) -> size_t;
    rocksdb_compactionjobinfo_output_file_infos_count: fn(Object) -> size_t;
    rocksdb_compactionjobinfo_output_file_info_at: fn(Object, size_t) -> Object;
    rocksdb_compactionjobinfo_output_file_at: fn(Object, size_t, *mut size_t) -> Bytes;
    rocksdb_compaction_file_info_level: fn(Object) -> c_int;
    rocksdb_compactionjobinfo_input_records: fn(Object) -> u64;
    rocksdb_compactionjobinfo_output_records: fn(Object) -> u64;
    rocksdb_compactionjobinfo_num_input_files: fn(Object) -> size_t;
    rocksdb_compactionjobinfo_num_input_files_at_output_level: fn(Object) -> size_t;
    rocksdb_compactionjobinfo_stats: fn(Object) -> Object;
    rocksdb_compactionjobinfo_table_properties_count: fn(Object) -> size_t;
    rocksdb_compactionjobinfo_table_properties_value_at: fn(Object, size_t) -> Object;
    rocksdb_compactionjobinfo_table_properties_for_file: fn(Object, Bytes, size_t) -> Object;
    rocksdb_compaction_job_stats_is_full_compaction: fn(Object) -> c_uchar;
    rocksdb_compaction_job_stats_is_manual_compaction: fn(Object) -> c_uchar;
    rocksdb_compaction_job_stats_num_records_replaced: fn(Object) -> u64;
    rocksdb_compaction_job_stats_num_expired_deletion_records: fn(Object) -> u64;
    rocksdb_compaction_job_stats_num_input_deletion_records: fn(Object) -> u64;
    rocksdb_compaction_job_stats_total_input_raw_key_bytes: fn(Object) -> u64;
    rocksdb_compaction_job_stats_total_input_raw_value_bytes: fn(Object) -> u64;
    rocksdb_compaction_job_stats_num_output_files: fn(Object) -> size_t;
    rocksdb_compaction_job_stats_smallest_output_key_prefix: fn(Object, *mut size_t) -> Bytes;
    rocksdb_compaction_job_stats_largest_output_key_prefix: fn(Object, *mut size_t) -> Bytes;
    rocksdb_subcompactionjobinfo_cf_name: fn(Object, *mut size_t) -> Bytes;
    rocksdb_subcompactionjobinfo_job_id: fn(Object) -> c_int;
    rocksdb_subcompactionjobinfo_subcompaction_job_id: fn(Object) -> c_int;
    rocksdb_subcompactionjobinfo_base_input_level: fn(Object) -> c_int;
    rocksdb_subcompactionjobinfo_output_level: fn(Object) -> c_int;
    rocksdb_subcompactionjobinfo_compaction_reason: fn(Object) -> u32;
    rocksdb_subcompactionjobinfo_status: fn(Object, Errptr);
    rocksdb_externalfileingestioninfo_cf_name: fn(Object, *mut size_t) -> Bytes;
    rocksdb_externalfileingestioninfo_external_file_path: fn(Object, *mut size_t) -> Bytes;
    rocksdb_externalfileingestioninfo_internal_file_path: fn(Object, *mut size_t) -> Bytes;
    rocksdb_externalfileingestioninfo_global_seqno: fn(Object) -> u64;
    rocksdb_externalfileingestioninfo_table_properties: fn(Object) -> Object;
    rocksdb_memtableinfo_cf_name: fn(Object, *mut size_t) -> Bytes;
    rocksdb_memtableinfo_first_seqno: fn(Object) -> u64;
    rocksdb_memtableinfo_earliest_seqno: fn(Object) -> u64;
    rocksdb_memtableinfo_num_entries: fn(Object) -> u64;
    rocksdb_memtableinfo_num_deletes: fn(Object) -> u64;
    rocksdb_memtableinfo_newest_udt: fn(Object, *mut size_t) -> Bytes;
    rocksdb_writestallinfo_cf_name: fn(Object, *mut size_t) -> Bytes;
    rocksdb_writestallinfo_cur: fn(Object) -> *const c_int;
    rocksdb_writestallinfo_prev: fn(Object) -> *const c_int;
    rocksdb_status_ptr_get_error: fn(Object, Errptr);
}

/// The reports, by kind.
#[derive(Default)]
struct Reports {
    by_kind: BTreeMap<&'static str, Vec<String>>,
    /// Kinds in order.
    order: Vec<&'static str>,
    /// Job and file of flushes that began.
    begun: Vec<(c_int, u64)>,
    /// Jobs of compactions that began.
    compacting: Vec<c_int>,
    destroyed: usize,
}

/// The state that the callbacks get.
struct State<'a> {
    api: &'a Api,
    told: Mutex<Reports>,
    expects_parts_alone: bool,
}

impl State<'_> {
    fn note(&self, kind: &'static str, what: String) {
        let mut told = self.told.lock().unwrap();
        told.by_kind.entry(kind).or_default().push(what);
        told.order.push(kind);
    }

    /// A callback must not panic: it notes a mistake, which fails the test at its end.
    fn check(&self, holds: bool, what: &str) {
        if !holds {
            self.note("violation", what.to_string());
        }
    }

    /// Waits until `count` of `kind` were told.
    fn wait_for(&self, kind: &'static str, count: usize) {
        while self.told.lock().unwrap().by_kind.get(kind).map_or(0, Vec::len) < count {
            std::thread::yield_now();
        }
    }
}

unsafe fn state<'a>(pointer: *mut c_void) -> &'a State<'a> {
    // SAFETY: the listener is made with a live one.
    unsafe { &*pointer.cast::<State<'a>>() }
}

unsafe fn text(get: unsafe extern "C" fn(Object, *mut size_t) -> Bytes, object: Object) -> String {
    let mut len = 0;
    // SAFETY: a live object; the text has `len` bytes.
    unsafe {
        let start = get(object, &raw mut len);
        if len == 0 {
            return String::new();
        }
        String::from_utf8_lossy(std::slice::from_raw_parts(start.cast::<u8>(), len)).into_owned()
    }
}

unsafe fn error_of(api: &Api, get: unsafe extern "C" fn(Object, Errptr), object: Object) -> String {
    let mut error = null_mut();
    // SAFETY: a live object.
    unsafe {
        get(object, &raw mut error);
        class(api, error)
    }
}

/// The class of an error, empty if there is none.
unsafe fn class(api: &Api, error: *mut c_char) -> String {
    // SAFETY: null, or a message of the library.
    let text = unsafe { error_text(error, api.rocksdb_free) }.unwrap_or_default();
    text.split(": ").next().unwrap_or_default().to_string()
}

unsafe fn properties(a: &Api, p: Object) -> String {
    // SAFETY: live properties.
    unsafe {
        let names = (0..(a.rocksdb_table_properties_user_collected_properties_count)(p)).map(|at| {
            let mut len = 0;
            let name = (a.rocksdb_table_properties_user_collected_properties_key_at)(p, at, &raw mut len);
            String::from_utf8_lossy(std::slice::from_raw_parts(name.cast::<u8>(), len)).into_owned()
        });
        // That option is on by default in RocksDB.
        let names: Vec<String> = names.filter(|name| !name.contains("decoupled")).collect();
        format!(
            "entries {} deletions {} ranges {} keys {} values {} cf {} {} order {} seqs {}..{} {} udt {} collectors {} collected {names:?}",
            (a.rocksdb_table_properties_num_entries)(p),
            (a.rocksdb_table_properties_num_deletions)(p),
            (a.rocksdb_table_properties_num_range_deletions)(p),
            (a.rocksdb_table_properties_raw_key_size)(p),
            (a.rocksdb_table_properties_raw_value_size)(p),
            (a.rocksdb_table_properties_column_family_id)(p),
            text(a.rocksdb_table_properties_column_family_name, p),
            text(a.rocksdb_table_properties_comparator_name, p),
            (a.rocksdb_table_properties_key_smallest_seqno)(p),
            (a.rocksdb_table_properties_key_largest_seqno)(p),
            (a.rocksdb_table_properties_has_key_largest_seqno)(p),
            (a.rocksdb_table_properties_user_defined_timestamps_persisted)(p),
            text(a.rocksdb_table_properties_property_collectors_names, p),
        )
    }
}

unsafe fn flush(a: &Api, info: Object) -> String {
    // SAFETY: a live object.
    unsafe {
        format!(
            "{} {} reason {} seqs {}..{} slow {} stop {} blobs {} codec {}",
            (a.rocksdb_flushjobinfo_cf_id)(info),
            text(a.rocksdb_flushjobinfo_cf_name, info),
            (a.rocksdb_flushjobinfo_flush_reason)(info),
            (a.rocksdb_flushjobinfo_smallest_seqno)(info),
            (a.rocksdb_flushjobinfo_largest_seqno)(info),
            (a.rocksdb_flushjobinfo_triggered_writes_slowdown)(info),
            (a.rocksdb_flushjobinfo_triggered_writes_stop)(info),
            (0..(a.rocksdb_flushjobinfo_blob_file_addition_infos_count)(info))
                .map(|at| (a.rocksdb_flushjobinfo_blob_file_addition_info_at)(info, at))
                .map(|blob| format!(
                    "{}/{}",
                    (a.rocksdb_blob_file_addition_info_total_blob_count)(blob),
                    (a.rocksdb_blob_file_addition_info_total_blob_bytes)(blob)
                ))
                .collect::<Vec<_>>()
                .join(","),
            (a.rocksdb_flushjobinfo_blob_compression_type)(info),
        )
    }
}

unsafe fn check_flush_file(state: &State<'_>, info: Object) -> (c_int, u64) {
    // SAFETY: a live object.
    unsafe {
        let a = state.api;
        let number = (a.rocksdb_flushjobinfo_file_number)(info);
        let path = text(a.rocksdb_flushjobinfo_file_path, info);
        state.check(path.ends_with(&format!("/{number:06}.sst")), &path);
        state.check((a.rocksdb_flushjobinfo_thread_id)(info) > 0, "thread");
        ((a.rocksdb_flushjobinfo_job_id)(info), number)
    }
}

unsafe extern "C" fn flush_begin(pointer: *mut c_void, _: Object, info: Object) {
    // SAFETY: called with what the listener was made with, and live objects: so for all of these.
    unsafe {
        let state = state(pointer);
        let job = check_flush_file(state, info);
        state.told.lock().unwrap().begun.push(job);
        let entries = (state.api.rocksdb_table_properties_num_entries)((state
            .api
            .rocksdb_flushjobinfo_table_properties)(
            info
        ));
        state.note("flush begin", format!("{} entries {entries}", flush(state.api, info)));
    }
}

unsafe extern "C" fn flush_completed(pointer: *mut c_void, db: Object, info: Object) {
    // SAFETY: as above.
    unsafe {
        let state = state(pointer);
        let job = check_flush_file(state, info);
        // RocksDB does not know the number at the begin yet.
        let began = |begun: &(c_int, u64)| begun.0 == job.0 && [0, job.1].contains(&begun.1);
        let began = state.told.lock().unwrap().begun.iter().any(began);
        state.check(began, "a flush that did not begin");
        // The database can be used.
        state.check((state.api.rocksdb_get_latest_sequence_number)(db) > 0, "the database");
        let oldest_blob = (state.api.rocksdb_flushjobinfo_oldest_blob_file_number)(info) > 0;
        let properties = properties(state.api, (state.api.rocksdb_flushjobinfo_table_properties)(info));
        state.note("flush completed", format!("{} {oldest_blob} {properties}", flush(state.api, info)));
    }
}

/// Figures are compared at the end: what RocksDB has of them at the begin depends on the kind of compaction.
unsafe fn compaction(state: &State<'_>, info: Object, ended: bool) -> String {
    // SAFETY: a live object.
    unsafe {
        let a = state.api;
        let stats = (a.rocksdb_compactionjobinfo_stats)(info);
        let outputs: Vec<c_int> = (0..(a.rocksdb_compactionjobinfo_output_file_infos_count)(info))
            .map(|at| {
                (a.rocksdb_compaction_file_info_level)((a.rocksdb_compactionjobinfo_output_file_info_at)(
                    info, at,
                ))
            })
            .collect();
        for at in 0..outputs.len() {
            let mut len = 0;
            let path = (a.rocksdb_compactionjobinfo_output_file_at)(info, at, &raw mut len);
            let table = (a.rocksdb_compactionjobinfo_table_properties_for_file)(info, path, len);
            let is_told = !table.is_null() && (a.rocksdb_table_properties_num_entries)(table) > 0;
            state.check(is_told, "properties of an output");
        }
        let mut tables: Vec<u64> = (0..(a.rocksdb_compactionjobinfo_table_properties_count)(info))
            .map(|at| {
                (a.rocksdb_table_properties_num_entries)((a
                    .rocksdb_compactionjobinfo_table_properties_value_at)(
                    info, at
                ))
            })
            .collect();
        tables.sort_unstable();
        let job = format!(
            "{} {} '{}' reason {} L{}->L{} l0 {} inputs {}/{} outputs {}/{outputs:?} codec {} aborted {} tables {tables:?}",
            (a.rocksdb_compactionjobinfo_cf_id)(info),
            text(a.rocksdb_compactionjobinfo_cf_name, info),
            error_of(a, a.rocksdb_compactionjobinfo_status, info),
            (a.rocksdb_compactionjobinfo_compaction_reason)(info),
            (a.rocksdb_compactionjobinfo_base_input_level)(info),
            (a.rocksdb_compactionjobinfo_output_level)(info),
            (a.rocksdb_compactionjobinfo_num_l0_files)(info),
            (a.rocksdb_compactionjobinfo_input_files_count)(info),
            (a.rocksdb_compactionjobinfo_input_file_infos_count)(info),
            (a.rocksdb_compactionjobinfo_output_files_count)(info),
            (a.rocksdb_compactionjobinfo_compression)(info),
            (a.rocksdb_compactionjobinfo_aborted)(info),
        );
        if !ended {
            return job;
        }
        format!(
            "{job} records {}->{} files {} at output {} full {} manual {} replaced {} expired {} deletions {} keys {} values {} out {} '{}'..'{}'",
            (a.rocksdb_compactionjobinfo_input_records)(info),
            (a.rocksdb_compactionjobinfo_output_records)(info),
            (a.rocksdb_compactionjobinfo_num_input_files)(info),
            (a.rocksdb_compactionjobinfo_num_input_files_at_output_level)(info),
            (a.rocksdb_compaction_job_stats_is_full_compaction)(stats),
            (a.rocksdb_compaction_job_stats_is_manual_compaction)(stats),
            (a.rocksdb_compaction_job_stats_num_records_replaced)(stats),
            (a.rocksdb_compaction_job_stats_num_expired_deletion_records)(stats),
            (a.rocksdb_compaction_job_stats_num_input_deletion_records)(stats),
            (a.rocksdb_compaction_job_stats_total_input_raw_key_bytes)(stats),
            (a.rocksdb_compaction_job_stats_total_input_raw_value_bytes)(stats),
            (a.rocksdb_compaction_job_stats_num_output_files)(stats),
            text(a.rocksdb_compaction_job_stats_smallest_output_key_prefix, stats),
            text(a.rocksdb_compaction_job_stats_largest_output_key_prefix, stats),
        )
    }
}

unsafe extern "C" fn compaction_begin(pointer: *mut c_void, _: Object, info: Object) {
    // SAFETY: as above.
    unsafe {
        let state = state(pointer);
        let job = (state.api.rocksdb_compactionjobinfo_job_id)(info);
        state.told.lock().unwrap().compacting.push(job);
        state.note("compaction begin", compaction(state, info, false));
    }
}

unsafe extern "C" fn compaction_completed(pointer: *mut c_void, _: Object, info: Object) {
    // SAFETY: as above.
    unsafe {
        let state = state(pointer);
        let job = (state.api.rocksdb_compactionjobinfo_job_id)(info);
        let began = state.told.lock().unwrap().compacting.contains(&job);
        state.check(began, "a compaction that did not begin");
        state.note("compaction completed", compaction(state, info, true));
    }
}

unsafe fn part(state: &State<'_>, kind: &'static str, info: Object) {
    // SAFETY: as above.
    unsafe {
        let a = state.api;
        let job = (a.rocksdb_subcompactionjobinfo_job_id)(info);
        // Of a compaction on the caller's thread only the parts are told.
        let began = state.told.lock().unwrap().compacting.contains(&job);
        state.check(began || state.expects_parts_alone, "a part of a compaction that did not begin");
        state.note(
            kind,
            format!(
                "{} '{}' part {} L{}->L{} reason {}",
                text(a.rocksdb_subcompactionjobinfo_cf_name, info),
                error_of(a, a.rocksdb_subcompactionjobinfo_status, info),
                (a.rocksdb_subcompactionjobinfo_subcompaction_job_id)(info),
                (a.rocksdb_subcompactionjobinfo_base_input_level)(info),
                (a.rocksdb_subcompactionjobinfo_output_level)(info),
                (a.rocksdb_subcompactionjobinfo_compaction_reason)(info),
            ),
        );
    }
}

unsafe extern "C" fn subcompaction_begin(pointer: *mut c_void, info: Object) {
    // SAFETY: as above.
    unsafe { part(state(pointer), "subcompaction begin", info) }
}

unsafe extern "C" fn subcompaction_completed(pointer: *mut c_void, info: Object) {
    // SAFETY: as above.
    unsafe { part(state(pointer), "subcompaction completed", info) }
}

unsafe extern "C" fn ingested(pointer: *mut c_void, _: Object, info: Object) {
    // SAFETY: as above.
    unsafe {
        let state = state(pointer);
        let a = state.api;
        let base = |path: String| path.rsplit('/').next().unwrap_or_default().to_string();
        let inside = text(a.rocksdb_externalfileingestioninfo_internal_file_path, info);
        state.check(inside.ends_with(".sst"), &inside);
        state.note(
            "ingested",
            format!(
                "{} {} seq {} {}",
                text(a.rocksdb_externalfileingestioninfo_cf_name, info),
                base(text(a.rocksdb_externalfileingestioninfo_external_file_path, info)),
                (a.rocksdb_externalfileingestioninfo_global_seqno)(info),
                (a.rocksdb_table_properties_num_entries)((a
                    .rocksdb_externalfileingestioninfo_table_properties)(
                    info
                )),
            ),
        );
    }
}

unsafe extern "C" fn background_error(pointer: *mut c_void, reason: u32, status: Object) {
    // SAFETY: as above.
    unsafe {
        let state = state(pointer);
        let error = error_of(state.api, state.api.rocksdb_status_ptr_get_error, status);
        state.note("background error", format!("{reason} {error}"));
    }
}

unsafe extern "C" fn stall_changed(pointer: *mut c_void, info: Object) {
    // SAFETY: as above.
    unsafe {
        let state = state(pointer);
        let a = state.api;
        let (current, previous) =
            (*(a.rocksdb_writestallinfo_cur)(info), *(a.rocksdb_writestallinfo_prev)(info));
        let name = text(a.rocksdb_writestallinfo_cf_name, info);
        state.note("stall", format!("{name} {previous} -> {current}"));
    }
}

unsafe extern "C" fn sealed(pointer: *mut c_void, info: Object) {
    // SAFETY: as above.
    unsafe {
        let state = state(pointer);
        let a = state.api;
        state.note(
            "sealed",
            format!(
                "{} first {} earliest {} entries {} deletes {} udt '{}'",
                text(a.rocksdb_memtableinfo_cf_name, info),
                (a.rocksdb_memtableinfo_first_seqno)(info),
                (a.rocksdb_memtableinfo_earliest_seqno)(info),
                (a.rocksdb_memtableinfo_num_entries)(info),
                (a.rocksdb_memtableinfo_num_deletes)(info),
                text(a.rocksdb_memtableinfo_newest_udt, info),
            ),
        );
    }
}

unsafe extern "C" fn destroyed(pointer: *mut c_void) {
    // SAFETY: as above.
    unsafe { state(pointer).told.lock().unwrap().destroyed += 1 };
}

/// An open database with a listener.
struct Session<'a> {
    state: Box<State<'a>>,
    api: &'a Api,
    db: Object,
    options: Object,
    write: Object,
    dir: &'a Path,
}

impl<'a> Session<'a> {
    /// `configure` is given the options.
    fn open(api: &'a Api, dir: &'a Path, configure: impl FnOnce(Object)) -> Session<'a> {
        let state = Box::new(State {
            api,
            told: Mutex::default(),
            expects_parts_alone: dir.join("parts alone").exists(),
        });
        let path = CString::new(dir.join("db").to_str().unwrap()).unwrap();
        let mut error = null_mut();
        // SAFETY: live objects; the state outlives the database and the options.
        unsafe {
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_options_set_create_if_missing)(options, 1);
            (api.rocksdb_options_set_compression)(options, 0);
            configure(options);
            let listener = (api.rocksdb_eventlistener_create)(
                (&raw const *state).cast_mut().cast(),
                destroyed,
                flush_begin,
                flush_completed,
                compaction_begin,
                compaction_completed,
                subcompaction_begin,
                subcompaction_completed,
                ingested,
                background_error,
                stall_changed,
                sealed,
            );
            (api.rocksdb_options_add_eventlistener)(options, listener);
            let db = (api.rocksdb_open)(options, path.as_ptr(), &raw mut error);
            assert_eq!(class(api, error), "");
            Session { state, api, db, options, write: (api.rocksdb_writeoptions_create)(), dir }
        }
    }

    fn call(&self, call: impl FnOnce(Errptr)) {
        let mut error = null_mut();
        call(&raw mut error);
        // SAFETY: null or a message.
        assert_eq!(unsafe { class(self.api, error) }, "");
    }

    fn put(&self, key: &str, value: &str) {
        let (k, v) = ((key.as_ptr().cast(), key.len()), (value.as_ptr().cast(), value.len()));
        // SAFETY: live objects.
        self.call(|e| unsafe { (self.api.rocksdb_put)(self.db, self.write, k.0, k.1, v.0, v.1, e) });
    }

    fn delete(&self, key: &str) {
        // SAFETY: live objects.
        self.call(|e| unsafe {
            (self.api.rocksdb_delete)(self.db, self.write, key.as_ptr().cast(), key.len(), e)
        });
    }

    /// Returns when listeners were told.
    fn flush(&self) {
        // SAFETY: live objects.
        self.call(|e| unsafe {
            let options = (self.api.rocksdb_flushoptions_create)();
            (self.api.rocksdb_flushoptions_set_listener_wait)(options, 1);
            (self.api.rocksdb_flush)(self.db, options, e);
        });
    }

    fn compact(&self) {
        // SAFETY: live objects.
        unsafe { (self.api.rocksdb_compact_range)(self.db, null(), 0, null(), 0) };
    }

    fn wait_until_idle(&self) {
        // SAFETY: live objects.
        self.call(|e| unsafe {
            (self.api.rocksdb_wait_for_compact)(
                self.db,
                (self.api.rocksdb_wait_for_compact_options_create)(),
                e,
            );
        });
    }

    fn ingest(&self, name: &str, keys: &[&str]) {
        let path = CString::new(self.dir.join(name).to_str().unwrap()).unwrap();
        // SAFETY: live objects.
        unsafe {
            let a = self.api;
            let writer = (a.rocksdb_sstfilewriter_create)((a.rocksdb_envoptions_create)(), self.options);
            self.call(|e| (a.rocksdb_sstfilewriter_open)(writer, path.as_ptr(), e));
            for key in keys {
                let (key, len) = (key.as_ptr().cast(), key.len());
                self.call(|e| (a.rocksdb_sstfilewriter_put)(writer, key, len, key, len, e));
            }
            self.call(|e| (a.rocksdb_sstfilewriter_finish)(writer, e));
            let options = (a.rocksdb_ingestexternalfileoptions_create)();
            self.call(|e| (a.rocksdb_ingest_external_file)(self.db, [path.as_ptr()].as_ptr(), 1, options, e));
            // RocksDB's has a copy of the options.
            (a.rocksdb_sstfilewriter_destroy)(writer);
        }
    }

    /// Closes it, and gives what was told.
    fn close(self) -> Reports {
        // SAFETY: live objects.
        unsafe {
            (self.api.rocksdb_close)(self.db);
            assert_eq!(self.state.told.lock().unwrap().destroyed, 0, "the options have the listener still");
            (self.api.rocksdb_options_destroy)(self.options);
        }
        let told = self.state.told.into_inner().unwrap();
        assert_eq!(told.destroyed, 1);
        told
    }
}

/// Runs `script` on both libraries, and compares what was told.
fn same_on_both(script: impl Fn(&Api, &Path) -> Reports) {
    let run = |library: &Path| {
        let dir = tempfile::tempdir().unwrap();
        let api = Api::load(library);
        let told = script(&api, dir.path());
        std::mem::forget(api);
        told
    };
    let ours = run(&outcrop_library());
    assert!(!ours.order.is_empty());
    if let Some(library) = reference() {
        let theirs = run(&library);
        assert_eq!((ours.by_kind.get("violation"), theirs.by_kind.get("violation")), (None, None));
        for kind in theirs.by_kind.keys().chain(ours.by_kind.keys()) {
            assert_eq!(
                ours.by_kind.get(kind),
                theirs.by_kind.get(kind),
                "{kind} (left: ours, right: RocksDB)"
            );
        }
    }
}

fn by_hand(api: &Api, options: Object) {
    // SAFETY: live options.
    unsafe { (api.rocksdb_options_set_disable_auto_compactions)(options, 1) };
}

#[test]
fn flushes_compactions_and_ingestions_asked_for() {
    same_on_both(|api, dir| {
        let session = Session::open(api, dir, |options| by_hand(api, options));
        session.put("a", "1");
        session.flush();
        session.put("b", "2");
        session.put("c", "3");
        session.put("c", "33");
        session.delete("a");
        session.delete("nothing");
        session.flush();
        assert_eq!(
            session.state.told.lock().unwrap().order,
            ["sealed", "flush begin", "flush completed", "sealed", "flush begin", "flush completed"]
        );
        // Nothing to write: nothing happens.
        session.flush();
        session.compact();
        session.ingest("beside.sst", &["x", "y", "z"]);
        session.ingest("over.sst", &["b"]);
        // A flush of its own, as the memtable has a key of the file.
        session.put("m", "1");
        session.ingest("flushed.sst", &["m"]);
        session.compact();
        session.close()
    });
}

#[test]
fn compactions_by_themselves_and_moves() {
    same_on_both(|api, dir| {
        let session = Session::open(api, dir, |options| // SAFETY: options that the session owns.
        unsafe {
            (api.rocksdb_options_set_level0_file_num_compaction_trigger)(options, 1);
            (api.rocksdb_options_set_level_compaction_dynamic_level_bytes)(options, 0);
        });
        for (key, value) in [("a", "1"), ("a", "2"), ("b", "3"), ("a", "4")] {
            session.put(key, value);
            session.flush();
            session.wait_until_idle();
        }
        session.close()
    });
}

#[test]
fn stalls_begin_and_end() {
    same_on_both(|api, dir| {
        let session = Session::open(api, dir, |options| // SAFETY: options that the session owns.
        unsafe {
            (api.rocksdb_options_set_level0_file_num_compaction_trigger)(options, 2);
            (api.rocksdb_options_set_level0_slowdown_writes_trigger)(options, 2);
        });
        for value in ["1", "2"] {
            session.put("a", value);
            session.flush();
        }
        session.wait_until_idle();
        session.state.wait_for("stall", 2);
        let mut told = session.close();
        // How many tables there are when the flush ends depends on the compaction that it starts.
        told.by_kind.retain(|kind, _| *kind == "stall");
        // RocksDB tells them after the jobs, which run at once: in any order.
        told.by_kind.values_mut().for_each(|stalls| stalls.sort());
        told
    });
}

#[test]
fn full_memtables_and_blob_files() {
    same_on_both(|api, dir| {
        let session = Session::open(api, dir, |options| // SAFETY: options that the session owns.
        unsafe {
            by_hand(api, options);
            (api.rocksdb_options_set_enable_blob_files)(options, 1);
            (api.rocksdb_options_set_min_blob_size)(options, 100);
            (api.rocksdb_options_set_write_buffer_size)(options, 64 << 10);
        });
        let large = "v".repeat(200_000);
        session.put("large", &large);
        // Seals the one that the large value has filled.
        session.put("small", "1");
        session.state.wait_for("flush completed", 1);
        session.flush();
        session.close()
    });
}

/// On this engine alone: RocksDB 11.8.1 compacts these bytes without a word.
#[test]
fn a_compaction_that_meets_a_damaged_table() {
    let dir = tempfile::tempdir().unwrap();
    let (dir, api) = (dir.path(), Api::load(&outcrop_library()));
    let session = Session::open(&api, dir, |options| by_hand(&api, options));
    for value in ["1", "2"] {
        session.put("a", value);
        session.flush();
    }
    session.close();
    let tables = std::fs::read_dir(dir.join("db")).unwrap().map(|entry| entry.unwrap().path());
    let table = tables.filter(|path| path.extension().is_some_and(|end| end == "sst")).min().unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    // In the first data block.
    bytes[3] ^= 0xFF;
    std::fs::write(&table, bytes).unwrap();
    let session = Session::open(&api, dir, |options| by_hand(&api, options));
    session.compact();
    let told = session.close();
    assert_eq!(
        told.order,
        [
            "compaction begin",
            "subcompaction begin",
            "subcompaction completed",
            "compaction completed",
            "background error"
        ]
    );
    assert_eq!(told.by_kind["background error"], ["1 Corruption"]);
    assert!(told.by_kind["subcompaction completed"][0].contains("'Corruption'"));
    assert!(told.by_kind["compaction completed"][0].contains("'Corruption'"));
    std::mem::forget(api);
}

#[test]
fn compact_files_tells_its_caller() {
    let outcome = |api: &Api, dir: &Path| {
        std::fs::write(dir.join("parts alone"), "").unwrap();
        let session = Session::open(api, dir, |options| by_hand(api, options));
        for value in ["1", "2"] {
            session.put("a", value);
            session.put("b", value);
            session.flush();
        }
        // SAFETY: live objects.
        unsafe {
            let files = (api.rocksdb_livefiles)(session.db);
            let names: Vec<Bytes> = (0..(api.rocksdb_livefiles_count)(files))
                .map(|at| (api.rocksdb_livefiles_name)(files, at))
                .collect();
            let info = (api.rocksdb_compactionjobinfo_create)();
            let (mut outputs, mut count) = (null_mut(), 0);
            session.call(|e| {
                (api.rocksdb_compact_files)(
                    session.db,
                    (api.rocksdb_compaction_options_create)(),
                    names.as_ptr(),
                    names.len(),
                    2,
                    0,
                    &raw mut outputs,
                    &raw mut count,
                    info,
                    e,
                );
            });
            assert_eq!(count, 1);
            // RocksDB's figures of L0 here are never set.
            let told = compaction(&session.state, info, true);
            let (before, after) = told.split_once(" l0 ").unwrap();
            session.state.note("caller", format!("{before} {}", after.split_once(' ').unwrap().1));
            (api.rocksdb_compactionjobinfo_destroy)(info);
        }
        session.close()
    };
    same_on_both(outcome);
}
