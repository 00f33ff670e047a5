//! The order of tables that all go to level 0: of two that have a key in common, the one with the newer entry comes first.
//!
//! A lookup takes what the first table says. The largest sequence number alone does not order tables that were on different levels: a
//! table of a deep level can hold a later write than the one above it, to another key. So each two tables that overlap are compared:
//! by their sequence numbers where these do not overlap, else by the first key that both have. In a tree all common keys of two tables
//! say the same.
//!
//! Source: RocksDB orders by largest sequence number (`VersionStorageInfo::RecoverEpochNumbers`), and may read older values then.

use crate::column_family::ColumnFamily;
use crate::context::DbContext;
use outcrop_base::keys::{Trailer, split, user_key};
use outcrop_base::{Comparator, Fragments, Result, SeqNum};
use outcrop_manifest::TableFile;
use outcrop_table::{Loading, TableIter, TableIterOptions};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Tables in order.
pub struct Ordered {
    /// Newest first.
    pub files: Vec<Arc<TableFile>>,
    /// Some are newer than each other.
    pub unclear: bool,
}

/// Orders the tables of one column family.
///
/// # Errors
/// Of reading them.
pub fn newest_first(ctx: &DbContext, cf: &ColumnFamily, files: &[Arc<TableFile>]) -> Result<Ordered> {
    let mut older_than: Vec<Vec<usize>> = vec![Vec::new(); files.len()];
    let mut newer_count = vec![0usize; files.len()];
    let mut by_begin: Vec<usize> = (0..files.len()).collect();
    let order = &cf.comparator;
    by_begin.sort_by(|a, b| order.compare(user_key(&files[*a].smallest), user_key(&files[*b].smallest)));
    let mut reaching: Vec<usize> = Vec::new();
    for index in by_begin {
        let begin = user_key(&files[index].smallest);
        reaching.retain(|other| !files[*other].ends_before(order, begin));
        for other in &reaching {
            for (newer, older) in newer_of(ctx, cf, (&files[index], index), (&files[*other], *other))? {
                older_than[newer].push(older);
                newer_count[older] += 1;
            }
        }
        reaching.push(index);
    }
    Ok(sorted(files, &older_than, newer_count))
}

/// Takes the newest of those that nothing is newer than, until none is left.
fn sorted(files: &[Arc<TableFile>], older_than: &[Vec<usize>], mut newer_count: Vec<usize>) -> Ordered {
    let rank = |index: usize| (files[index].largest_seq, files[index].number, index);
    let mut left: BTreeSet<_> = (0..files.len()).map(rank).collect();
    let mut free: BTreeSet<_> = (0..files.len()).filter(|i| newer_count[*i] == 0).map(rank).collect();
    let mut ordered = Ordered { files: Vec::with_capacity(files.len()), unclear: false };
    while let Some(&newest) = left.last() {
        let next = free.pop_last().unwrap_or_else(|| {
            ordered.unclear = true;
            newest
        });
        left.remove(&next);
        ordered.files.push(files[next.2].clone());
        for &older in &older_than[next.2] {
            newer_count[older] = newer_count[older].saturating_sub(1);
            if newer_count[older] == 0 && left.contains(&rank(older)) {
                free.insert(rank(older));
            }
        }
    }
    ordered
}

/// Which of two tables whose ranges overlap is newer: (newer, older), by their indexes. Both ways if they contradict each other.
fn newer_of(
    ctx: &DbContext,
    cf: &ColumnFamily,
    a: (&TableFile, usize),
    b: (&TableFile, usize),
) -> Result<Vec<(usize, usize)>> {
    if a.0.smallest_seq > b.0.largest_seq {
        return Ok(vec![(a.1, b.1)]);
    }
    if b.0.smallest_seq > a.0.largest_seq {
        return Ok(vec![(b.1, a.1)]);
    }
    let first = first_difference(ctx, cf, a.0, b.0)?;
    let (a_over_b, b_over_a) = (ranges(ctx, cf, a.0, b.0)?, ranges(ctx, cf, b.0, a.0)?);
    let mut found = Vec::new();
    if first.is_gt() || a_over_b.hides || b_over_a.is_passed {
        found.push((a.1, b.1));
    }
    if first.is_lt() || b_over_a.hides || a_over_b.is_passed {
        found.push((b.1, a.1));
    }
    Ok(found)
}

fn entries(ctx: &DbContext, cf: &ColumnFamily, file: &TableFile) -> Result<TableIter> {
    let options =
        TableIterOptions { loading: Loading::NotKept, readahead_bytes: 0, ..TableIterOptions::default() };
    Ok(ctx.tables.open(cf, file)?.iter(options))
}

/// How the newest entries of the first key that both have and that is not the same entry stand to each other.
fn first_difference(ctx: &DbContext, cf: &ColumnFamily, a: &TableFile, b: &TableFile) -> Result<Ordering> {
    let (mut left, mut right) = (entries(ctx, cf, a)?, entries(ctx, cf, b)?);
    let order = &cf.comparator;
    left.seek_to_first();
    while left.valid() {
        right.seek(user_key(left.key()), Trailer::MAX);
        if !right.valid() {
            break;
        }
        let (left_key, left_trailer) = split(left.key());
        let (right_key, right_trailer) = split(right.key());
        if order.compare(left_key, right_key).is_eq() {
            let seqs = left_trailer.seq().cmp(&right_trailer.seq());
            // Without numbers: what was written later has seen more.
            let by_file = if left_trailer == right_trailer && left.value() == right.value() {
                Ordering::Equal
            } else {
                a.number.cmp(&b.number)
            };
            let which = seqs.then(by_file);
            if which.is_ne() {
                return Ok(which);
            }
            let key = left_key.to_vec();
            skip_key(order, &mut left, &key);
        } else {
            let key = right_key.to_vec();
            left.seek(&key, Trailer::MAX);
        }
    }
    left.status()?;
    right.status()?;
    Ok(Ordering::Equal)
}

/// To the first entry of another key.
fn skip_key(order: &Comparator, iter: &mut TableIter, key: &[u8]) {
    while iter.valid() && order.compare(user_key(iter.key()), key).is_eq() {
        iter.next();
    }
}

/// The effects of range tombstones of one table on the entries of another.
#[derive(Default)]
struct Ranges {
    /// They hide some.
    hides: bool,
    /// Some are newer. A lookup that met the tombstone would stop before.
    is_passed: bool,
}

fn ranges(ctx: &DbContext, cf: &ColumnFamily, over: &TableFile, under: &TableFile) -> Result<Ranges> {
    let order = &cf.comparator;
    let tombstones = {
        let table = ctx.tables.open(cf, over)?;
        Fragments::clipped(table.range_tombstones(), order, &over.smallest, &over.largest)
    };
    let mut found = Ranges::default();
    if tombstones.is_empty() {
        return Ok(found);
    }
    let mut iter = entries(ctx, cf, under)?;
    for fragment in tombstones.iter() {
        iter.seek(&fragment.begin, Trailer::MAX);
        while iter.valid() && order.compare(user_key(iter.key()), &fragment.end).is_lt() {
            let seq = split(iter.key()).1.seq();
            found.hides |= seq < fragment.newest(SeqNum::MAX);
            found.is_passed |= seq > fragment.newest(SeqNum::MAX);
            if found.hides && found.is_passed {
                return Ok(found);
            }
            iter.next();
        }
        iter.status()?;
    }
    Ok(found)
}
