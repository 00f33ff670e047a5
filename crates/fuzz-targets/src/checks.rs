//! Reads a table in every way there is, and compares the answers.

use crate::bytes_file::{PATH, file};
use outcrop_base::keys::{ParsedKey, Trailer, split};
use outcrop_base::{Comparator, Error, Fragments, LookupKey, PrefixExtractor, Result, SeqNum};
use outcrop_cache::{Cache, CacheOptions};
use outcrop_table::{Loading, TableIter, TableIterOptions, TableReader, TableReaderOptions};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The demands on a table that opens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// It has one data block, a valid index and no filter: if its keys ascend, each must be found.
    OneBlock,
    /// Its index and filter may point anywhere and exclude anything.
    Any,
}

/// Entries that are looked at in a table whose blocks may be named any number of times.
const MOST_ENTRIES: usize = 100_000;
/// Keys of a table that are looked up.
const LOOKUPS: usize = 40;

pub type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// Opens `bytes` as a table, with and without a cache, and reads it.
pub fn check_table(bytes: &[u8], strictness: Strictness) {
    let cached = walk(bytes, true, strictness);
    let uncached = walk(bytes, false, strictness);
    if let (Some(cached), Some(uncached)) = (cached, uncached) {
        assert_eq!(cached, uncached, "the cache changes what is read");
    }
}

/// All rows of a table.
#[cfg(test)]
pub fn rows(bytes: &[u8]) -> Option<Rows> {
    walk(bytes, true, Strictness::OneBlock)
}

/// An error about a file names it.
pub fn named(error: &Error) {
    assert!(error.to_string().contains(PATH), "the error does not name the file: {error}");
}

/// All rows of a table, if it is whole and they are in order.
pub fn rows_in_order(bytes: &[u8]) -> Option<Rows> {
    let mut iter = open(bytes, false)
        .ok()?
        .iter(TableIterOptions { loading: Loading::NotKept, ..TableIterOptions::default() });
    iter.seek_to_first();
    let rows = collect(&mut iter, MOST_ENTRIES, Strictness::Any, TableIter::next)?;
    let ascend =
        rows.windows(2).all(|pair| Comparator::Bytewise.compare_internal(&pair[0].0, &pair[1].0).is_lt());
    (ascend && rows.len() <= MOST_ENTRIES).then_some(rows)
}

fn open(bytes: &[u8], with_cache: bool) -> Result<Arc<TableReader>> {
    let cache = with_cache.then(|| Cache::new(CacheOptions { capacity: 1 << 20, estimated_entry_charge: 0 }));
    let options = TableReaderOptions {
        comparator: Comparator::Bytewise,
        cache_file_id: Cache::new_file_id(),
        cache,
        cache_index_and_filter_blocks: with_cache,
        hold_in_cache: false,
        expected_unique_id: None,
        largest_seqno: SeqNum::MAX,
        prefix_extractor: PrefixExtractor::parse("rocksdb.FixedPrefix.3"),
        auto_readahead: Default::default(),
        monitor: outcrop_monitor::Monitor::none(),
        placement: Default::default(),
        pace: None,
        read_amp_bytes_per_bit: 0,
    };
    TableReader::open(file(bytes), options).map(Arc::new)
}

/// All rows if every way of reading ends without an error.
fn walk(bytes: &[u8], with_cache: bool, strictness: Strictness) -> Option<Rows> {
    let table = match open(bytes, with_cache) {
        Ok(table) => table,
        Err(error) => {
            named(&error);
            return None;
        }
    };
    check_tombstones(&table);
    let loading = if with_cache { Loading::Kept } else { Loading::NotKept };
    let mut iter =
        table.iter(TableIterOptions { loading, readahead_bytes: 0, ..TableIterOptions::default() });
    // An entry takes three bytes of its block.
    let most = if strictness == Strictness::OneBlock { bytes.len() / 3 } else { MOST_ENTRIES };
    iter.seek_to_first();
    let forward = collect(&mut iter, most, strictness, TableIter::next);
    iter.seek_to_last();
    let backward = collect(&mut iter, most, strictness, TableIter::prev);
    let ascending = |rows: &Rows| {
        rows.windows(2).all(|pair| Comparator::Bytewise.compare_internal(&pair[0].0, &pair[1].0).is_lt())
    };
    let in_order = forward.as_ref().is_some_and(ascending);
    if let (Some(forward), Some(backward), true) = (&forward, &backward, in_order)
        && forward.len() < most
    {
        assert!(forward.iter().eq(backward.iter().rev()), "both directions show the same rows");
    }
    let strict = strictness == Strictness::OneBlock && in_order;
    look_up(&table, &mut iter, forward.as_deref().unwrap_or_default(), loading, strict);
    forward
}

