//! `rocksdb_readoptions_*`, and snapshots in them.

use crate::memory::{give_back, hand_out, slice};
use crate::settings::{Flag, Settings};
use crate::table_properties::rocksdb_table_properties_t;
use libc::{c_char, c_int, c_uchar, c_void, size_t};
use outcrop::{Error, ReadOptions, Result, Snapshot, TableFilter, Timestamp};

#[derive(Clone, Default)]
pub struct rocksdb_readoptions_t {
    pub options: ReadOptions,
    /// Iterators see what is written after their creation once they are positioned anew.
    pub(crate) tailing: bool,
    settings: Settings,
    request_id: Vec<u8>,
    /// Handles of objects that the library above set options by, for getters that give them back.
    pub given: [i64; 6],
    /// Of `timestamp`, and of `iter_start_ts`: reads fail with it.
    bad_timestamps: [Option<Error>; 2],
    /// For its getters: RocksDB's C functions do not show what it does to the status of a read.
    merge_operand_count_threshold: Option<size_t>,
}

impl rocksdb_readoptions_t {
    /// Keys and values that iterators give stay valid as long as the iterators live.
    pub(crate) fn pins_data(&self) -> bool {
        self.settings.kept("pin_data", Flag(0)).is_set()
    }

    /// The engine's options.
    ///
    /// # Errors
    /// NotSupported naming an option that the engine cannot honour.
    #[inline]
    pub fn get(&self) -> Result<&ReadOptions> {
        self.settings.check()?;
        match self.bad_timestamps.iter().flatten().next() {
            Some(error) => Err(error.clone()),
            None => Ok(&self.options),
        }
    }
}

