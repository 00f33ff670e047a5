//! Refused: compactions by other processes.
//!
//! The functions exist so that bindings load. Those that could start something report NotSupported; the others are
//! about objects that can then not exist, and give null or 0.

use crate::settings::Flag;
use libc::{c_int, c_void, size_t};

/// Any pointer: nothing here looks behind one.
type Ptr = *mut c_void;

kept_object! {
    rocksdb_open_and_compact_options_t, OPEN_AND_COMPACT_OPTIONS_OBJECT:
    rocksdb_open_and_compact_options_create, rocksdb_open_and_compact_options_destroy,
    "compactions run in the database's process; what takes these options fails"
}

kept_settings! { rocksdb_open_and_compact_options_t, OPEN_AND_COMPACT_OPTIONS_NOTES:
    Accepted "compactions run in the database's process; what takes these options fails" {
        "allow_resumption" Flag = Flag(0);
            set rocksdb_open_and_compact_options_set_allow_resumption get rocksdb_open_and_compact_options_get_allow_resumption -> Flag;
    }
}

refused! { REMOTE_COMPACTION_REFUSED:
    "compactions run in the database's process" {
        rocksdb_compaction_service_options_override_add_event_listener(Ptr, Ptr);
        rocksdb_compaction_service_options_override_add_table_properties_collector_factory(Ptr, Ptr);
        rocksdb_compaction_service_options_override_create() -> Ptr;
        rocksdb_compaction_service_options_override_create_from_options(Ptr) -> Ptr;
        rocksdb_compaction_service_options_override_destroy(Ptr);
        rocksdb_compaction_service_options_override_set_block_based_table_factory(Ptr, Ptr);
        rocksdb_compaction_service_options_override_set_compaction_filter(Ptr, Ptr);
        rocksdb_compaction_service_options_override_set_compaction_filter_factory(Ptr, Ptr);
        rocksdb_compaction_service_options_override_set_comparator(Ptr, Ptr);
        rocksdb_compaction_service_options_override_set_cuckoo_table_factory(Ptr, Ptr);
        rocksdb_compaction_service_options_override_set_env(Ptr, Ptr);
        rocksdb_compaction_service_options_override_set_file_checksum_gen_factory(Ptr, Ptr);
        rocksdb_compaction_service_options_override_set_info_log(Ptr, Ptr);
        rocksdb_compaction_service_options_override_set_merge_operator(Ptr, Ptr);
        rocksdb_compaction_service_options_override_set_option(Ptr, Ptr, Ptr);
        rocksdb_compaction_service_options_override_set_prefix_extractor(Ptr, Ptr);
        rocksdb_compaction_service_options_override_set_sst_partitioner_factory(Ptr, Ptr);
        rocksdb_compaction_service_options_override_set_statistics(Ptr, Ptr);
        rocksdb_compactionservice_create(Ptr, Ptr, Ptr, Ptr, Ptr, Ptr, Ptr) -> Ptr;
        rocksdb_compactionservice_jobinfo_t_get_base_input_level(Ptr) -> c_int;
        rocksdb_compactionservice_jobinfo_t_get_cf_id(Ptr) -> u32;
        rocksdb_compactionservice_jobinfo_t_get_cf_name(Ptr, Ptr) -> Ptr;
        rocksdb_compactionservice_jobinfo_t_get_compaction_reason(Ptr) -> c_int;
        rocksdb_compactionservice_jobinfo_t_get_db_id(Ptr, Ptr) -> Ptr;
        rocksdb_compactionservice_jobinfo_t_get_db_name(Ptr, Ptr) -> Ptr;
        rocksdb_compactionservice_jobinfo_t_get_db_session_id(Ptr, Ptr) -> Ptr;
        rocksdb_compactionservice_jobinfo_t_get_job_id(Ptr) -> u64;
        rocksdb_compactionservice_jobinfo_t_get_output_level(Ptr) -> c_int;
        rocksdb_compactionservice_jobinfo_t_get_priority(Ptr) -> c_int;
        rocksdb_compactionservice_jobinfo_t_is_bottommost_level(Ptr) -> Flag;
        rocksdb_compactionservice_jobinfo_t_is_full_compaction(Ptr) -> Flag;
        rocksdb_compactionservice_jobinfo_t_is_manual_compaction(Ptr) -> Flag;
        rocksdb_compactionservice_scheduleresponse_create(Ptr, c_int) @ errptr -> Ptr;
        rocksdb_compactionservice_scheduleresponse_create_with_status(c_int) @ errptr -> Ptr;
        rocksdb_compactionservice_scheduleresponse_get_scheduled_job_id(Ptr, Ptr) -> Ptr;
        rocksdb_compactionservice_scheduleresponse_getstatus(Ptr) -> c_int;
        rocksdb_compactionservice_scheduleresponse_t_destroy(Ptr);
        rocksdb_open_and_compact(Ptr, Ptr, Ptr, size_t, Ptr, Ptr) @ errptr -> Ptr;
        rocksdb_open_and_compact_canceled_create() -> Ptr;
        rocksdb_open_and_compact_canceled_destroy(Ptr);
        rocksdb_open_and_compact_canceled_set(Ptr, Flag);
        rocksdb_open_and_compact_options_set_canceled(Ptr, Ptr);
        rocksdb_open_and_compact_with_options(Ptr, Ptr, Ptr, Ptr, size_t, Ptr, Ptr) @ errptr -> Ptr;
    }
}
