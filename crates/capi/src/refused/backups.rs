//! Refused: backups and exports.
//!
//! The functions exist so that bindings load. Those that could start something report NotSupported; the others are
//! about objects that can then not exist, and give null or 0.

use crate::settings::Flag;
use libc::{c_int, c_void, size_t};

/// Any pointer: nothing here looks behind one.
type Ptr = *mut c_void;

kept_object! {
    rocksdb_create_backup_options_t, CREATE_BACKUP_OPTIONS_OBJECT:
    rocksdb_create_backup_options_create, rocksdb_create_backup_options_destroy,
    "backups and exports are not supported; make a checkpoint; what takes these options fails"
}

kept_settings! { rocksdb_create_backup_options_t, CREATE_BACKUP_OPTIONS_NOTES:
    Accepted "backups and exports are not supported; make a checkpoint; what takes these options fails" {
        "atomic_flush" Flag = Flag(0);
            set rocksdb_create_backup_options_set_atomic_flush get rocksdb_create_backup_options_get_atomic_flush -> Flag;
        "background_thread_cpu_priority" c_int = 2;
            set rocksdb_create_backup_options_set_background_thread_cpu_priority get rocksdb_create_backup_options_get_background_thread_cpu_priority -> c_int;
        "decrease_background_thread_cpu_priority" Flag = Flag(0);
            set rocksdb_create_backup_options_set_decrease_background_thread_cpu_priority get rocksdb_create_backup_options_get_decrease_background_thread_cpu_priority -> Flag;
        "flush_before_backup" Flag = Flag(0);
            set rocksdb_create_backup_options_set_flush_before_backup get rocksdb_create_backup_options_get_flush_before_backup -> Flag;
    }
}

kept_object! {
    rocksdb_import_column_family_options_t, IMPORT_COLUMN_FAMILY_OPTIONS_OBJECT:
    rocksdb_import_column_family_options_create, rocksdb_import_column_family_options_destroy,
    "backups and exports are not supported; make a checkpoint; what takes these options fails"
}

kept_settings! { rocksdb_import_column_family_options_t, IMPORT_COLUMN_FAMILY_OPTIONS_NOTES:
    Accepted "backups and exports are not supported; make a checkpoint; what takes these options fails" {
        "move_files" Flag = Flag(0);
            set rocksdb_import_column_family_options_set_move_files get rocksdb_import_column_family_options_get_move_files -> Flag;
    }
}

kept_object! {
    rocksdb_livefiles_storage_info_options_t, LIVEFILES_STORAGE_INFO_OPTIONS_OBJECT:
    rocksdb_livefiles_storage_info_options_create, rocksdb_livefiles_storage_info_options_destroy,
    "backups and exports are not supported; make a checkpoint; what takes these options fails"
}

kept_settings! { rocksdb_livefiles_storage_info_options_t, LIVEFILES_STORAGE_INFO_OPTIONS_NOTES:
    Accepted "backups and exports are not supported; make a checkpoint; what takes these options fails" {
        "atomic_flush" Flag = Flag(0);
            set rocksdb_livefiles_storage_info_options_set_atomic_flush get rocksdb_livefiles_storage_info_options_get_atomic_flush -> Flag;
        "include_checksum_info" Flag = Flag(0);
            set rocksdb_livefiles_storage_info_options_set_include_checksum_info get rocksdb_livefiles_storage_info_options_get_include_checksum_info -> Flag;
        "wal_size_for_flush" u64 = 0;
            set rocksdb_livefiles_storage_info_options_set_wal_size_for_flush get rocksdb_livefiles_storage_info_options_get_wal_size_for_flush -> u64;
    }
}

kept_object! {
    rocksdb_restore_options_t, RESTORE_OPTIONS_OBJECT:
    rocksdb_restore_options_create, rocksdb_restore_options_destroy,
    "backups and exports are not supported; make a checkpoint; what takes these options fails"
}