fn check_tombstones(table: &TableReader) {
    let order = Comparator::Bytewise;
    let tombstones = table.range_tombstones();
    assert!(tombstones.iter().all(|tombstone| tombstone.begin < tombstone.end));
    let fragments = Fragments::new(tombstones, &order);
    let all: Vec<_> = fragments.iter().collect();
    assert!(all.windows(2).all(|pair| pair[0].end <= pair[1].begin), "fragments are apart and in order");
    for tombstone in tombstones {
        let newest = fragments.covering(&order, &tombstone.begin, SeqNum::MAX);
        assert!(newest >= tombstone.seq, "a tombstone is lost");
    }
}

/// Every row from where `iter` is; `None` if it ends in an error.
fn collect(
    iter: &mut TableIter,
    most: usize,
    strictness: Strictness,
    step: fn(&mut TableIter),
) -> Option<Rows> {
    let mut rows = Rows::new();
    while iter.valid() {
        if rows.len() > most {
            assert!(strictness == Strictness::Any, "the iterator does not end");
            break;
        }
        rows.push((iter.key().to_vec(), iter.value().to_vec()));
        step(iter);
    }
    match iter.status() {
        Ok(()) => Some(rows),
        Err(error) => {
            named(&error);
            None
        }
    }
}

/// Looks rows up by get and seek. With `strict` each must be found.
fn look_up(
    table: &Arc<TableReader>,
    iter: &mut TableIter,
    rows: &[(Vec<u8>, Vec<u8>)],
    loading: Loading,
    strict: bool,
) {
    for (key, value) in rows.iter().take(LOOKUPS) {
        let Ok(parsed) = ParsedKey::parse(key) else {
            assert!(!strict, "a block was accepted with a key that is no internal key");
            continue;
        };
        let mut found = None;
        let lookup = LookupKey::new(parsed.user_key);
        table.prefetch_filter(lookup.hash);
        let _ = table.may_contain(lookup.hash, outcrop_monitor::Counting::OFF);
        let three = PrefixExtractor::Fixed(3);
        let _ = table.may_contain_prefix(&three, &parsed.user_key[..parsed.user_key.len().min(3)], loading);
        let got = table.get(&lookup, parsed.seq, loading, |seq, value_type, value, _| {
            found = Some((seq, value_type, value.to_vec()));
            ControlFlow::Break(())
        });
        let (user_key, trailer) = split(key);
        iter.seek(user_key, trailer);
        let at = iter.valid().then(|| iter.key().to_vec());
        iter.seek_for_prev(user_key, trailer);
        let before = iter.valid().then(|| iter.key().to_vec());
        match got {
            Err(error) => named(&error),
            Ok(()) if strict => {
                let (seq, _, newest) = found.expect("get finds every key");
                assert_eq!(seq, parsed.seq, "get gives the newest version the snapshot sees");
                // Several types under one sequence number are possible only in bytes nobody wrote.
                let same_seq = |row: &&(Vec<u8>, Vec<u8>)| {
                    ParsedKey::parse(&row.0)
                        .is_ok_and(|other| (other.user_key, other.seq) == (parsed.user_key, parsed.seq))
                };
                let first = rows.iter().find(same_seq).map(|row| &row.1);
                assert_eq!(Some(&newest), first.or(Some(value)), "get gives the row's value");
                assert_eq!(at.as_ref(), Some(key), "seek finds every key");
                assert_eq!(before.as_ref(), Some(key), "seek_for_prev finds every key");
            }
            Ok(()) => {}
        }
    }
    for absent in [&b""[..], b"apple\0", &[0xFF; 30]] {
        if let Err(error) =
            table.get(&LookupKey::new(absent), SeqNum::MAX, loading, |_, _, _, _| ControlFlow::Continue(()))
        {
            named(&error);
        }
        iter.seek(absent, Trailer::MAX);
        if let Err(error) = table.approximate_offset_of(absent) {
            named(&error);
        }
    }
}
