//! The reports on compactions for C listeners and callers of `rocksdb_compact_files`:
//! `rocksdb_compactionjobinfo_*`, `rocksdb_subcompactionjobinfo_*`, `rocksdb_compaction_job_stats_*`,
//! `rocksdb_compaction_file_info_*`.

use crate::event_infos::{getters, path_bytes, rocksdb_blob_file_addition_info_t};
use crate::memory::{Errptr, give_back, hand_out, set_error, slice};
use crate::settings::{Fate, Flag, Note};
use crate::table_properties::{lend, rocksdb_table_properties_t};
use libc::{c_char, c_int, size_t};
use outcrop::{
    BlobFileGarbageInfo, CompactionFileInfo, CompactionJobInfo, CompactionJobStats, SubcompactionJobInfo,
};

/// Figures of a compaction.
#[derive(Clone, Default)]
pub struct rocksdb_compaction_job_stats_t(pub CompactionJobStats);

getters! { rocksdb_compaction_job_stats_t:
    rocksdb_compaction_job_stats_elapsed_micros -> u64 |o| o.0.elapsed_micros;
    rocksdb_compaction_job_stats_cpu_micros -> u64 |o| o.0.cpu_micros;
    // Each entry is counted as it is read.
    rocksdb_compaction_job_stats_has_accurate_num_input_records -> Flag |_o| Flag(1);
    rocksdb_compaction_job_stats_num_input_records -> u64 |o| o.0.num_input_records;
    rocksdb_compaction_job_stats_num_blobs_read -> u64 |o| o.0.num_blobs_read;
    rocksdb_compaction_job_stats_num_input_files -> size_t |o| o.0.num_input_files;
    rocksdb_compaction_job_stats_num_input_files_trivially_moved -> size_t
        |o| o.0.num_input_files_trivially_moved;
    rocksdb_compaction_job_stats_num_input_files_at_output_level -> size_t
        |o| o.0.num_input_files_at_output_level;
    rocksdb_compaction_job_stats_num_filtered_input_files -> size_t |_o| 0;
    rocksdb_compaction_job_stats_num_filtered_input_files_at_output_level -> size_t |_o| 0;
    rocksdb_compaction_job_stats_num_output_records -> u64 |o| o.0.num_output_records;
    rocksdb_compaction_job_stats_num_output_files -> size_t |o| o.0.num_output_files;
    rocksdb_compaction_job_stats_num_output_files_blob -> size_t |o| o.0.num_output_files_blob;
    rocksdb_compaction_job_stats_is_full_compaction -> Flag |o| Flag::from(o.0.is_full_compaction);
    rocksdb_compaction_job_stats_is_manual_compaction -> Flag |o| Flag::from(o.0.is_manual_compaction);
    rocksdb_compaction_job_stats_is_remote_compaction -> Flag |_o| Flag(0);
    rocksdb_compaction_job_stats_total_input_bytes -> u64 |o| o.0.total_input_bytes;
    rocksdb_compaction_job_stats_total_blob_bytes_read -> u64 |o| o.0.total_blob_bytes_read;
    rocksdb_compaction_job_stats_total_output_bytes -> u64 |o| o.0.total_output_bytes;
    rocksdb_compaction_job_stats_total_output_bytes_blob -> u64 |o| o.0.total_output_bytes_blob;
    rocksdb_compaction_job_stats_total_skipped_input_bytes -> u64 |_o| 0;
    rocksdb_compaction_job_stats_num_records_replaced -> u64 |o| o.0.num_records_replaced;
    rocksdb_compaction_job_stats_total_input_raw_key_bytes -> u64 |o| o.0.total_input_raw_key_bytes;
    rocksdb_compaction_job_stats_total_input_raw_value_bytes -> u64 |o| o.0.total_input_raw_value_bytes;
    rocksdb_compaction_job_stats_num_input_deletion_records -> u64 |o| o.0.num_input_deletion_records;
    rocksdb_compaction_job_stats_num_expired_deletion_records -> u64 |o| o.0.num_expired_deletion_records;
    // A key that does not parse fails the compaction.
    rocksdb_compaction_job_stats_num_corrupt_keys -> u64 |_o| 0;
    rocksdb_compaction_job_stats_file_write_nanos -> u64 |o| o.0.file_write_nanos;
    rocksdb_compaction_job_stats_file_range_sync_nanos -> u64 |o| o.0.file_range_sync_nanos;
    rocksdb_compaction_job_stats_file_fsync_nanos -> u64 |o| o.0.file_fsync_nanos;
    rocksdb_compaction_job_stats_file_prepare_write_nanos -> u64 |_o| 0;
    rocksdb_compaction_job_stats_smallest_output_key_prefix text |o| &o.0.smallest_output_key_prefix;
    rocksdb_compaction_job_stats_largest_output_key_prefix text |o| &o.0.largest_output_key_prefix;
    rocksdb_compaction_job_stats_num_single_del_fallthru -> u64 |o| o.0.num_single_del_fallthru;
    rocksdb_compaction_job_stats_num_single_del_mismatch -> u64 |o| o.0.num_single_del_mismatch;
}