kept_settings! { rocksdb_restore_options_t, RESTORE_OPTIONS_NOTES:
    Accepted "backups and exports are not supported; make a checkpoint; what takes these options fails" {
        "keep_log_files" c_int = 0;
            set rocksdb_restore_options_set_keep_log_files get rocksdb_restore_options_get_keep_log_files -> Flag;
        "mode" c_int = 65535;
            set rocksdb_restore_options_set_mode get rocksdb_restore_options_get_mode -> c_int;
    }
}

refused! { BACKUPS_REFUSED:
    "backups and exports are not supported; make a checkpoint" {
        rocksdb_backup_engine_close(Ptr);
        rocksdb_backup_engine_create_new_backup(Ptr, Ptr) @ errptr;
        rocksdb_backup_engine_create_new_backup_flush(Ptr, Ptr, Flag) @ errptr;
        rocksdb_backup_engine_create_new_backup_with_metadata(Ptr, Ptr, Ptr, Ptr, size_t, Ptr) @ errptr;
        rocksdb_backup_engine_create_new_backup_with_options(Ptr, Ptr, Ptr, Ptr) @ errptr;
        rocksdb_backup_engine_get_backup_info(Ptr) -> Ptr;
        rocksdb_backup_engine_info_app_metadata(Ptr, c_int, Ptr) -> Ptr;
        rocksdb_backup_engine_info_backup_id(Ptr, c_int) -> u32;
        rocksdb_backup_engine_info_count(Ptr) -> c_int;
        rocksdb_backup_engine_info_destroy(Ptr);
        rocksdb_backup_engine_info_number_files(Ptr, c_int) -> u32;
        rocksdb_backup_engine_info_size(Ptr, c_int) -> u64;
        rocksdb_backup_engine_info_timestamp(Ptr, c_int) -> i64;
        rocksdb_backup_engine_open(Ptr, Ptr) @ errptr -> Ptr;
        rocksdb_backup_engine_open_opts(Ptr, Ptr) @ errptr -> Ptr;
        rocksdb_backup_engine_options_create(Ptr) -> Ptr;
        rocksdb_backup_engine_options_destroy(Ptr);
        rocksdb_backup_engine_options_get_backup_dir(Ptr, Ptr) -> Ptr;
        rocksdb_backup_engine_options_get_backup_log_files(Ptr) -> Flag;
        rocksdb_backup_engine_options_get_backup_rate_limit(Ptr) -> u64;
        rocksdb_backup_engine_options_get_callback_trigger_interval_size(Ptr) -> u64;
        rocksdb_backup_engine_options_get_current_temperatures_override_manifest(Ptr) -> Flag;
        rocksdb_backup_engine_options_get_destroy_old_data(Ptr) -> Flag;
        rocksdb_backup_engine_options_get_io_buffer_size(Ptr) -> u64;
        rocksdb_backup_engine_options_get_max_background_operations(Ptr) -> c_int;
        rocksdb_backup_engine_options_get_max_valid_backups_to_open(Ptr) -> c_int;
        rocksdb_backup_engine_options_get_restore_rate_limit(Ptr) -> u64;
        rocksdb_backup_engine_options_get_schema_version(Ptr) -> c_int;
        rocksdb_backup_engine_options_get_share_files_with_checksum(Ptr) -> Flag;
        rocksdb_backup_engine_options_get_share_files_with_checksum_naming(Ptr) -> c_int;
        rocksdb_backup_engine_options_get_share_table_files(Ptr) -> Flag;
        rocksdb_backup_engine_options_get_sync(Ptr) -> Flag;
        rocksdb_backup_engine_options_set_backup_dir(Ptr, Ptr);
        rocksdb_backup_engine_options_set_backup_log_files(Ptr, Flag);
        rocksdb_backup_engine_options_set_backup_rate_limit(Ptr, u64);
        rocksdb_backup_engine_options_set_backup_rate_limiter(Ptr, Ptr);
        rocksdb_backup_engine_options_set_callback_trigger_interval_size(Ptr, u64);
        rocksdb_backup_engine_options_set_current_temperatures_override_manifest(Ptr, Flag);
        rocksdb_backup_engine_options_set_destroy_old_data(Ptr, Flag);
        rocksdb_backup_engine_options_set_env(Ptr, Ptr);
        rocksdb_backup_engine_options_set_io_buffer_size(Ptr, u64);
        rocksdb_backup_engine_options_set_max_background_operations(Ptr, c_int);
        rocksdb_backup_engine_options_set_max_valid_backups_to_open(Ptr, c_int);
        rocksdb_backup_engine_options_set_restore_rate_limit(Ptr, u64);
        rocksdb_backup_engine_options_set_restore_rate_limiter(Ptr, Ptr);
        rocksdb_backup_engine_options_set_schema_version(Ptr, c_int);
        rocksdb_backup_engine_options_set_share_files_with_checksum(Ptr, Flag);
        rocksdb_backup_engine_options_set_share_files_with_checksum_naming(Ptr, c_int);
        rocksdb_backup_engine_options_set_share_table_files(Ptr, Flag);
        rocksdb_backup_engine_options_set_sync(Ptr, Flag);
        rocksdb_backup_engine_purge_old_backups(Ptr, u32) @ errptr;
        rocksdb_backup_engine_restore_db_from_backup(Ptr, Ptr, Ptr, Ptr, u32) @ errptr;
        rocksdb_backup_engine_restore_db_from_latest_backup(Ptr, Ptr, Ptr, Ptr) @ errptr;
        rocksdb_backup_engine_stop_backup(Ptr);
        rocksdb_backup_engine_verify_backup(Ptr, u32) @ errptr;
        rocksdb_checkpoint_export_column_family(Ptr, Ptr, Ptr) @ errptr -> Ptr;
        rocksdb_create_backup_options_set_exclude_files_callback(Ptr, Ptr, Ptr);
        rocksdb_create_backup_options_set_progress_callback(Ptr, Ptr, Ptr);
        rocksdb_create_column_family_with_import(Ptr, Ptr, Ptr, Ptr, Ptr) @ errptr -> Ptr;
        rocksdb_export_import_files_metadata_create() -> Ptr;
        rocksdb_export_import_files_metadata_destroy(Ptr);
        rocksdb_export_import_files_metadata_get_db_comparator_name(Ptr) -> Ptr;
        rocksdb_export_import_files_metadata_get_files(Ptr) -> Ptr;
        rocksdb_export_import_files_metadata_set_db_comparator_name(Ptr, Ptr);
        rocksdb_export_import_files_metadata_set_files(Ptr, Ptr);
        rocksdb_get_livefiles_storage_info(Ptr, Ptr) @ errptr -> Ptr;
        rocksdb_livefiles_storage_info_count(Ptr) -> size_t;
        rocksdb_livefiles_storage_info_destroy(Ptr);
        rocksdb_livefiles_storage_info_directory(Ptr, size_t) -> Ptr;
        rocksdb_livefiles_storage_info_file_checksum(Ptr, size_t) -> Ptr;
        rocksdb_livefiles_storage_info_file_checksum_func_name(Ptr, size_t) -> Ptr;
        rocksdb_livefiles_storage_info_file_number(Ptr, size_t) -> u64;
        rocksdb_livefiles_storage_info_file_type(Ptr, size_t) -> c_int;
        rocksdb_livefiles_storage_info_relative_filename(Ptr, size_t) -> Ptr;
        rocksdb_livefiles_storage_info_replacement_contents(Ptr, size_t, Ptr) -> Ptr;
        rocksdb_livefiles_storage_info_size(Ptr, size_t) -> u64;
        rocksdb_livefiles_storage_info_temperature(Ptr, size_t) -> c_int;
        rocksdb_livefiles_storage_info_trim_to_size(Ptr, size_t) -> Flag;
    }
}
