//! The reports for C listeners on flushes, memtables, stalls, ingested files and errors: `rocksdb_flushjobinfo_*`,
//! `rocksdb_memtableinfo_*`, `rocksdb_writestallinfo_*`, `rocksdb_externalfileingestioninfo_*`,
//! `rocksdb_status_ptr_*`.
//!
//! An object lives as long as the callback that it is given to; so do the texts in it.

use crate::memory::{Errptr, set_error};
use crate::settings::Flag;
use crate::table_properties::rocksdb_table_properties_t;
use libc::{c_char, c_int, size_t};
use outcrop::{
    BlobFileAdditionInfo, Error, ExternalFileIngestionInfo, FlushJobInfo, MemTableInfo, StallCondition,
    WriteStallInfo,
};
use std::path::Path;

/// The bytes of a path.
pub(crate) fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

/// Getters of one object: numbers as `function -> type |object| expression`, texts as `function text |object| expression`.
macro_rules! getters {
    ($object:ident: $($rest:tt)*) => { getters!(@next $object $($rest)*); };
    (@next $object:ident) => {};
    (@next $object:ident $name:ident -> $type:ty |$o:ident| $body:expr; $($rest:tt)*) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(object: *const $object) -> $type {
            boundary!({
                let $o = &*object;
                $body
            })
        }
        getters!(@next $object $($rest)*);
    };
    (@next $object:ident $name:ident text |$o:ident| $body:expr; $($rest:tt)*) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(object: *const $object, size: *mut size_t) -> *const c_char {
            boundary!({
                let $o = &*object;
                $crate::table_properties::lend($body, size)
            })
        }
        getters!(@next $object $($rest)*);
    };
    (@next $object:ident $name:ident [$place:ident] -> $type:ty |$o:ident| $body:expr; $($rest:tt)*) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(object: *const $object, $place: size_t) -> *const $type {
            boundary!({
                let $o = &*object;
                $body.map_or(std::ptr::null(), std::ptr::from_ref)
            })
        }
        getters!(@next $object $($rest)*);
    };
}
pub(crate) use getters;

/// A blob file that a job wrote.
pub struct rocksdb_blob_file_addition_info_t(pub(crate) BlobFileAdditionInfo);

getters! { rocksdb_blob_file_addition_info_t:
    rocksdb_blob_file_addition_info_blob_file_path text |info| path_bytes(&info.0.path);
    rocksdb_blob_file_addition_info_blob_file_number -> u64 |info| info.0.number;
    rocksdb_blob_file_addition_info_total_blob_count -> u64 |info| info.0.total_blob_count;
    rocksdb_blob_file_addition_info_total_blob_bytes -> u64 |info| info.0.total_blob_bytes;
}

/// A flush.
pub struct rocksdb_flushjobinfo_t {
    info: FlushJobInfo,
    properties: rocksdb_table_properties_t,
    blob_files: Vec<rocksdb_blob_file_addition_info_t>,
}

impl rocksdb_flushjobinfo_t {
    /// At the begin of a flush there is no table yet.
    pub(crate) fn new(info: &FlushJobInfo, has_table: bool) -> rocksdb_flushjobinfo_t {
        let properties = || rocksdb_table_properties_t::new(&info.properties);
        rocksdb_flushjobinfo_t {
            info: info.clone(),
            properties: if has_table { properties() } else { rocksdb_table_properties_t::none() },
            blob_files: info.blob_files.iter().cloned().map(rocksdb_blob_file_addition_info_t).collect(),
        }
    }
}

getters! { rocksdb_flushjobinfo_t:
    rocksdb_flushjobinfo_cf_id -> u32 |o| o.info.cf_id.0;
    rocksdb_flushjobinfo_cf_name text |o| o.info.cf_name.as_bytes();
    rocksdb_flushjobinfo_file_path text |o| path_bytes(&o.info.file_path);
    rocksdb_flushjobinfo_file_number -> u64 |o| o.info.file_number;
    rocksdb_flushjobinfo_oldest_blob_file_number -> u64 |o| o.info.oldest_blob_file_number;
    rocksdb_flushjobinfo_thread_id -> u64 |o| o.info.thread_id;
    rocksdb_flushjobinfo_job_id -> c_int |o| o.info.job_id;
    rocksdb_flushjobinfo_triggered_writes_slowdown -> Flag |o| Flag::from(o.info.triggered_writes_slowdown);
    rocksdb_flushjobinfo_triggered_writes_stop -> Flag |o| Flag::from(o.info.triggered_writes_stop);
    rocksdb_flushjobinfo_smallest_seqno -> u64 |o| o.info.smallest_seqno.0;
    rocksdb_flushjobinfo_largest_seqno -> u64 |o| o.info.largest_seqno.0;
    rocksdb_flushjobinfo_flush_reason -> u32 |o| o.info.reason as u32;
    rocksdb_flushjobinfo_blob_compression_type -> u32 |o| o.info.blob_compression as u32;
    rocksdb_flushjobinfo_table_properties -> *const rocksdb_table_properties_t |o| &raw const o.properties;
    rocksdb_flushjobinfo_blob_file_addition_infos_count -> size_t |o| o.blob_files.len();
    rocksdb_flushjobinfo_blob_file_addition_info_at [place] -> rocksdb_blob_file_addition_info_t
        |o| o.blob_files.get(place);
}