/// Figures that are always 0 though a reader may expect a value.
pub(crate) const COMPACTION_STATS_NOTES: &[Note] = &[
    never("rocksdb_compaction_job_stats_file_prepare_write_nanos", NO_ROOM_AHEAD),
    never("rocksdb_compaction_job_stats_num_filtered_input_files", ALL_ARE_READ),
    never("rocksdb_compaction_job_stats_num_filtered_input_files_at_output_level", ALL_ARE_READ),
    never("rocksdb_compaction_job_stats_total_skipped_input_bytes", ALL_ARE_READ),
];

const NO_ROOM_AHEAD: &str = "0: no room is made ahead of what is written to a table";
const ALL_ARE_READ: &str =
    "0: a table whose keys a range tombstone covers is read and dropped entry by entry, never left out";

const fn never(function: &'static str, why: &'static str) -> Note {
    Note { function, fate: Fate::Accepted, why }
}

/// A table that a compaction reads or writes.
pub struct rocksdb_compaction_file_info_t(CompactionFileInfo);

getters! { rocksdb_compaction_file_info_t:
    rocksdb_compaction_file_info_level -> c_int |o| o.0.level as c_int;
    rocksdb_compaction_file_info_file_number -> u64 |o| o.0.file_number;
    rocksdb_compaction_file_info_oldest_blob_file_number -> u64 |o| o.0.oldest_blob_file_number;
}

/// Values that a compaction left unreferenced in a blob file.
pub struct rocksdb_blob_file_garbage_info_t(BlobFileGarbageInfo);

getters! { rocksdb_blob_file_garbage_info_t:
    rocksdb_blob_file_garbage_info_blob_file_path text |o| path_bytes(&o.0.path);
    rocksdb_blob_file_garbage_info_blob_file_number -> u64 |o| o.0.number;
    rocksdb_blob_file_garbage_info_garbage_blob_count -> u64 |o| o.0.garbage_blob_count;
    rocksdb_blob_file_garbage_info_garbage_blob_bytes -> u64 |o| o.0.garbage_blob_bytes;
}

/// A compaction.
#[derive(Default)]
pub struct rocksdb_compactionjobinfo_t {
    info: CompactionJobInfo,
    stats: rocksdb_compaction_job_stats_t,
    inputs: Vec<rocksdb_compaction_file_info_t>,
    outputs: Vec<rocksdb_compaction_file_info_t>,
    /// By path, in its order.
    properties: Vec<(Vec<u8>, rocksdb_table_properties_t)>,
    blob_files: Vec<rocksdb_blob_file_addition_info_t>,
    blob_garbage: Vec<rocksdb_blob_file_garbage_info_t>,
}

