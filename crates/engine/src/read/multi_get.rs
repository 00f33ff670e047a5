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
use outcrop_table::{BlockPlace, Reading, TableReader, prefetch_directory, prefetch_entry};
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
    for keys in keys.chunks(GROUP) {
        let done = results.len();
        if view.is_stamped() {
            results.extend(keys.iter().map(|key| get::get(view, key)));
        } else if reading.loading.is_late(&*view.tables.monitor().clock) {
            // As in RocksDB: also what is in memory.
            let late = || Err(Error::new(ErrorKind::TimedOut, ""));
            results.extend(keys.iter().map(|_| late()));
        } else {
            GroupGet { view, reading }.get(keys, results);
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
        let watch = self.view.watch;
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
                if watch.is_on() {
                    let is_first = std::ptr::eq(key, &keys[0]);
                    let asked = if is_first { lookup.asked(self.view.sources) } else { 0 };
                    counts::memtables(watch, timer, lookup.is_decided(), asked);
                }
                let mut search = Search::default();
                // Asks for the filters' lines, which the first step tests when all keys have asked.
                if !lookup.is_decided() {
                    search.begin(&self.view.sources.version, self.view.cf, &lookup);
                }
                Ongoing { lookup, search, failed: None }
            })
            .collect();
        while self.step(&mut group) {}
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
            step.block = step.table.cached_at(step.place, self.view.watch);
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
            if matched && reading.watch.is_on() {
                search.count_found(&table, lookup, self.view, reading.watch);
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
    fn read_missing(&self, steps: &mut [Step<'a>], group: &mut [Ongoing<'_, '_>]) {
        let missing: Vec<usize> = (0..steps.len()).filter(|&at| steps[at].block.is_none()).collect();
        if missing.is_empty() {
            return;
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
        read_batch(&reads, &mut |number, stored| {
            let (table, place) = of[number];
            let block = stored.and_then(|stored| table.loaded_at(*place, stored, self.reading));
            take(of[number], block);
        });
    }

    fn finish(&self, ongoing: Ongoing<'_, '_>) -> Result<Option<PinnedValue>> {
        if let Some(error) = ongoing.failed {
            return Err(error);
        }
        let key = ongoing.lookup.key.user_key;
        let fetch = |index: &[u8]| self.view.fetch(key, index);
        ongoing
            .lookup
            .finish((self.view.cf, self.view.watch), fetch)?
            .map(|found| found.value(fetch))
            .transpose()
    }
}
