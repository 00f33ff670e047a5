//! Many point lookups at once.
//!
//! ```text
//! for a group of keys, one step after the other, each step for all keys:
//!   memtables -> candidate tables -> filters, index -> cache tags -> slots -> directories -> entries
//!                     ^                                        |
//!                     |                                missing blocks: one batch of reads
//!                     `------------ keys that are not decided go on with their next table
//! ```
//! A lookup alone is a chain of cache misses, each of which waits for the one before. Here every step asks for the
//! lines of all keys before the next step needs the first of them, so the misses of different keys overlap; and the
//! blocks that must be read, of whatever level, are read together.

use super::counts;
use super::get::{self, Lookup, Search};
use super::value::PinnedValue;
use super::view::ReadView;
use crate::table_cache::TableRef;
use outcrop_base::{Error, ErrorKind, LookupKey, Result};
use outcrop_cache::Pinned;
use outcrop_env::read_batch;
use outcrop_manifest::TableFile;
use outcrop_monitor::{HistogramKind, PerfMetric, Purpose, ReadCount, Watch};
use outcrop_table::{BlockPlace, Reading, TableReader, prefetch_directory, prefetch_entry};
use std::cell::RefCell;
use std::sync::Arc;

/// Keys that go together: more would push each other's lines out of the nearest cache.
const GROUP: usize = 32;

/// The value of each key.
pub fn multi_get(view: &ReadView<'_>, keys: &[&[u8]]) -> Vec<Result<Option<PinnedValue>>> {
    if view.options.value_size_soft_limit != u64::MAX {
        return limited(view, keys, view.options.value_size_soft_limit).0;
    }
    let mut results = Vec::with_capacity(keys.len());
    each_group(view, keys, &mut results, |_| true);
    results
}

/// The same in the order of keys, until values of more than `limit` bytes were found, and whether they were.
///
/// Source: RocksDB `MultiGetImpl`, where a group of up to 32 keys in tables may go further.
#[cold]
pub fn limited(view: &ReadView<'_>, keys: &[&[u8]], limit: u64) -> (Vec<Result<Option<PinnedValue>>>, bool) {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|a, b| view.cf.keys.compare(keys[*a], keys[*b]));
    let sorted: Vec<&[u8]> = order.iter().map(|place| keys[*place]).collect();
    let (mut found, mut bytes) = (Vec::with_capacity(keys.len()), 0);
    each_group(view, &sorted, &mut found, |group| {
        for result in group {
            if bytes > limit {
                *result = Err(Error::new(ErrorKind::Aborted, ""));
            } else if let Ok(Some(value)) = result {
                bytes += value.len() as u64;
            }
        }
        bytes <= limit
    });
    let mut results: Vec<_> = keys.iter().map(|_| Err(Error::new(ErrorKind::Aborted, ""))).collect();
    order.into_iter().zip(found).for_each(|(place, result)| results[place] = result);
    (results, bytes > limit)
}

/// Adds the value of each key to `results`, until `goes_on` says of those of a group that it is enough.
#[inline]
fn each_group(
    view: &ReadView<'_>,
    keys: &[&[u8]],
    results: &mut Vec<Result<Option<PinnedValue>>>,
    mut goes_on: impl FnMut(&mut [Result<Option<PinnedValue>>]) -> bool,
) {
    let reading = view.reading();
    let _reading = Purpose::Multiget.begin_if_none();
    for keys in keys.chunks(GROUP) {
        let done = results.len();
        if view.is_stamped() {
            results.extend(keys.iter().map(|key| get::get(view, key)));
        } else if reading.loading.is_late(&*view.tables.monitor().clock) {
            // As in RocksDB: also what is in memory.
            let late = || Err(Error::new(ErrorKind::TimedOut, ""));
            results.extend(keys.iter().map(|_| late()));
        } else {
            GroupGet { view, reading, read: RefCell::default() }.get(keys, results);
        }
        if !goes_on(&mut results[done..]) {
            return;
        }
    }
}

/// A group of keys that go together.
struct GroupGet<'a> {
    view: &'a ReadView<'a>,
    reading: Reading<'a>,
    /// The tables that blocks were read of, if statistics count them.
    read: RefCell<Vec<&'a TableFile>>,
}

/// One key's lookup.
struct Ongoing<'k, 'v> {
    lookup: Lookup<'k>,
    search: Search<'v>,
    failed: Option<Error>,
}

/// A block that one key's lookup needs.
struct Step<'v> {
    /// The key, by its place in the group.
    key: usize,
    table: TableRef<'v>,
    place: BlockPlace,
    block: Option<Pinned>,
}

