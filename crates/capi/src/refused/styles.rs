//! Refused: settings of table kinds and compaction styles that are not done.
//!
//! The functions exist so that bindings load. Those that could start something report NotSupported; the others are
//! about objects that can then not exist, and give null or 0.

use crate::compaction_options::{rocksdb_fifo_compaction_options_t, rocksdb_universal_compaction_options_t};
use crate::settings::Flag;
use libc::{c_double, c_int};

kept_object! {
    rocksdb_cuckoo_table_options_t, CUCKOO_OPTIONS_OBJECT:
    rocksdb_cuckoo_options_create, rocksdb_cuckoo_options_destroy,
    "matters only to cuckoo tables, which are refused"
}

kept_settings! { rocksdb_cuckoo_table_options_t, CUCKOO_OPTIONS_NOTES:
    Accepted "matters only to cuckoo tables, which are refused" {
        "cuckoo_block_size" u32 = 5;
            set rocksdb_cuckoo_options_set_cuckoo_block_size get rocksdb_cuckoo_options_get_cuckoo_block_size -> u32;
        "hash_table_ratio" c_double = 0.9;
            set rocksdb_cuckoo_options_set_hash_table_ratio get rocksdb_cuckoo_options_get_hash_table_ratio -> c_double;
        "identity_as_first_hash" Flag = Flag(0);
            set rocksdb_cuckoo_options_set_identity_as_first_hash get rocksdb_cuckoo_options_get_identity_as_first_hash -> Flag;
        "max_search_depth" u32 = 100;
            set rocksdb_cuckoo_options_set_max_search_depth get rocksdb_cuckoo_options_get_max_search_depth -> u32;
        "use_module_hash" Flag = Flag(1);
            set rocksdb_cuckoo_options_set_use_module_hash get rocksdb_cuckoo_options_get_use_module_hash -> Flag;
        "hash_ratio" c_double = 0.0;
            set rocksdb_cuckoo_options_set_hash_ratio;
    }
}

kept_settings! { rocksdb_fifo_compaction_options_t, FIFO_COMPACTION_OPTIONS_NOTES:
    Acts "bytes of tables and blob files" {
        "max_data_files_size" u64 = 0;
            set rocksdb_fifo_compaction_options_set_max_data_files_size get rocksdb_fifo_compaction_options_get_max_data_files_size -> u64;
    }
    Accepted "files have no temperature here" {
        "age_for_warm" u64 = 0;
            set rocksdb_fifo_compaction_options_set_age_for_warm get rocksdb_fifo_compaction_options_get_age_for_warm -> u64;
        "allow_trivial_copy_when_change_temperature" Flag = Flag(0);
            set rocksdb_fifo_compaction_options_set_allow_trivial_copy_when_change_temperature get rocksdb_fifo_compaction_options_get_allow_trivial_copy_when_change_temperature -> Flag;
        "trivial_copy_buffer_size" u64 = 4096;
            set rocksdb_fifo_compaction_options_set_trivial_copy_buffer_size get rocksdb_fifo_compaction_options_get_trivial_copy_buffer_size -> u64;
    }
    Accepted "tunes how large the tables are that compactions in L0 make; what goes by size and age is the same" {
        "use_kv_ratio_compaction" Flag = Flag(0);
            set rocksdb_fifo_compaction_options_set_use_kv_ratio_compaction get rocksdb_fifo_compaction_options_get_use_kv_ratio_compaction -> Flag;
    }
}

kept_settings! { rocksdb_universal_compaction_options_t, UNIVERSAL_COMPACTION_OPTIONS_NOTES:
    Acts "sorted runs at most" {
        "max_read_amp" c_int = -1;
            set rocksdb_universal_compaction_options_set_max_read_amp get rocksdb_universal_compaction_options_get_max_read_amp -> c_int;
    }
    Acts "what one compaction takes and rewrites" {
        "allow_trivial_move" Flag = Flag(0);
            set rocksdb_universal_compaction_options_set_allow_trivial_move get rocksdb_universal_compaction_options_get_allow_trivial_move -> Flag;
        "incremental" Flag = Flag(0);
            set rocksdb_universal_compaction_options_set_incremental get rocksdb_universal_compaction_options_get_incremental -> Flag;
    }
    Accepted "a compaction is decided when its thread begins it, and keeps no files from others while it waits" {
        "reduce_file_locking" Flag = Flag(1);
            set rocksdb_universal_compaction_options_set_reduce_file_locking get rocksdb_universal_compaction_options_get_reduce_file_locking -> Flag;
    }
}