/// Laid out as the snapshot: transactions give out copies of those they have.
#[repr(transparent)]
pub struct rocksdb_snapshot_t(pub Snapshot);

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_create() -> *mut rocksdb_readoptions_t {
    boundary!(hand_out(rocksdb_readoptions_t::default()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_readoptions_destroy(options: *mut rocksdb_readoptions_t) {
    boundary!(give_back(options))
}

engine_settings! { rocksdb_readoptions_t:
    "fill_cache" [options.fill_cache]
        set rocksdb_readoptions_set_fill_cache(Flag)
        get rocksdb_readoptions_get_fill_cache -> Flag;
    "verify_checksums" [options.verify_checksums]
        set rocksdb_readoptions_set_verify_checksums(Flag)
        get rocksdb_readoptions_get_verify_checksums -> Flag;
    "readahead_size" [options.readahead_size]
        set rocksdb_readoptions_set_readahead_size(size_t)
        get rocksdb_readoptions_get_readahead_size -> size_t;
    "prefix_same_as_start" [options.prefix_same_as_start]
        set rocksdb_readoptions_set_prefix_same_as_start(Flag)
        get rocksdb_readoptions_get_prefix_same_as_start -> Flag;
    "total_order_seek" [options.total_order_seek]
        set rocksdb_readoptions_set_total_order_seek(Flag)
        get rocksdb_readoptions_get_total_order_seek -> Flag;
    "read_tier" [options.tier]
        set rocksdb_readoptions_set_read_tier(c_int)
        get rocksdb_readoptions_get_read_tier -> c_int;
    "ignore_range_deletions" [options.ignore_range_deletions]
        set rocksdb_readoptions_set_ignore_range_deletions(Flag)
        get rocksdb_readoptions_get_ignore_range_deletions -> Flag;
    "max_skippable_internal_keys" [options.max_skippable_internal_keys]
        set rocksdb_readoptions_set_max_skippable_internal_keys(u64)
        get rocksdb_readoptions_get_max_skippable_internal_keys -> u64;
    "deadline" [options.deadline]
        set rocksdb_readoptions_set_deadline(u64)
        get rocksdb_readoptions_get_deadline -> u64;
    "value_size_soft_limit" [options.value_size_soft_limit]
        set rocksdb_readoptions_set_value_size_soft_limit(u64)
        get rocksdb_readoptions_get_value_size_soft_limit -> u64;
    "rate_limiter_priority" [options.rate_limiter_priority]
        set rocksdb_readoptions_set_rate_limiter_priority(c_int)
        get rocksdb_readoptions_get_rate_limiter_priority -> c_int;
    "tailing" [tailing]
        set rocksdb_readoptions_set_tailing(Flag)
        get rocksdb_readoptions_get_tailing -> Flag;
}

kept_settings! { rocksdb_readoptions_t, READ_NOTES:
    Accepted "tunes how RocksDB reads; the answer is the same" {
        "async_io" Flag = Flag(0);
            set rocksdb_readoptions_set_async_io get rocksdb_readoptions_get_async_io -> Flag;
        "optimize_multiget_for_io" Flag = Flag(1);
            set rocksdb_readoptions_set_optimize_multiget_for_io get rocksdb_readoptions_get_optimize_multiget_for_io -> Flag;
        "adaptive_readahead" Flag = Flag(0);
            set rocksdb_readoptions_set_adaptive_readahead get rocksdb_readoptions_get_adaptive_readahead -> Flag;
        "auto_readahead_size" Flag = Flag(1);
            set rocksdb_readoptions_set_auto_readahead_size get rocksdb_readoptions_get_auto_readahead_size -> Flag;
        "background_purge_on_iterator_cleanup" Flag = Flag(0);
            set rocksdb_readoptions_set_background_purge_on_iterator_cleanup get rocksdb_readoptions_get_background_purge_on_iterator_cleanup -> Flag;
        "io_activity" c_int = 255;
            set rocksdb_readoptions_set_io_activity get rocksdb_readoptions_get_io_activity -> c_int;
        "allow_unprepared_value" Flag = Flag(0);
            set rocksdb_readoptions_set_allow_unprepared_value get rocksdb_readoptions_get_allow_unprepared_value -> Flag;
        "auto_refresh_iterator_with_snapshot" Flag = Flag(0);
            set rocksdb_readoptions_set_auto_refresh_iterator_with_snapshot get rocksdb_readoptions_get_auto_refresh_iterator_with_snapshot -> Flag;
    }
    Accepted "seeks ask prefix filters, and what is found is in total order unless prefix_same_as_start is set" {
        "auto_prefix_mode" Flag = Flag(0);
            set rocksdb_readoptions_set_auto_prefix_mode get rocksdb_readoptions_get_auto_prefix_mode -> Flag;
    }
    Acts "keys and values that an iterator gives stay valid as long as it lives" {
        "pin_data" Flag = Flag(0);
            set rocksdb_readoptions_set_pin_data get rocksdb_readoptions_get_pin_data -> Flag;
    }
    Accepted "a hint to the file system: POSIX has no way to give up a read, and RocksDB's does not try" {
        "io_timeout" u64 = 0;
            set rocksdb_readoptions_set_io_timeout get rocksdb_readoptions_get_io_timeout -> u64;
    }
}

refused! { TABLE_INDEX_NOTES:
    "user-defined indexes are not supported" {
        rocksdb_readoptions_set_table_index_factory_from_string(
            *mut rocksdb_readoptions_t, *const c_char, size_t) @ errptr;
        rocksdb_readoptions_clear_table_index_factory(*mut rocksdb_readoptions_t);
        rocksdb_readoptions_get_table_index_factory_name(
            *const rocksdb_readoptions_t, *mut size_t) -> *const c_char;
    }
}

type Destructor = Option<unsafe extern "C-unwind" fn(*mut c_void)>;
type TableFilterCallback =
    Option<unsafe extern "C-unwind" fn(*mut c_void, *const rocksdb_table_properties_t) -> c_uchar>;

/// Functions over the options with other arguments than one number.
macro_rules! functions {
    ($($name:ident($($arg:ident: $type:ty),*) $(-> $ret:ty)? |$options:ident| $body:block)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(options: *mut rocksdb_readoptions_t $(, $arg: $type)*) $(-> $ret)? {
            boundary!({
                let $options = &mut *options;
                $body
            })
        }
    )*};
}

functions! {
    rocksdb_readoptions_set_snapshot(snapshot: *const rocksdb_snapshot_t) |o| {
        o.options.snapshot = snapshot.as_ref().map(|snapshot| snapshot.0.clone());
    }

    rocksdb_readoptions_set_iterate_upper_bound(key: *const c_char, len: size_t) |o| {
        o.options.iterate_upper_bound = (!key.is_null()).then(|| slice(key, len).to_vec());
    }

    rocksdb_readoptions_set_iterate_lower_bound(key: *const c_char, len: size_t) |o| {
        o.options.iterate_lower_bound = (!key.is_null()).then(|| slice(key, len).to_vec());
    }

    rocksdb_readoptions_set_timestamp(ts: *const c_char, len: size_t) |o| {
        (o.options.timestamp, o.bad_timestamps[0]) = timestamp_in(ts, len);
    }

    rocksdb_readoptions_set_iter_start_ts(ts: *const c_char, len: size_t) |o| {
        (o.options.iter_start_timestamp, o.bad_timestamps[1]) = timestamp_in(ts, len);
    }

    rocksdb_readoptions_set_merge_operand_count_threshold(threshold: size_t) |o| {
        o.merge_operand_count_threshold = Some(threshold);
    }

    rocksdb_readoptions_clear_merge_operand_count_threshold() |o| {
        o.merge_operand_count_threshold = None;
    }

    rocksdb_readoptions_has_merge_operand_count_threshold() -> Flag |o| {
        Flag::from(o.merge_operand_count_threshold.is_some())
    }

    rocksdb_readoptions_get_merge_operand_count_threshold() -> size_t |o| {
        o.merge_operand_count_threshold.unwrap_or(0)
    }

    rocksdb_readoptions_set_request_id(id: *const c_char, len: size_t) |o| {
        o.request_id = if id.is_null() { Vec::new() } else { slice(id, len).to_vec() };
    }

    rocksdb_readoptions_clear_request_id() |o| { o.request_id.clear() }

    rocksdb_readoptions_get_request_id(len: *mut size_t) -> *const c_char |o| {
        if let Some(len) = len.as_mut() {
            *len = o.request_id.len();
        }
        if o.request_id.is_empty() { std::ptr::null() } else { o.request_id.as_ptr().cast() }
    }

    rocksdb_readoptions_set_table_filter(
        state: *mut c_void, destructor: Destructor, filter: TableFilterCallback
    ) |o| {
        let state = FilterState { state, destructor };
        o.options.table_filter = filter.map(|filter| {
            TableFilter::new(move |properties| {
                let table = rocksdb_table_properties_t::new(properties);
                // SAFETY: the contract of the C API: the function keeps nothing of what it is given.
                unsafe { filter(state.state(), &raw const table) != 0 }
            })
        });
    }

    rocksdb_readoptions_clear_table_filter() |o| { o.options.table_filter = None }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_readoptions_has_table_filter(options: *const rocksdb_readoptions_t) -> Flag {
    boundary!(Flag::from((*options).options.table_filter.is_some()))
}

/// The argument of a table filter; given back when the last options and iterators that have it are gone.
struct FilterState {
    state: *mut c_void,
    destructor: Destructor,
}

impl FilterState {
    fn state(&self) -> *mut c_void {
        self.state
    }
}

// SAFETY: RocksDB's contract: callbacks may be called from any thread, several at once.
unsafe impl Send for FilterState {}
// SAFETY: as above.
unsafe impl Sync for FilterState {}

impl Drop for FilterState {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: called once, with the state it was given with.
            unsafe { destructor(self.state) };
        }
    }
}

/// The timestamp, or the error that reads fail with; null is none.
unsafe fn timestamp_in(timestamp: *const c_char, len: size_t) -> (Option<Timestamp>, Option<Error>) {
    if timestamp.is_null() {
        return (None, None);
    }
    // SAFETY: the caller's contract.
    match Timestamp::from_bytes(unsafe { slice(timestamp, len) }) {
        Ok(timestamp) => (Some(timestamp), None),
        Err(error) => (None, Some(error)),
    }
}

/// Notes on the functions above that set no number.
pub(crate) const READ_FUNCTION_NOTES: &[crate::settings::Note] = &[
    accepted("rocksdb_readoptions_set_merge_operand_count_threshold"),
    accepted("rocksdb_readoptions_clear_merge_operand_count_threshold"),
];

const fn accepted(function: &'static str) -> crate::settings::Note {
    let why =
        "of a longer merge RocksDB gives the value too, with a mark on its status that no C function shows";
    crate::settings::Note { function, fate: crate::settings::Fate::Accepted, why }
}
