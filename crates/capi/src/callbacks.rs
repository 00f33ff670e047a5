//! Objects with behaviour that C programs bring: comparators, merge operators, compaction filters.
//!
//! Ownership as in RocksDB: options take a merge operator and a filter factory over; a comparator or filter stays the
//! caller's and must live until the databases that use it are closed. Here each is counted, so that destroying it
//! early is harmless.
//!
//! Concurrency: callbacks are called from any thread, several at once, as RocksDB calls them.

use crate::memory::{give_back, hand_out, slice, text};
use crate::options::rocksdb_options_t;
use crate::settings::{Fate, Note};
use libc::{c_char, c_int, c_uchar, c_void, size_t};
use outcrop::{
    CompactionFilter, CompactionFilterFactory, Comparator, FilterContext, FilterDecision, MergeOperator,
    UserComparator,
};
use std::cmp::Ordering;
use std::sync::Arc;

pub(crate) type Destructor = Option<unsafe extern "C-unwind" fn(*mut c_void)>;
pub(crate) type Name = Option<unsafe extern "C-unwind" fn(*mut c_void) -> *const c_char>;

/// The caller's state, what ends it, and the name it goes by.
pub(crate) struct State {
    pub(crate) pointer: *mut c_void,
    destructor: Destructor,
    pub(crate) name: String,
}

// SAFETY: RocksDB's contract: callbacks may be called from any thread, several at once.
unsafe impl Send for State {}
// SAFETY: as above.
unsafe impl Sync for State {}

impl State {
    pub(crate) unsafe fn new(pointer: *mut c_void, destructor: Destructor, name: Name) -> State {
        // SAFETY: the caller passes a function that gives a NUL-terminated string, or none.
        let name = name.map_or_else(String::new, |name| unsafe { text(name(pointer)) });
        State { pointer, destructor, name }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: called once, with the pointer it was given with.
            unsafe { destructor(self.pointer) };
        }
    }
}

pub(crate) fn bytes(slice: &[u8]) -> (*const c_char, size_t) {
    (slice.as_ptr().cast(), slice.len())
}

// ---- comparators

type Compare =
    unsafe extern "C-unwind" fn(*mut c_void, *const c_char, size_t, *const c_char, size_t) -> c_int;

pub struct rocksdb_comparator_t {
    comparator: Arc<CComparator>,
}

impl rocksdb_comparator_t {
    /// Its order of keys.
    pub(crate) fn order(&self) -> Comparator {
        Comparator::User(self.comparator.clone())
    }
}

struct CComparator {
    state: State,
    compare: Compare,
    stamps: Option<Stamps>,
}

/// The length of timestamps, and the functions that order keys that end with them.
struct Stamps {
    len: usize,
    compare: CompareTimestamps,
    compare_without: CompareWithout,
}

impl CComparator {
    /// False for a stored key that damage has left too short for its timestamp: the application need not expect one.
    fn is_whole(&self, stored: &[u8]) -> bool {
        self.stamps.as_ref().is_none_or(|stamps| stored.len() >= stamps.len)
    }
}

impl UserComparator for CComparator {
    fn name(&self) -> &str {
        &self.state.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        outcrop::PerfContext::count(outcrop::PerfMetric::UserKeyComparisonCount, 1);
        if self.stamps.is_some() && !(self.is_whole(a) && self.is_whole(b)) {
            return a.cmp(b);
        }
        let ((a, a_len), (b, b_len)) = (bytes(a), bytes(b));
        // SAFETY: the contract of the C API: the function reads the two keys and nothing else.
        unsafe { (self.compare)(self.state.pointer, a, a_len, b, b_len) }.cmp(&0)
    }

    fn timestamp_len(&self) -> usize {
        self.stamps.as_ref().map_or(0, |stamps| stamps.len)
    }

    fn compare_timestamps(&self, a: &[u8], b: &[u8]) -> Ordering {
        let Some(stamps) = &self.stamps else { return a.cmp(b) };
        let ((a, a_len), (b, b_len)) = (bytes(a), bytes(b));
        // SAFETY: as for `compare`.
        unsafe { (stamps.compare)(self.state.pointer, a, a_len, b, b_len) }.cmp(&0)
    }