impl rocksdb_compactionjobinfo_t {
    pub fn new(info: &CompactionJobInfo) -> rocksdb_compactionjobinfo_t {
        let files = |infos: &[CompactionFileInfo]| {
            infos.iter().copied().map(rocksdb_compaction_file_info_t).collect()
        };
        let tables = info.table_properties.iter();
        rocksdb_compactionjobinfo_t {
            stats: rocksdb_compaction_job_stats_t(info.stats.clone()),
            inputs: files(&info.input_file_infos),
            outputs: files(&info.output_file_infos),
            properties: tables
                .map(|(path, table)| (path_bytes(path).to_vec(), rocksdb_table_properties_t::new(table)))
                .collect(),
            blob_files: info.blob_files.iter().cloned().map(rocksdb_blob_file_addition_info_t).collect(),
            blob_garbage: info.blob_garbage.iter().cloned().map(rocksdb_blob_file_garbage_info_t).collect(),
            info: info.clone(),
        }
    }
}

getters! { rocksdb_compactionjobinfo_t:
    rocksdb_compactionjobinfo_cf_id -> u32 |o| o.info.cf_id.0;
    rocksdb_compactionjobinfo_cf_name text |o| o.info.cf_name.as_bytes();
    rocksdb_compactionjobinfo_thread_id -> u64 |o| o.info.thread_id;
    rocksdb_compactionjobinfo_job_id -> c_int |o| o.info.job_id;
    rocksdb_compactionjobinfo_num_l0_files -> c_int |o| o.info.num_l0_files as c_int;
    rocksdb_compactionjobinfo_base_input_level -> c_int |o| o.info.base_input_level as c_int;
    rocksdb_compactionjobinfo_output_level -> c_int |o| o.info.output_level as c_int;
    rocksdb_compactionjobinfo_compaction_reason -> u32 |o| o.info.reason as u32;
    rocksdb_compactionjobinfo_compression -> u32 |o| o.info.compression as u32;
    rocksdb_compactionjobinfo_blob_compression_type -> u32 |o| o.info.blob_compression as u32;
    rocksdb_compactionjobinfo_aborted -> Flag |o| Flag::from(o.info.aborted);
    rocksdb_compactionjobinfo_input_files_count -> size_t |o| o.info.input_files.len();
    rocksdb_compactionjobinfo_output_files_count -> size_t |o| o.info.output_files.len();
    rocksdb_compactionjobinfo_elapsed_micros -> u64 |o| o.info.stats.elapsed_micros;
    rocksdb_compactionjobinfo_num_corrupt_keys -> u64 |_o| 0;
    rocksdb_compactionjobinfo_input_records -> u64 |o| o.info.stats.num_input_records;
    rocksdb_compactionjobinfo_output_records -> u64 |o| o.info.stats.num_output_records;
    rocksdb_compactionjobinfo_total_input_bytes -> u64 |o| o.info.stats.total_input_bytes;
    rocksdb_compactionjobinfo_total_output_bytes -> u64 |o| o.info.stats.total_output_bytes;
    rocksdb_compactionjobinfo_num_input_files -> size_t |o| o.info.stats.num_input_files;
    rocksdb_compactionjobinfo_num_input_files_at_output_level -> size_t
        |o| o.info.stats.num_input_files_at_output_level;
    rocksdb_compactionjobinfo_stats -> *const rocksdb_compaction_job_stats_t |o| &raw const o.stats;
    rocksdb_compactionjobinfo_input_file_infos_count -> size_t |o| o.inputs.len();
    rocksdb_compactionjobinfo_input_file_info_at [place] -> rocksdb_compaction_file_info_t |o| o.inputs.get(place);
    rocksdb_compactionjobinfo_output_file_infos_count -> size_t |o| o.outputs.len();
    rocksdb_compactionjobinfo_output_file_info_at [place] -> rocksdb_compaction_file_info_t |o| o.outputs.get(place);
    rocksdb_compactionjobinfo_table_properties_count -> size_t |o| o.properties.len();
    rocksdb_compactionjobinfo_table_properties_value_at [place] -> rocksdb_table_properties_t
        |o| o.properties.get(place).map(|(_, table)| table);
    rocksdb_compactionjobinfo_blob_file_addition_infos_count -> size_t |o| o.blob_files.len();
    rocksdb_compactionjobinfo_blob_file_addition_info_at [place] -> rocksdb_blob_file_addition_info_t
        |o| o.blob_files.get(place);
    rocksdb_compactionjobinfo_blob_file_garbage_infos_count -> size_t |o| o.blob_garbage.len();
    rocksdb_compactionjobinfo_blob_file_garbage_info_at [place] -> rocksdb_blob_file_garbage_info_t
        |o| o.blob_garbage.get(place);
}

