//! `rocksdb_backup_engine_*`, `rocksdb_create_backup_options_*`, `rocksdb_restore_options_*`: backups.

use crate::db::rocksdb_t;
use crate::env::rocksdb_env_t;
use crate::memory::{Errptr, give_back, hand_out, report, slice, text};
use crate::options::rocksdb_options_t;
use crate::rate_limiter::rocksdb_ratelimiter_t;
use crate::settings::{Flag, Settings};
use libc::{c_char, c_int, c_uchar, c_void, size_t};
use outcrop::{
    BackupEngine, BackupEngineOptions, BackupInfo, CreateBackupOptions, Db, Env, Error, Logger, RateLimiter,
    RestoreMode, RestoreOptions, Result, SharedFileNaming,
};
use std::sync::Arc;

pub struct rocksdb_backup_engine_t(pub BackupEngine);

pub struct rocksdb_backup_engine_info_t(Vec<BackupInfo>);

/// Bits of `share_files_with_checksum_naming`.
const NAMED_BY: u32 = 0xffff;
const NAMED_BY_CHECKSUM: u32 = 1;
const NAMED_BY_SESSION: u32 = 2;
const NAMED_WITH_SIZE: u32 = 1 << 31;

/// As C sees them: the engine's own options are made of them when it is opened.
pub struct rocksdb_backup_engine_options_t {
    backup_dir: String,
    env: Option<Env>,
    share_table_files: bool,
    sync: bool,
    destroy_old_data: bool,
    backup_log_files: bool,
    backup_rate_limit: u64,
    restore_rate_limit: u64,
    backup_rate_limiter: Option<Arc<RateLimiter>>,
    restore_rate_limiter: Option<Arc<RateLimiter>>,
    max_background_operations: i32,
    callback_trigger_interval_size: u64,
    max_valid_backups_to_open: i32,
    share_files_with_checksum: bool,
    share_files_with_checksum_naming: i32,
    io_buffer_size: u64,
    schema_version: i32,
    /// For RocksJava: no C function has it.
    pub info_log: Option<Arc<dyn Logger>>,
    settings: Settings,
}

impl rocksdb_backup_engine_options_t {
    fn new(backup_dir: String) -> rocksdb_backup_engine_options_t {
        let defaults = BackupEngineOptions::new(&backup_dir);
        rocksdb_backup_engine_options_t {
            backup_dir,
            env: None,
            share_table_files: defaults.share_table_files,
            sync: defaults.sync,
            destroy_old_data: defaults.destroy_old_data,
            backup_log_files: defaults.backup_log_files,
            backup_rate_limit: defaults.backup_rate_limit,
            restore_rate_limit: defaults.restore_rate_limit,
            backup_rate_limiter: None,
            restore_rate_limiter: None,
            max_background_operations: defaults.max_background_operations as i32,
            callback_trigger_interval_size: defaults.callback_trigger_interval_size,
            max_valid_backups_to_open: i32::MAX,
            share_files_with_checksum: defaults.share_files_with_checksum,
            share_files_with_checksum_naming: (NAMED_BY_SESSION | NAMED_WITH_SIZE).cast_signed(),
            io_buffer_size: defaults.io_buffer_size as u64,
            schema_version: defaults.schema_version.cast_signed(),
            info_log: None,
            settings: Settings::default(),
        }
    }

