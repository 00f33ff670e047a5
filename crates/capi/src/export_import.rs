//! `rocksdb_checkpoint_export_column_family`, `rocksdb_export_import_files_metadata_*`, `rocksdb_import_column_family_options_*`: column
//! families that go from one database to another.

use crate::checkpoint::rocksdb_checkpoint_t;
use crate::db::{rocksdb_column_family_handle_t, rocksdb_t};
use crate::memory::{Errptr, copy_out_text, give_back, hand_out, report, text};
use crate::metadata::{rocksdb_livefile_t, rocksdb_livefiles_t};
use crate::options::rocksdb_options_t;
use crate::settings::{Flag, Settings};
use libc::c_char;
use outcrop::{ExportedColumnFamily, ExportedFile, ImportColumnFamilyOptions};

#[derive(Default)]
pub struct rocksdb_export_import_files_metadata_t(pub ExportedColumnFamily);

#[derive(Default)]
pub struct rocksdb_import_column_family_options_t {
    pub options: ImportColumnFamilyOptions,
    settings: Settings,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_import_column_family_options_create() -> *mut rocksdb_import_column_family_options_t
{
    boundary!(hand_out(rocksdb_import_column_family_options_t::default()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_import_column_family_options_destroy(
    options: *mut rocksdb_import_column_family_options_t,
) {
    boundary!(give_back(options))
}

engine_settings! { rocksdb_import_column_family_options_t:
    "move_files" [options.move_files]
        set rocksdb_import_column_family_options_set_move_files(Flag)
        get rocksdb_import_column_family_options_get_move_files -> Flag;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_checkpoint_export_column_family(
    checkpoint: *mut rocksdb_checkpoint_t,
    column_family: *mut rocksdb_column_family_handle_t,
    export_dir: *const c_char,
    errptr: Errptr,
) -> *mut rocksdb_export_import_files_metadata_t {
    boundary!(errptr, {
        let db = &(*(*checkpoint).0).0;
        let exported = report(errptr, db.export_column_family(&(*column_family).0, text(export_dir)));
        exported.map_or(std::ptr::null_mut(), |exported| {
            hand_out(rocksdb_export_import_files_metadata_t(exported))
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_column_family_with_import(
    db: *mut rocksdb_t,
    column_family_options: *mut rocksdb_options_t,
    column_family_name: *const c_char,
    import_options: *mut rocksdb_import_column_family_options_t,
    metadata: *mut rocksdb_export_import_files_metadata_t,
    errptr: Errptr,
) -> *mut rocksdb_column_family_handle_t {
    boundary!(errptr, {
        let (options, exported) = ((*import_options).options, &(*metadata).0);
        let created = (*column_family_options)
            .settings
            .check()
            .and_then(|()| (*column_family_options).descriptor(&text(column_family_name)))
            .and_then(|family| (*db).0.create_column_family_with_import(family, options, &[exported]));
        report(errptr, created)
            .map_or(std::ptr::null_mut(), |cf| hand_out(rocksdb_column_family_handle_t(cf)))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_export_import_files_metadata_create() -> *mut rocksdb_export_import_files_metadata_t
{
    boundary!(hand_out(rocksdb_export_import_files_metadata_t::default()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_export_import_files_metadata_destroy(
    metadata: *mut rocksdb_export_import_files_metadata_t,
) {
    boundary!(give_back(metadata))
}

/// To be freed by the caller.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_export_import_files_metadata_get_db_comparator_name(
    metadata: *mut rocksdb_export_import_files_metadata_t,
) -> *mut c_char {
    boundary!(copy_out_text(&(*metadata).0.comparator))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_export_import_files_metadata_set_db_comparator_name(
    metadata: *mut rocksdb_export_import_files_metadata_t,
    name: *const c_char,
) {
    boundary!((*metadata).0.comparator = text(name))
}

/// A copy, owned by the caller. It lacks the facts that a C program cannot set, such as ranges: these are then read
/// from the files.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_export_import_files_metadata_get_files(
    metadata: *mut rocksdb_export_import_files_metadata_t,
) -> *mut rocksdb_livefiles_t {
    boundary!({
        let files = (*metadata).0.files.iter().map(rocksdb_livefile_t::from);
        hand_out(rocksdb_livefiles_t(files.collect()))
    })
}

/// The files are copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_export_import_files_metadata_set_files(
    metadata: *mut rocksdb_export_import_files_metadata_t,
    files: *mut rocksdb_livefiles_t,
) {
    boundary!((*metadata).0.files = (*files).0.iter().map(ExportedFile::from).collect())
}
