//! Options of single writes, flushes and compactions.

use crate::memory::{give_back, hand_out, slice};
use crate::settings::{Flag, Settings};
use libc::{c_char, c_double, c_int, c_uchar, size_t};
use outcrop::{
    BlobGarbageCollectionPolicy, BottommostLevelCompaction, CompactRangeOptions, Result, Timestamp,
    WaitForCompactOptions, WriteOptions,
};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

#[derive(Clone, Default)]
pub struct rocksdb_writeoptions_t {
    options: WriteOptions,
    settings: Settings,
}

impl rocksdb_writeoptions_t {
    /// Those of the engine's.
    pub fn of(options: &WriteOptions) -> rocksdb_writeoptions_t {
        rocksdb_writeoptions_t { options: *options, settings: Settings::default() }
    }

    /// The engine's options.
    ///
    /// # Errors
    /// NotSupported naming an option that the engine cannot honour.
    #[inline]
    pub fn get(&self) -> Result<&WriteOptions> {
        self.settings.check()?;
        Ok(&self.options)
    }
}

pub struct rocksdb_flushoptions_t {
    pub(crate) wait: bool,
    /// With `wait`: for listeners, too.
    pub(crate) listener_wait: bool,
    pub(crate) settings: Settings,
}

#[derive(Default)]
pub struct rocksdb_flushwaloptions_t {
    pub(crate) sync: bool,
    settings: Settings,
}

pub struct rocksdb_compactoptions_t {
    pub(crate) options: CompactRangeOptions,
    /// RocksDB's number; see [`rocksdb_compactoptions_t::get`].
    bottommost: u8,
    /// Ends the compaction once it is set. For RocksJava: no C function has it.
    pub canceled: Option<Arc<AtomicBool>>,
    /// The two numbers that RocksJava made `full_history_ts_low` of.
    pub history: Option<(i64, i64)>,
    pub(crate) settings: Settings,
}

/// RocksDB's numbers of what to do with the bottommost level.
const IF_HAVE_COMPACTION_FILTER: u8 = 1;
const FORCE: u8 = 2;

impl Default for rocksdb_compactoptions_t {
    fn default() -> Self {
        rocksdb_compactoptions_t {
            options: CompactRangeOptions::default(),
            bottommost: IF_HAVE_COMPACTION_FILTER,
            canceled: None,
            history: None,
            settings: Settings::default(),
        }
    }
}

impl rocksdb_compactoptions_t {
    /// The engine's options; `filtered` if the column family has a compaction filter.
    pub(crate) fn get(&self, filtered: bool) -> CompactRangeOptions {
        let forced = self.bottommost >= FORCE || (self.bottommost == IF_HAVE_COMPACTION_FILTER && filtered);
        let bottommost_level_compaction =
            if forced { BottommostLevelCompaction::Force } else { BottommostLevelCompaction::Skip };
        // RocksDB's numbers; a share outside of 0 to 1 leaves it to the option.
        let blob_garbage_collection_policy =
            match self.settings.kept::<c_int>("blob_garbage_collection_policy", 2) {
                0 => BlobGarbageCollectionPolicy::Force,
                1 => BlobGarbageCollectionPolicy::Disable,
                _ => BlobGarbageCollectionPolicy::UseDefault,
            };
        let share = self.settings.kept::<f64>("blob_garbage_collection_age_cutoff", -1.0);
        CompactRangeOptions {
            bottommost_level_compaction,
            blob_garbage_collection_policy,
            blob_garbage_collection_age_cutoff: (0.0..=1.0).contains(&share).then_some(share),
            ..self.options
        }
    }
}

#[derive(Default)]
pub struct rocksdb_wait_for_compact_options_t {
    pub(crate) options: WaitForCompactOptions,
    pub(crate) settings: Settings,
}