    fn get(&self) -> BackupEngineOptions {
        let bits = self.share_files_with_checksum_naming.cast_unsigned();
        BackupEngineOptions {
            backup_env: self.env.clone(),
            share_table_files: self.share_table_files,
            sync: self.sync,
            destroy_old_data: self.destroy_old_data,
            backup_log_files: self.backup_log_files,
            backup_rate_limit: self.backup_rate_limit,
            restore_rate_limit: self.restore_rate_limit,
            backup_rate_limiter: self.backup_rate_limiter.clone(),
            restore_rate_limiter: self.restore_rate_limiter.clone(),
            max_background_operations: usize::try_from(self.max_background_operations).unwrap_or(1),
            callback_trigger_interval_size: self.callback_trigger_interval_size,
            max_valid_backups_to_open: usize::try_from(self.max_valid_backups_to_open).unwrap_or(usize::MAX),
            share_files_with_checksum: self.share_files_with_checksum,
            naming: match (bits & NAMED_BY, bits & NAMED_WITH_SIZE) {
                (NAMED_BY_CHECKSUM, _) => SharedFileNaming::Checksum,
                (_, 0) => SharedFileNaming::SessionId,
                _ => SharedFileNaming::SessionIdAndSize,
            },
            io_buffer_size: usize::try_from(self.io_buffer_size).unwrap_or(usize::MAX),
            // Below 1 is refused, as 0 is.
            schema_version: u32::try_from(self.schema_version).unwrap_or(0),
            info_log: self.info_log.clone(),
            ..BackupEngineOptions::new(&self.backup_dir)
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_options_create(
    backup_dir: *const c_char,
) -> *mut rocksdb_backup_engine_options_t {
    boundary!(hand_out(rocksdb_backup_engine_options_t::new(text(backup_dir))))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_options_destroy(
    options: *mut rocksdb_backup_engine_options_t,
) {
    boundary!(give_back(options))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_options_set_backup_dir(
    options: *mut rocksdb_backup_engine_options_t,
    backup_dir: *const c_char,
) {
    boundary!((*options).backup_dir = text(backup_dir))
}

/// Belongs to the options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_options_get_backup_dir(
    options: *mut rocksdb_backup_engine_options_t,
    size: *mut size_t,
) -> *const c_char {
    boundary!({
        let dir = &(*options).backup_dir;
        if let Some(size) = size.as_mut() {
            *size = dir.len();
        }
        dir.as_ptr().cast::<c_char>()
    })
}

/// Null: the environment of the databases.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_options_set_env(
    options: *mut rocksdb_backup_engine_options_t,
    env: *mut rocksdb_env_t,
) {
    boundary!((*options).env = env.as_ref().map(|env| env.0.clone()))
}

/// The limiter is shared with what else it paces. Null: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_options_set_backup_rate_limiter(
    options: *mut rocksdb_backup_engine_options_t,
    limiter: *mut rocksdb_ratelimiter_t,
) {
    boundary!((*options).backup_rate_limiter = limiter.as_ref().map(|limiter| limiter.0.clone()))
}

/// As for backups.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_options_set_restore_rate_limiter(
    options: *mut rocksdb_backup_engine_options_t,
    limiter: *mut rocksdb_ratelimiter_t,
) {
    boundary!((*options).restore_rate_limiter = limiter.as_ref().map(|limiter| limiter.0.clone()))
}

engine_settings! { rocksdb_backup_engine_options_t:
    "share_table_files" [share_table_files]
        set rocksdb_backup_engine_options_set_share_table_files(Flag)
        get rocksdb_backup_engine_options_get_share_table_files -> Flag;
    "sync" [sync]
        set rocksdb_backup_engine_options_set_sync(Flag)
        get rocksdb_backup_engine_options_get_sync -> Flag;
    "destroy_old_data" [destroy_old_data]
        set rocksdb_backup_engine_options_set_destroy_old_data(Flag)
        get rocksdb_backup_engine_options_get_destroy_old_data -> Flag;
    "backup_log_files" [backup_log_files]
        set rocksdb_backup_engine_options_set_backup_log_files(Flag)
        get rocksdb_backup_engine_options_get_backup_log_files -> Flag;
    "backup_rate_limit" [backup_rate_limit]
        set rocksdb_backup_engine_options_set_backup_rate_limit(u64)
        get rocksdb_backup_engine_options_get_backup_rate_limit -> u64;
    "restore_rate_limit" [restore_rate_limit]
        set rocksdb_backup_engine_options_set_restore_rate_limit(u64)
        get rocksdb_backup_engine_options_get_restore_rate_limit -> u64;
    "max_background_operations" [max_background_operations]
        set rocksdb_backup_engine_options_set_max_background_operations(c_int)
        get rocksdb_backup_engine_options_get_max_background_operations -> c_int;
    "callback_trigger_interval_size" [callback_trigger_interval_size]
        set rocksdb_backup_engine_options_set_callback_trigger_interval_size(u64)
        get rocksdb_backup_engine_options_get_callback_trigger_interval_size -> u64;
    "max_valid_backups_to_open" [max_valid_backups_to_open]
        set rocksdb_backup_engine_options_set_max_valid_backups_to_open(c_int)
        get rocksdb_backup_engine_options_get_max_valid_backups_to_open -> c_int;
    "share_files_with_checksum" [share_files_with_checksum]
        set rocksdb_backup_engine_options_set_share_files_with_checksum(Flag)
        get rocksdb_backup_engine_options_get_share_files_with_checksum -> Flag;
    "share_files_with_checksum_naming" [share_files_with_checksum_naming]
        set rocksdb_backup_engine_options_set_share_files_with_checksum_naming(c_int)
        get rocksdb_backup_engine_options_get_share_files_with_checksum_naming -> c_int;
    "io_buffer_size" [io_buffer_size]
        set rocksdb_backup_engine_options_set_io_buffer_size(u64)
        get rocksdb_backup_engine_options_get_io_buffer_size -> u64;
    "schema_version" [schema_version]
        set rocksdb_backup_engine_options_set_schema_version(c_int)
        get rocksdb_backup_engine_options_get_schema_version -> c_int;
}

kept_settings! { rocksdb_backup_engine_options_t, BACKUP_ENGINE_OPTIONS_NOTES:
    Accepted "no file system here says of what temperature a file is" {
        "current_temperatures_override_manifest" Flag = Flag(0);
            set rocksdb_backup_engine_options_set_current_temperatures_override_manifest
            get rocksdb_backup_engine_options_get_current_temperatures_override_manifest -> Flag;
    }
}

type Progress = Option<unsafe extern "C-unwind" fn(*mut c_void)>;
type ExcludeFile = Option<unsafe extern "C-unwind" fn(*mut c_void, *const c_char, size_t) -> c_uchar>;

/// A function of the caller's, with its state.
#[derive(Clone, Copy)]
struct Callback<F> {
    function: F,
    state: *mut c_void,
}

// SAFETY: RocksDB's contract: callbacks of a backup may be called from any thread, one at a time.
unsafe impl<F> Send for Callback<F> {}
// SAFETY: as above.
unsafe impl<F> Sync for Callback<F> {}

impl Callback<unsafe extern "C-unwind" fn(*mut c_void)> {
    fn call(&self) {
        // SAFETY: the caller's function, with the state it was given with.
        unsafe { (self.function)(self.state) }
    }
}

impl Callback<unsafe extern "C-unwind" fn(*mut c_void, *const c_char, size_t) -> c_uchar> {
    fn call(&self, name: &str) -> bool {
        // SAFETY: the caller's function, with the state it was given with; the name lives until it returns.
        unsafe { (self.function)(self.state, name.as_ptr().cast(), name.len()) != 0 }
    }
}

#[derive(Default)]
pub struct rocksdb_create_backup_options_t {
    options: CreateBackupOptions,
    settings: Settings,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_backup_options_create() -> *mut rocksdb_create_backup_options_t {
    boundary!(hand_out(rocksdb_create_backup_options_t::default()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_backup_options_destroy(
    options: *mut rocksdb_create_backup_options_t,
) {
    boundary!(give_back(options))
}

engine_settings! { rocksdb_create_backup_options_t:
    "flush_before_backup" [options.flush_before_backup]
        set rocksdb_create_backup_options_set_flush_before_backup(Flag)
        get rocksdb_create_backup_options_get_flush_before_backup -> Flag;
}

kept_settings! { rocksdb_create_backup_options_t, CREATE_BACKUP_OPTIONS_NOTES:
    Accepted "a flush for a backup is at one moment over all column families in any case" {
        "atomic_flush" Flag = Flag(0);
            set rocksdb_create_backup_options_set_atomic_flush get rocksdb_create_backup_options_get_atomic_flush -> Flag;
    }
    Accepted "a hint; files are copied at the priority of any thread" {
        "background_thread_cpu_priority" c_int = 2;
            set rocksdb_create_backup_options_set_background_thread_cpu_priority
            get rocksdb_create_backup_options_get_background_thread_cpu_priority -> c_int;
        "decrease_background_thread_cpu_priority" Flag = Flag(0);
            set rocksdb_create_backup_options_set_decrease_background_thread_cpu_priority
            get rocksdb_create_backup_options_get_decrease_background_thread_cpu_priority -> Flag;
    }
}

/// Null takes it away.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_backup_options_set_progress_callback(
    options: *mut rocksdb_create_backup_options_t,
    state: *mut c_void,
    callback: Progress,
) {
    boundary!({
        (*options).options.progress = callback.map(|function| {
            let callback = Callback { function, state };
            let called: outcrop::Progress = Arc::new(move || callback.call());
            called
        });
    })
}

/// Null takes it away.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_backup_options_set_exclude_files_callback(
    options: *mut rocksdb_create_backup_options_t,
    state: *mut c_void,
    callback: ExcludeFile,
) {
    boundary!({
        (*options).options.exclude_file = callback.map(|function| {
            let callback = Callback { function, state };
            let asked: outcrop::ExcludeFile = Arc::new(move |name: &str| callback.call(name));
            asked
        });
    })
}

/// RocksDB's number for purging everything.
const PURGE_ALL: c_int = 0xffff;

pub struct rocksdb_restore_options_t {
    keep_log_files: bool,
    mode: c_int,
    settings: Settings,
}

impl rocksdb_restore_options_t {
    fn get(&self) -> Result<RestoreOptions> {
        let mode = match self.mode {
            1 => RestoreMode::KeepLatestDbSessionIdFiles,
            2 => RestoreMode::VerifyChecksum,
            PURGE_ALL => RestoreMode::PurgeAllFiles,
            other => {
                return Err(Error::invalid_argument(format!(
                    "{other} is no restore mode: 1, 2 or {PURGE_ALL}"
                )));
            }
        };
        Ok(RestoreOptions { keep_log_files: self.keep_log_files, mode })
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_restore_options_create() -> *mut rocksdb_restore_options_t {
    boundary!(hand_out(rocksdb_restore_options_t {
        keep_log_files: false,
        mode: PURGE_ALL,
        settings: Settings::default(),
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_restore_options_destroy(options: *mut rocksdb_restore_options_t) {
    boundary!(give_back(options))
}

engine_settings! { rocksdb_restore_options_t:
    "keep_log_files" [keep_log_files]
        set rocksdb_restore_options_set_keep_log_files(c_int)
        get rocksdb_restore_options_get_keep_log_files -> Flag;
    "mode" [mode]
        set rocksdb_restore_options_set_mode(c_int)
        get rocksdb_restore_options_get_mode -> c_int;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_open(
    options: *const rocksdb_options_t,
    path: *const c_char,
    errptr: Errptr,
) -> *mut rocksdb_backup_engine_t {
    boundary!(errptr, {
        let opened = BackupEngine::open(BackupEngineOptions::new(text(path)), &(*options).env());
        report(errptr, opened)
            .map_or(std::ptr::null_mut(), |engine| hand_out(rocksdb_backup_engine_t(engine)))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_open_opts(
    options: *const rocksdb_backup_engine_options_t,
    env: *mut rocksdb_env_t,
    errptr: Errptr,
) -> *mut rocksdb_backup_engine_t {
    boundary!(errptr, {
        let options = &*options;
        let opened = options.settings.check().and_then(|()| BackupEngine::open(options.get(), &(*env).0));
        report(errptr, opened)
            .map_or(std::ptr::null_mut(), |engine| hand_out(rocksdb_backup_engine_t(engine)))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_close(engine: *mut rocksdb_backup_engine_t) {
    boundary!(give_back(engine))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_create_new_backup(
    engine: *mut rocksdb_backup_engine_t,
    db: *mut rocksdb_t,
    errptr: Errptr,
) {
    boundary!(errptr, {
        report(errptr, (*engine).0.create_backup(&(*db).0));
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_create_new_backup_flush(
    engine: *mut rocksdb_backup_engine_t,
    db: *mut rocksdb_t,
    flush_before_backup: Flag,
    errptr: Errptr,
) {
    boundary!(errptr, {
        let flush_before_backup = flush_before_backup.is_set();
        let options = CreateBackupOptions { flush_before_backup, ..CreateBackupOptions::default() };
        report(errptr, (*engine).0.create_backup_with(&(*db).0, &options));
    })
}

/// The id goes to `id`, if that is not null.
unsafe fn create(
    engine: *mut rocksdb_backup_engine_t,
    db: &Db,
    options: *const rocksdb_create_backup_options_t,
    app_metadata: &[u8],
    id: *mut u32,
) -> Result<()> {
    // SAFETY: the caller's contract: that of the C API.
    let (engine, options, id) = unsafe { (&(*engine).0, options.as_ref(), id.as_mut()) };
    if let Some(options) = options {
        options.settings.check()?;
    }
    let options = options.map_or_else(CreateBackupOptions::default, |options| options.options.clone());
    let options = CreateBackupOptions { app_metadata: app_metadata.to_vec(), ..options };
    let made = engine.create_backup_with(db, &options)?;
    if let Some(id) = id {
        *id = made;
    }
    Ok(())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_create_new_backup_with_options(
    engine: *mut rocksdb_backup_engine_t,
    db: *mut rocksdb_t,
    options: *const rocksdb_create_backup_options_t,
    backup_id: *mut u32,
    errptr: Errptr,
) {
    boundary!(errptr, {
        report(errptr, create(engine, &(*db).0, options, &[], backup_id));
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_create_new_backup_with_metadata(
    engine: *mut rocksdb_backup_engine_t,
    db: *mut rocksdb_t,
    options: *const rocksdb_create_backup_options_t,
    app_metadata: *const c_char,
    app_metadata_len: size_t,
    backup_id: *mut u32,
    errptr: Errptr,
) {
    boundary!(errptr, {
        let len = if app_metadata.is_null() { 0 } else { app_metadata_len };
        report(errptr, create(engine, &(*db).0, options, slice(app_metadata, len), backup_id));
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_purge_old_backups(
    engine: *mut rocksdb_backup_engine_t,
    num_backups_to_keep: u32,
    errptr: Errptr,
) {
    boundary!(errptr, {
        report(errptr, (*engine).0.purge_old_backups(num_backups_to_keep as usize));
    })
}

/// That every file is there and has its size, as in RocksDB: damage within a file is not found.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_verify_backup(
    engine: *mut rocksdb_backup_engine_t,
    backup_id: u32,
    errptr: Errptr,
) {
    boundary!(errptr, {
        report(errptr, (*engine).0.verify_backup_sizes(backup_id));
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_restore_db_from_latest_backup(
    engine: *mut rocksdb_backup_engine_t,
    db_dir: *const c_char,
    wal_dir: *const c_char,
    options: *const rocksdb_restore_options_t,
    errptr: Errptr,
) {
    boundary!(errptr, {
        // 0, which no backup has: there is none.
        let id = (*engine).0.latest_backup().unwrap_or(0);
        let engine = &(*engine).0;
        let restored = (*options)
            .get()
            .and_then(|options| engine.restore_backup_with(id, text(db_dir), text(wal_dir), &options, &[]));
        report(errptr, restored);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_restore_db_from_backup(
    engine: *mut rocksdb_backup_engine_t,
    db_dir: *const c_char,
    wal_dir: *const c_char,
    options: *const rocksdb_restore_options_t,
    backup_id: u32,
    errptr: Errptr,
) {
    boundary!(errptr, {
        let engine = &(*engine).0;
        let restored = (*options).get().and_then(|options| {
            engine.restore_backup_with(backup_id, text(db_dir), text(wal_dir), &options, &[])
        });
        report(errptr, restored);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_stop_backup(engine: *mut rocksdb_backup_engine_t) {
    boundary!((*engine).0.stop_backup())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_get_backup_info(
    engine: *mut rocksdb_backup_engine_t,
) -> *const rocksdb_backup_engine_info_t {
    boundary!(hand_out(rocksdb_backup_engine_info_t((*engine).0.backup_infos())).cast_const())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_info_destroy(info: *const rocksdb_backup_engine_info_t) {
    boundary!(give_back(info.cast_mut()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_info_count(
    info: *const rocksdb_backup_engine_info_t,
) -> c_int {
    boundary!(c_int::try_from((*info).0.len()).unwrap_or(c_int::MAX))
}

/// Reads a field of the backup at an index the caller keeps within the count.
macro_rules! info_fields {
    ($($name:ident -> $type:ty |$backup:ident| $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(info: *const rocksdb_backup_engine_info_t, index: c_int) -> $type {
            boundary!({
                let $backup = &(&(*info).0)[index as usize];
                $body
            })
        }
    )*};
}

info_fields! {
    rocksdb_backup_engine_info_timestamp -> i64 |backup| backup.timestamp;
    rocksdb_backup_engine_info_backup_id -> u32 |backup| backup.id;
    rocksdb_backup_engine_info_size -> u64 |backup| backup.size;
    rocksdb_backup_engine_info_number_files -> u32 |backup| backup.number_files;
}

/// Belongs to the info.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_backup_engine_info_app_metadata(
    info: *const rocksdb_backup_engine_info_t,
    index: c_int,
    len: *mut size_t,
) -> *const c_char {
    boundary!({
        let bytes = &(&(*info).0)[index as usize].app_metadata;
        if let Some(len) = len.as_mut() {
            *len = bytes.len();
        }
        bytes.as_ptr().cast::<c_char>()
    })
}