    fn compare_without_timestamps(&self, a: (&[u8], bool), b: (&[u8], bool)) -> Ordering {
        let Some(stamps) = &self.stamps else { return self.compare(a.0, b.0) };
        if [a, b].iter().any(|(key, stored)| *stored && !self.is_whole(key)) {
            return a.0.cmp(b.0);
        }
        let (((a, a_len), a_has), ((b, b_len), b_has)) = ((bytes(a.0), a.1), (bytes(b.0), b.1));
        let has = |has: bool| c_uchar::from(has);
        // SAFETY: as for `compare`.
        let order = unsafe {
            (stamps.compare_without)(self.state.pointer, a, a_len, has(a_has), b, b_len, has(b_has))
        };
        order.cmp(&0)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_comparator_create(
    state: *mut c_void,
    destructor: Destructor,
    compare: Compare,
    name: Name,
) -> *mut rocksdb_comparator_t {
    boundary!({
        let state = State::new(state, destructor, name);
        hand_out(rocksdb_comparator_t { comparator: Arc::new(CComparator { state, compare, stamps: None }) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_comparator_destroy(comparator: *mut rocksdb_comparator_t) {
    boundary!(give_back(comparator))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_comparator(
    options: *mut rocksdb_options_t,
    comparator: *mut rocksdb_comparator_t,
) {
    boundary!({
        let options = &mut *options;
        // No database opens without an order, RocksDB's neither.
        let Some(comparator) = comparator.as_ref() else {
            options.settings.refuse("comparator", "null");
            return;
        };
        options.settings.allow("comparator");
        options.parts.comparator = comparator.order();
    })
}

type CompareTimestamps =
    unsafe extern "C-unwind" fn(*mut c_void, *const c_char, size_t, *const c_char, size_t) -> c_int;
type CompareWithout = unsafe extern "C-unwind" fn(
    *mut c_void,
    *const c_char,
    size_t,
    c_uchar,
    *const c_char,
    size_t,
    c_uchar,
) -> c_int;

/// A comparator of keys that end with timestamps; with other lengths than 8 bytes a database that is given it does not open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_comparator_with_ts_create(
    state: *mut c_void,
    destructor: Destructor,
    compare: Compare,
    compare_timestamps: CompareTimestamps,
    compare_without: CompareWithout,
    name: Name,
    timestamp_size: size_t,
) -> *mut rocksdb_comparator_t {
    boundary!({
        let state = State::new(state, destructor, name);
        let stamps = Stamps { len: timestamp_size, compare: compare_timestamps, compare_without };
        let stamps = (timestamp_size > 0).then_some(stamps);
        hand_out(rocksdb_comparator_t { comparator: Arc::new(CComparator { state, compare, stamps }) })
    })
}

pub(crate) const CALLBACK_NOTES: &[Note] = &[
    Note {
        function: "rocksdb_comparator_with_ts_create",
        fate: Fate::Checked,
        why: "timestamps of other lengths than 8 bytes are not supported",
    },
    Note {
        function: "rocksdb_compactionfilter_set_ignore_snapshots",
        fate: Fate::Checked,
        why: "filters ignore snapshots, as in RocksDB since 6.0, whose compactions fail under a filter that is set not to",
    },
];

// ---- merge operators

type FullMerge = unsafe extern "C-unwind" fn(
    *mut c_void,
    *const c_char,
    size_t,
    *const c_char,
    size_t,
    *const *const c_char,
    *const size_t,
    c_int,
    *mut c_uchar,
    *mut size_t,
) -> *mut c_char;
type PartialMerge = unsafe extern "C-unwind" fn(
    *mut c_void,
    *const c_char,
    size_t,
    *const *const c_char,
    *const size_t,
    c_int,
    *mut c_uchar,
    *mut size_t,
) -> *mut c_char;
type DeleteValue = Option<unsafe extern "C-unwind" fn(*mut c_void, *const c_char, size_t)>;

pub struct rocksdb_mergeoperator_t(Arc<CMergeOperator>);

struct CMergeOperator {
    state: State,
    full_merge: FullMerge,
    partial_merge: PartialMerge,
    delete_value: DeleteValue,
}

impl CMergeOperator {
    /// Copies a value that a callback returned, and gives the callback's memory back.
    unsafe fn take(&self, value: *mut c_char, len: size_t, success: c_uchar) -> Option<Vec<u8>> {
        // SAFETY: the callback returned `len` readable bytes, or failed; it is told once that they are done with.
        unsafe {
            let taken = (success != 0).then(|| slice(value, len).to_vec());
            match self.delete_value {
                Some(delete) => delete(self.state.pointer, value, len),
                None => libc::free(value.cast()),
            }
            taken
        }
    }
}

fn parts(operands: &[&[u8]]) -> (Vec<*const c_char>, Vec<size_t>) {
    operands.iter().map(|operand| bytes(operand)).unzip()
}

impl MergeOperator for CMergeOperator {
    fn name(&self) -> &str {
        &self.state.name
    }

    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let (pointers, lens) = parts(operands);
        let (key, key_len) = bytes(key);
        let (existing, existing_len) = existing.map_or((std::ptr::null(), 0), bytes);
        let (mut success, mut len) = (1, 0);
        // SAFETY: the contract of the C API; all pointers are valid for the call.
        unsafe {
            let value = (self.full_merge)(
                self.state.pointer,
                key,
                key_len,
                existing,
                existing_len,
                pointers.as_ptr(),
                lens.as_ptr(),
                operands.len() as c_int,
                &mut success,
                &mut len,
            );
            self.take(value, len, success)
        }
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let (pointers, lens) = parts(operands);
        let (key, key_len) = bytes(key);
        let (mut success, mut len) = (1, 0);
        // SAFETY: the contract of the C API; all pointers are valid for the call.
        unsafe {
            let value = (self.partial_merge)(
                self.state.pointer,
                key,
                key_len,
                pointers.as_ptr(),
                lens.as_ptr(),
                operands.len() as c_int,
                &mut success,
                &mut len,
            );
            self.take(value, len, success)
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_mergeoperator_create(
    state: *mut c_void,
    destructor: Destructor,
    full_merge: FullMerge,
    partial_merge: PartialMerge,
    delete_value: DeleteValue,
    name: Name,
) -> *mut rocksdb_mergeoperator_t {
    boundary!({
        let state = State::new(state, destructor, name);
        let operator = CMergeOperator { state, full_merge, partial_merge, delete_value };
        hand_out(rocksdb_mergeoperator_t(Arc::new(operator)))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_mergeoperator_destroy(operator: *mut rocksdb_mergeoperator_t) {
    boundary!(give_back(operator))
}

/// Takes the operator over; null takes one away.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_merge_operator(
    options: *mut rocksdb_options_t,
    operator: *mut rocksdb_mergeoperator_t,
) {
    boundary!({
        (*options).parts.merge_operator =
            operator.as_ref().map(|operator| operator.0.clone() as Arc<dyn MergeOperator>);
        give_back(operator);
    })
}

// ---- compaction filters

type Filter = unsafe extern "C-unwind" fn(
    *mut c_void,
    c_int,
    *const c_char,
    size_t,
    *const c_char,
    size_t,
    *mut *mut c_char,
    *mut size_t,
    *mut c_uchar,
) -> c_uchar;

/// A filter, and whether it ignores snapshots.
pub struct rocksdb_compactionfilter_t(Arc<CFilter>, bool);

struct CFilter {
    state: State,
    filter: Filter,
}

impl CompactionFilter for CFilter {
    fn name(&self) -> &str {
        &self.state.name
    }

    fn filter(&self, level: usize, key: &[u8], value: &[u8]) -> FilterDecision {
        let ((key, key_len), (value, value_len)) = (bytes(key), bytes(value));
        let (mut new_value, mut new_len, mut changed) = (std::ptr::null_mut(), 0, 0);
        // SAFETY: the contract of the C API; a changed value stays the callback's and is copied at once.
        unsafe {
            let removed = (self.filter)(
                self.state.pointer,
                level as c_int,
                key,
                key_len,
                value,
                value_len,
                &mut new_value,
                &mut new_len,
                &mut changed,
            );
            match (removed != 0, changed != 0) {
                (true, _) => FilterDecision::Remove,
                (false, true) => FilterDecision::ChangeValue(slice(new_value, new_len).to_vec()),
                (false, false) => FilterDecision::Keep,
            }
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionfilter_create(
    state: *mut c_void,
    destructor: Destructor,
    filter: Filter,
    name: Name,
) -> *mut rocksdb_compactionfilter_t {
    boundary!({
        let state = State::new(state, destructor, name);
        hand_out(rocksdb_compactionfilter_t(Arc::new(CFilter { state, filter }), true))
    })
}

/// A database does not open with a filter that this was called on with 0 before the filter became an option: RocksDB's opens, and its
/// compactions fail.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionfilter_set_ignore_snapshots(
    filter: *mut rocksdb_compactionfilter_t,
    ignore: c_uchar,
) {
    boundary!((*filter).1 = ignore != 0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionfilter_destroy(filter: *mut rocksdb_compactionfilter_t) {
    boundary!(give_back(filter))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_compaction_filter(
    options: *mut rocksdb_options_t,
    filter: *mut rocksdb_compactionfilter_t,
) {
    boundary!({
        let filter = filter.as_ref();
        if filter.is_some_and(|filter| !filter.1) {
            (*options).settings.refuse("compaction_filter", "one that does not ignore snapshots");
        } else {
            (*options).settings.allow("compaction_filter");
        }
        (*options).parts.compaction_filter =
            filter.map(|filter| filter.0.clone() as Arc<dyn CompactionFilter>);
    })
}

pub struct rocksdb_compactionfiltercontext_t(FilterContext);

type CreateFilter = unsafe extern "C-unwind" fn(
    *mut c_void,
    *mut rocksdb_compactionfiltercontext_t,
) -> *mut rocksdb_compactionfilter_t;

pub struct rocksdb_compactionfilterfactory_t(Arc<CFactory>);

struct CFactory {
    state: State,
    create: CreateFilter,
}

impl CompactionFilterFactory for CFactory {
    fn name(&self) -> &str {
        &self.state.name
    }

    fn create(&self, context: FilterContext) -> Option<Arc<dyn CompactionFilter>> {
        let mut context = rocksdb_compactionfiltercontext_t(context);
        // SAFETY: the contract of the C API; the filter that is returned is ours.
        unsafe {
            let filter = (self.create)(self.state.pointer, &mut context);
            if filter.is_null() {
                return None;
            }
            let shared: Arc<dyn CompactionFilter> = (*filter).0.clone();
            give_back(filter);
            Some(shared)
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionfilterfactory_create(
    state: *mut c_void,
    destructor: Destructor,
    create: CreateFilter,
    name: Name,
) -> *mut rocksdb_compactionfilterfactory_t {
    boundary!({
        let state = State::new(state, destructor, name);
        hand_out(rocksdb_compactionfilterfactory_t(Arc::new(CFactory { state, create })))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionfilterfactory_destroy(
    factory: *mut rocksdb_compactionfilterfactory_t,
) {
    boundary!(give_back(factory))
}

/// Takes the factory over; null takes one away.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_compaction_filter_factory(
    options: *mut rocksdb_options_t,
    factory: *mut rocksdb_compactionfilterfactory_t,
) {
    boundary!({
        (*options).parts.compaction_filter_factory =
            factory.as_ref().map(|factory| factory.0.clone() as Arc<dyn CompactionFilterFactory>);
        give_back(factory);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionfiltercontext_is_full_compaction(
    context: *mut rocksdb_compactionfiltercontext_t,
) -> c_uchar {
    boundary!((*context).0.is_full_compaction.into())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionfiltercontext_is_manual_compaction(
    context: *mut rocksdb_compactionfiltercontext_t,
) -> c_uchar {
    boundary!((*context).0.is_manual_compaction.into())
}