/// A memtable that takes no more writes.
pub struct rocksdb_memtableinfo_t(pub(crate) MemTableInfo);

getters! { rocksdb_memtableinfo_t:
    rocksdb_memtableinfo_cf_name text |info| info.0.cf_name.as_bytes();
    rocksdb_memtableinfo_first_seqno -> u64 |info| info.0.first_seqno.0;
    rocksdb_memtableinfo_earliest_seqno -> u64 |info| info.0.earliest_seqno.0;
    rocksdb_memtableinfo_num_entries -> u64 |info| info.0.num_entries;
    rocksdb_memtableinfo_num_deletes -> u64 |info| info.0.num_deletes;
    // There are no timestamps.
    rocksdb_memtableinfo_newest_udt text |_info| &[];
}

/// RocksDB's number of a stall.
#[repr(transparent)]
pub struct rocksdb_writestallcondition_t(pub(crate) c_int);

impl rocksdb_writestallcondition_t {
    fn new(condition: StallCondition) -> rocksdb_writestallcondition_t {
        rocksdb_writestallcondition_t(match condition {
            StallCondition::Delayed => 0,
            StallCondition::Stopped => 1,
            StallCondition::Normal => 2,
        })
    }
}

/// A change of a stall.
pub struct rocksdb_writestallinfo_t {
    cf_name: String,
    current: rocksdb_writestallcondition_t,
    previous: rocksdb_writestallcondition_t,
}

impl rocksdb_writestallinfo_t {
    pub(crate) fn new(info: &WriteStallInfo) -> rocksdb_writestallinfo_t {
        rocksdb_writestallinfo_t {
            cf_name: info.cf_name.clone(),
            current: rocksdb_writestallcondition_t::new(info.current),
            previous: rocksdb_writestallcondition_t::new(info.previous),
        }
    }
}

getters! { rocksdb_writestallinfo_t:
    rocksdb_writestallinfo_cf_name text |o| o.cf_name.as_bytes();
    rocksdb_writestallinfo_cur -> *const rocksdb_writestallcondition_t |o| &raw const o.current;
    rocksdb_writestallinfo_prev -> *const rocksdb_writestallcondition_t |o| &raw const o.previous;
}

/// A file that was ingested.
pub struct rocksdb_externalfileingestioninfo_t {
    info: ExternalFileIngestionInfo,
    properties: rocksdb_table_properties_t,
}

impl rocksdb_externalfileingestioninfo_t {
    pub(crate) fn new(info: &ExternalFileIngestionInfo) -> rocksdb_externalfileingestioninfo_t {
        let properties = rocksdb_table_properties_t::new(&info.properties);
        rocksdb_externalfileingestioninfo_t { info: info.clone(), properties }
    }
}

getters! { rocksdb_externalfileingestioninfo_t:
    rocksdb_externalfileingestioninfo_cf_name text |o| o.info.cf_name.as_bytes();
    rocksdb_externalfileingestioninfo_external_file_path text |o| path_bytes(&o.info.external_file_path);
    rocksdb_externalfileingestioninfo_internal_file_path text |o| path_bytes(&o.info.internal_file_path);
    rocksdb_externalfileingestioninfo_global_seqno -> u64 |o| o.info.global_seqno.0;
    rocksdb_externalfileingestioninfo_table_properties -> *const rocksdb_table_properties_t
        |o| &raw const o.properties;
}

/// An error that a listener may take away.
pub struct rocksdb_status_ptr_t(pub(crate) Option<Error>);

/// From here on there is no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_reset_status(status: *mut rocksdb_status_ptr_t) {
    boundary!((*status).0 = None)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_status_ptr_get_error(status: *mut rocksdb_status_ptr_t, errptr: Errptr) {
    boundary!(errptr, {
        if let Some(error) = &(*status).0 {
            set_error(errptr, error);
        }
    })
}
