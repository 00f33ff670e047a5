//! Refused: exports of column families.
//!
//! The functions exist so that bindings load. Those that could start something report NotSupported; the others are
//! about objects that can then not exist, and give null or 0.

use crate::settings::Flag;
use libc::c_void;

/// Any pointer: nothing here looks behind one.
type Ptr = *mut c_void;

kept_object! {
    rocksdb_import_column_family_options_t, IMPORT_COLUMN_FAMILY_OPTIONS_OBJECT:
    rocksdb_import_column_family_options_create, rocksdb_import_column_family_options_destroy,
    "column families are not exported; make a checkpoint; what takes these options fails"
}

kept_settings! { rocksdb_import_column_family_options_t, IMPORT_COLUMN_FAMILY_OPTIONS_NOTES:
    Accepted "column families are not exported; make a checkpoint; what takes these options fails" {
        "move_files" Flag = Flag(0);
            set rocksdb_import_column_family_options_set_move_files get rocksdb_import_column_family_options_get_move_files -> Flag;
    }
}

refused! { BACKUPS_REFUSED:
    "column families are not exported; make a checkpoint" {
        rocksdb_checkpoint_export_column_family(Ptr, Ptr, Ptr) @ errptr -> Ptr;
        rocksdb_create_column_family_with_import(Ptr, Ptr, Ptr, Ptr, Ptr) @ errptr -> Ptr;
        rocksdb_export_import_files_metadata_create() -> Ptr;
        rocksdb_export_import_files_metadata_destroy(Ptr);
        rocksdb_export_import_files_metadata_get_db_comparator_name(Ptr) -> Ptr;
        rocksdb_export_import_files_metadata_get_files(Ptr) -> Ptr;
        rocksdb_export_import_files_metadata_set_db_comparator_name(Ptr, Ptr);
        rocksdb_export_import_files_metadata_set_files(Ptr, Ptr);
    }
}