/// Empty, to be filled by `rocksdb_compact_files`.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compactionjobinfo_create() -> *mut rocksdb_compactionjobinfo_t {
    boundary!(hand_out(rocksdb_compactionjobinfo_t::default()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionjobinfo_destroy(info: *mut rocksdb_compactionjobinfo_t) {
    boundary!(give_back(info))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionjobinfo_status(
    info: *const rocksdb_compactionjobinfo_t,
    errptr: Errptr,
) {
    boundary!(errptr, {
        if let Some(error) = &(*info).info.status {
            set_error(errptr, error);
        }
    })
}

/// Functions that give a text of a list, by its place.
macro_rules! texts_at {
    ($($name:ident |$o:ident, $place:ident| $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            info: *const rocksdb_compactionjobinfo_t,
            $place: size_t,
            size: *mut size_t,
        ) -> *const c_char {
            boundary!({
                let $o = &*info;
                match $body {
                    Some(text) => lend(text, size),
                    None => {
                        lend(&[], size);
                        std::ptr::null()
                    }
                }
            })
        }
    )*};
}

texts_at! {
    rocksdb_compactionjobinfo_input_file_at |o, place| o.info.input_files.get(place).map(|path| path_bytes(path));
    rocksdb_compactionjobinfo_output_file_at |o, place| o.info.output_files.get(place).map(|path| path_bytes(path));
    rocksdb_compactionjobinfo_table_properties_key_at |o, place|
        o.properties.get(place).map(|(path, _)| path.as_slice());
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionjobinfo_table_properties_for_file(
    info: *const rocksdb_compactionjobinfo_t,
    file_name: *const c_char,
    len: size_t,
) -> *const rocksdb_table_properties_t {
    boundary!({
        let name = slice(file_name, len);
        let found = (*info).properties.iter().find(|(path, _)| path == name);
        found.map_or(std::ptr::null(), |(_, table)| std::ptr::from_ref(table))
    })
}

/// A part of a compaction.
pub struct rocksdb_subcompactionjobinfo_t {
    info: SubcompactionJobInfo,
    stats: rocksdb_compaction_job_stats_t,
}

impl rocksdb_subcompactionjobinfo_t {
    pub(crate) fn new(info: &SubcompactionJobInfo) -> rocksdb_subcompactionjobinfo_t {
        let stats = rocksdb_compaction_job_stats_t(info.stats.clone());
        rocksdb_subcompactionjobinfo_t { info: info.clone(), stats }
    }
}

getters! { rocksdb_subcompactionjobinfo_t:
    rocksdb_subcompactionjobinfo_cf_id -> u32 |o| o.info.cf_id.0;
    rocksdb_subcompactionjobinfo_cf_name text |o| o.info.cf_name.as_bytes();
    rocksdb_subcompactionjobinfo_thread_id -> u64 |o| o.info.thread_id;
    rocksdb_subcompactionjobinfo_job_id -> c_int |o| o.info.job_id;
    rocksdb_subcompactionjobinfo_subcompaction_job_id -> c_int |o| o.info.subcompaction_job_id;
    rocksdb_subcompactionjobinfo_base_input_level -> c_int |o| o.info.base_input_level as c_int;
    rocksdb_subcompactionjobinfo_output_level -> c_int |o| o.info.output_level as c_int;
    rocksdb_subcompactionjobinfo_compaction_reason -> u32 |o| o.info.reason as u32;
    rocksdb_subcompactionjobinfo_compression -> u32 |o| o.info.compression as u32;
    rocksdb_subcompactionjobinfo_blob_compression_type -> u32 |o| o.info.blob_compression as u32;
    rocksdb_subcompactionjobinfo_stats -> *const rocksdb_compaction_job_stats_t |o| &raw const o.stats;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_subcompactionjobinfo_status(
    info: *const rocksdb_subcompactionjobinfo_t,
    errptr: Errptr,
) {
    boundary!(errptr, {
        if let Some(error) = &(*info).info.status {
            set_error(errptr, error);
        }
    })
}