impl<'a> GroupGet<'a> {
    fn get(&self, keys: &[&[u8]], results: &mut Vec<Result<Option<PinnedValue>>>) {
        let (counting, watch) = (self.view.counting, self.view.watch);
        let keys: Vec<LookupKey<'_>> = keys.iter().map(|key| LookupKey::new(key)).collect();
        for key in &keys {
            self.view.sources.memtable.prefetch(key.hash);
        }
        let mut group: Vec<Ongoing<'_, '_>> = keys
            .iter()
            .map(|key| {
                let mut lookup = Lookup::of(self.view, key);
                let timer = watch.perf_timer();
                lookup.memtables(self.view.sources);
                timer.nanos(PerfMetric::GetFromMemtableTime);
                if watch.is_on() && std::ptr::eq(key, &keys[0]) {
                    // Of keys that are read together the first counts them.
                    counting.add(ReadCount::MemtablesAsked, lookup.asked(self.view.sources));
                }
                let mut search = Search::default();
                if lookup.is_decided() {
                    counting.add(ReadCount::MemtableHit, 1);
                } else {
                    counting.add(ReadCount::MemtableMiss, 1);
                    // Asks for the filters' lines, which the first step tests when all keys have asked.
                    search.begin(&self.view.sources.version, self.view.cf, &lookup);
                }
                Ongoing { lookup, search, failed: None }
            })
            .collect();
        let mut asks_tables = false;
        while self.step(&mut group) {
            asks_tables = true;
        }
        if asks_tables && let Some(stats) = watch.stats() {
            let order = &self.view.cf.comparator;
            counts::levels_read(stats, &self.view.sources.version, order, &self.read.borrow());
        }
        results.extend(group.into_iter().map(|ongoing| self.finish(ongoing)));
    }

    /// Takes every undecided lookup through its next table; false if there was none.
    fn step(&self, group: &mut [Ongoing<'_, 'a>]) -> bool {
        let mut steps: Vec<Step<'a>> = Vec::with_capacity(group.len());
        for (key, ongoing) in group.iter_mut().enumerate() {
            match self.next_block(ongoing) {
                Ok(Some((table, place))) => steps.push(Step { key, table, place, block: None }),
                Ok(None) => {}
                Err(error) => ongoing.failed = Some(error),
            }
        }
        for step in &steps {
            step.table.prefetch_slot(step.place);
        }
        for step in &mut steps {
            step.block = step.table.cached_at(step.place, self.view.counting);
            step.block.iter().for_each(prefetch_directory);
        }
        self.read_missing(&mut steps, group);
        for step in &steps {
            if let Some(block) = &step.block {
                prefetch_entry(block, group[step.key].lookup.key);
            }
        }
        let any = !steps.is_empty();
        for Step { key, table, place, block } in steps {
            let (Some(block), Ongoing { lookup, failed, search }) = (block, &mut group[key]) else {
                continue;
            };
            let (key, reading) = (lookup.key, self.reading);
            let mut matched = false;
            let done =
                table.get_from(place, block, key, self.view.seq, reading, |seq, value_type, value, block| {
                    matched = true;
                    lookup.visit(seq, value_type, value, Some(block))
                });
            *failed = done.err();
            if matched {
                search.count_found(&table, lookup, reading.counting);
            }
        }
        any
    }

    /// The block the lookup must look into next; asks for the cache's tags of it.
    fn next_block(&self, ongoing: &mut Ongoing<'_, 'a>) -> Result<Option<(TableRef<'a>, BlockPlace)>> {
        if ongoing.failed.is_some() {
            return Ok(None);
        }
        let Ongoing { lookup, search, .. } = ongoing;
        while let Some(table) = search.next_table(self.view.tables, self.view.cf, lookup, self.reading)? {
            if let Some(place) = table.find(lookup.key, self.view.seq, self.reading)? {
                table.prefetch_tags(place);
                return Ok(Some((table, place)));
            }
        }
        Ok(None)
    }

    /// Reads the blocks that were not cached, each once, all in one batch.
    fn read_missing(&self, steps: &mut [Step<'a>], group: &mut [Ongoing<'_, 'a>]) {
        let missing: Vec<usize> = (0..steps.len()).filter(|&at| steps[at].block.is_none()).collect();
        if missing.is_empty() {
            return;
        }
        if self.view.watch.stats().is_some() {
            let files = missing.iter().filter_map(|at| group[steps[*at].key].search.last_asked());
            self.read.borrow_mut().extend(files);
        }
        let mut wanted: Vec<(Arc<TableReader>, BlockPlace)> = Vec::new();
        let same = |step: &Step<'_>, (table, place): &(Arc<TableReader>, BlockPlace)| {
            Arc::ptr_eq(&step.table, table) && step.place.offset() == place.offset()
        };
        for &at in &missing {
            if !wanted.iter().any(|known| same(&steps[at], known)) {
                wanted.push((steps[at].table.clone(), steps[at].place));
            }
        }
        let mut take = |known: &(Arc<TableReader>, BlockPlace), block: Result<Pinned>| {
            for &at in &missing {
                if same(&steps[at], known) {
                    match &block {
                        Ok(block) => steps[at].block = Some(block.clone()),
                        Err(error) => group[steps[at].key].failed = Some(error.clone()),
                    }
                }
            }
        };
        let (mut reads, mut of) = (Vec::with_capacity(wanted.len()), Vec::with_capacity(wanted.len()));
        for known in &wanted {
            match known.0.read_at(known.1, self.reading) {
                Ok(read) => {
                    reads.push(read);
                    of.push(known);
                }
                Err(error) => take(known, Err(error)),
            }
        }
        let watching = self.view.watching();
        let timer = Watch::from(&watching).stats_timer();
        read_batch(&reads, &mut |number, stored| {
            let (table, place) = of[number];
            let block = stored.and_then(|stored| table.loaded_at(*place, stored, self.reading));
            take(of[number], block);
        });
        timer.micros(HistogramKind::FileReadMultigetMicros);
    }

    fn finish(&self, ongoing: Ongoing<'_, '_>) -> Result<Option<PinnedValue>> {
        if let Some(error) = ongoing.failed {
            return Err(error);
        }
        ongoing.lookup.finish_value(self.view)
    }
}