macro_rules! lifecycle {
    ($($type:ty: $create:ident $destroy:ident $default:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $create() -> *mut $type {
            boundary!(hand_out($default))
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $destroy(options: *mut $type) {
            boundary!(give_back(options))
        }
    )*};
}

lifecycle! {
    rocksdb_writeoptions_t: rocksdb_writeoptions_create rocksdb_writeoptions_destroy Default::default();
    rocksdb_flushoptions_t: rocksdb_flushoptions_create rocksdb_flushoptions_destroy
        rocksdb_flushoptions_t { wait: true, listener_wait: false, settings: Settings::default() };
    rocksdb_flushwaloptions_t: rocksdb_flushwaloptions_create rocksdb_flushwaloptions_destroy
        Default::default();
    rocksdb_compactoptions_t: rocksdb_compactoptions_create rocksdb_compactoptions_destroy
        Default::default();
    rocksdb_wait_for_compact_options_t: rocksdb_wait_for_compact_options_create
        rocksdb_wait_for_compact_options_destroy Default::default();
}

engine_settings! { rocksdb_writeoptions_t:
    "sync" [options.sync]
        set rocksdb_writeoptions_set_sync(Flag)
        get rocksdb_writeoptions_get_sync -> Flag;
    "no_slowdown" [options.no_slowdown]
        set rocksdb_writeoptions_set_no_slowdown(Flag)
        get rocksdb_writeoptions_get_no_slowdown -> Flag;
    "ignore_missing_column_families" [options.ignore_missing_column_families]
        set rocksdb_writeoptions_set_ignore_missing_column_families(Flag)
        get rocksdb_writeoptions_get_ignore_missing_column_families -> Flag;
    "disable_WAL" [options.disable_wal]
        set rocksdb_writeoptions_disable_WAL(c_int)
        get rocksdb_writeoptions_get_disable_WAL -> Flag;
    "low_pri" [options.low_pri]
        set rocksdb_writeoptions_set_low_pri(Flag)
        get rocksdb_writeoptions_get_low_pri -> Flag;
    "rate_limiter_priority" [options.rate_limiter_priority]
        set rocksdb_writeoptions_set_rate_limiter_priority(c_int)
        get rocksdb_writeoptions_get_rate_limiter_priority -> c_int;
}

kept_settings! { rocksdb_writeoptions_t, WRITE_NOTES:
    Accepted "tunes RocksDB's write path" {
        "memtable_insert_hint_per_batch" Flag = Flag(0);
            set rocksdb_writeoptions_set_memtable_insert_hint_per_batch get rocksdb_writeoptions_get_memtable_insert_hint_per_batch -> Flag;
        "io_activity" c_int = 255;
            set rocksdb_writeoptions_set_io_activity get rocksdb_writeoptions_get_io_activity -> c_int;
        "protection_bytes_per_key" size_t = 0;
            set rocksdb_writeoptions_set_protection_bytes_per_key get rocksdb_writeoptions_get_protection_bytes_per_key -> size_t;
    }
}

engine_settings! { rocksdb_flushoptions_t:
    "wait" [wait]
        set rocksdb_flushoptions_set_wait(Flag)
        get rocksdb_flushoptions_get_wait -> Flag;
    "listener_wait" [listener_wait]
        set rocksdb_flushoptions_set_listener_wait(Flag)
        get rocksdb_flushoptions_get_listener_wait -> Flag;
}

kept_settings! { rocksdb_flushoptions_t, FLUSH_NOTES:
    Accepted "a flush here waits for a stall to end" {
        "allow_write_stall" Flag = Flag(0);
            set rocksdb_flushoptions_set_allow_write_stall get rocksdb_flushoptions_get_allow_write_stall -> Flag;
    }
    Checked "only `atomic_flush` of the database flushes at one moment" {
        "force_atomic_flush" Flag = Flag(0);
            set rocksdb_flushoptions_set_force_atomic_flush get rocksdb_flushoptions_get_force_atomic_flush -> Flag;
    }
}

engine_settings! { rocksdb_compactoptions_t:
    "target_path_id" [options.target_path_id]
        set rocksdb_compactoptions_set_target_path_id(c_int)
        get rocksdb_compactoptions_get_target_path_id -> c_int;
}

engine_settings! { rocksdb_flushwaloptions_t:
    "sync" [sync]
        set rocksdb_flushwaloptions_set_sync(Flag)
        get rocksdb_flushwaloptions_get_sync -> Flag;
}

kept_settings! { rocksdb_flushwaloptions_t, FLUSH_WAL_NOTES:
    Accepted "tunes RocksDB's writes" {
        "rate_limiter_priority" c_int = 4;
            set rocksdb_flushwaloptions_set_rate_limiter_priority get rocksdb_flushwaloptions_get_rate_limiter_priority -> c_int;
    }
}

kept_settings! { rocksdb_compactoptions_t, COMPACT_NOTES:
    Accepted "the flush that a compaction begins with adds no stall: a memtable that writers fill is flushed by itself" {
        "allow_write_stall" Flag = Flag(0);
            set rocksdb_compactoptions_set_allow_write_stall get rocksdb_compactoptions_get_allow_write_stall -> Flag;
    }
    Acts "moves values out of blob files" {
        "blob_garbage_collection_policy" c_int = 2;
            set rocksdb_compactoptions_set_blob_garbage_collection_policy get rocksdb_compactoptions_get_blob_garbage_collection_policy -> c_int;
        "blob_garbage_collection_age_cutoff" c_double = -1.0;
            set rocksdb_compactoptions_set_blob_garbage_collection_age_cutoff get rocksdb_compactoptions_get_blob_garbage_collection_age_cutoff -> c_double;
    }
}

engine_settings! { rocksdb_wait_for_compact_options_t:
    "abort_on_pause" [options.abort_on_pause]
        set rocksdb_wait_for_compact_options_set_abort_on_pause(Flag)
        get rocksdb_wait_for_compact_options_get_abort_on_pause -> Flag;
    "close_db" [options.close_db]
        set rocksdb_wait_for_compact_options_set_close_db(Flag)
        get rocksdb_wait_for_compact_options_get_close_db -> Flag;
    "flush" [options.flush]
        set rocksdb_wait_for_compact_options_set_flush(Flag)
        get rocksdb_wait_for_compact_options_get_flush -> Flag;
}

kept_settings! { rocksdb_wait_for_compact_options_t, WAIT_NOTES:
    Accepted "waiting ends after obsolete files were removed in any case" {
        "wait_for_purge" Flag = Flag(0);
            set rocksdb_wait_for_compact_options_set_wait_for_purge get rocksdb_wait_for_compact_options_get_wait_for_purge -> Flag;
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wait_for_compact_options_set_timeout(
    options: *mut rocksdb_wait_for_compact_options_t,
    micros: u64,
) {
    boundary!((*options).options.timeout = (micros > 0).then(|| Duration::from_micros(micros)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wait_for_compact_options_get_timeout(
    options: *mut rocksdb_wait_for_compact_options_t,
) -> u64 {
    boundary!((*options).options.timeout.map_or(0, |timeout| timeout.as_micros() as u64))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactoptions_set_bottommost_level_compaction(
    options: *mut rocksdb_compactoptions_t,
    value: c_uchar,
) {
    boundary!((*options).bottommost = value)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactoptions_get_bottommost_level_compaction(
    options: *mut rocksdb_compactoptions_t,
) -> c_uchar {
    boundary!((*options).bottommost)
}

/// One of another length than 8 bytes has the compaction do nothing, as in RocksDB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactoptions_set_full_history_ts_low(
    options: *mut rocksdb_compactoptions_t,
    timestamp: *mut c_char,
    len: size_t,
) {
    boundary!({
        let options = &mut *options;
        options.settings.allow("full_history_ts_low");
        options.options.full_history_low = None;
        if !timestamp.is_null() {
            match Timestamp::from_bytes(slice(timestamp, len)) {
                Ok(low) => options.options.full_history_low = Some(low),
                Err(_) => options.settings.refuse("full_history_ts_low", format!("{len} bytes")),
            }
        }
    })
}
