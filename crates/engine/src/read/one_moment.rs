//! Views of several column families, all of one moment.
//!
//! ```text
//! views of all   sequence number   the same views?
//! ------|---------------|----------------|------> time
//!       '--- if all are current still, each was current when the number was read
//! ```
//! A view taken alone may lack what was written after its memtable was sealed. Beside another column family's, under a
//! sequence number read later, that would show a batch in one and not in the other.
//!
//! Concurrency: no lock, unless views change again and again, or the database only follows another.
//! Source: RocksDB `DBImpl::MultiCFSnapshot`.

use super::counts;
use super::cursor::Cursor;
use super::multi_get::{limited, multi_get};
use super::options::ReadOptions;
use super::tier;
use super::value::PinnedValue;
use super::view::ReadView;
use crate::column_family::{ColumnFamily, ColumnFamilyHandle};
use crate::snapshots::{Snapshot, SnapshotList};
use crate::superversion::SuperVersion;
use crate::version_set::VersionSet;
use arc_swap::Guard;
use outcrop_base::{Error, ErrorKind, Result, SeqNum};
use outcrop_monitor::Watch;
use std::sync::Arc;

/// Attempts without a lock. Source: RocksDB `DBImpl::MultiCFSnapshot`.
const ATTEMPTS: usize = 3;

type View = Guard<Arc<SuperVersion>>;

/// The view of each of `families`, and the sequence number to read them at: `snapshot`, or the latest.
fn views(
    versions: &VersionSet,
    snapshots: &Arc<SnapshotList>,
    families: &[&ColumnFamily],
    snapshot: Option<&Snapshot>,
) -> Result<(Vec<View>, SeqNum)> {
    families.iter().try_for_each(|cf| versions.ctx.check_owns(cf))?;
    let load = || families.iter().map(|cf| cf.superversion.load()).collect::<Vec<_>>();
    if let Some(snapshot) = snapshot {
        // It was taken before the views, and keeps what it sees.
        let views = load();
        return Ok((views, snapshot.readable(snapshots)?));
    }
    // One that follows another database replaces several views in a row: those in between are of no moment.
    let follows = versions.refuses_writes();
    for _ in 0..if follows { 0 } else { ATTEMPTS } {
        // Views before the number: a flush in between could otherwise drop what this number must see.
        let views = load();
        let seq = versions.visible_seq();
        let current = |(cf, view): (&&ColumnFamily, &View)| Arc::ptr_eq(&cf.superversion.load(), view);
        // A view that is held is at no other view's address: the same address is the same view.
        if families.iter().zip(&views).all(current) {
            return Ok((views, seq));
        }
    }
    // Views change under this lock alone.
    let _state = versions.state.lock();
    Ok((load(), versions.visible_seq()))
}

/// See [`crate::Db::multi_get_pairs_with`].
pub fn multi_get_pairs(
    versions: &VersionSet,
    snapshots: &Arc<SnapshotList>,
    options: &ReadOptions,
    pairs: &[(&ColumnFamilyHandle, &[u8])],
) -> Vec<Result<Option<PinnedValue>>> {
    let watching = versions.ctx.monitor.begin();
    let watch = Watch::from(&watching);
    let timer = watch.stats_timer();
    let mut families: Vec<&ColumnFamily> = Vec::new();
    let of: Vec<usize> = pairs.iter().map(|(cf, _)| place_of(&mut families, cf)).collect();
    let (views, seq) = match views(versions, snapshots, &families, options.snapshot.as_ref()) {
        Ok(views) => views,
        Err(error) => return pairs.iter().map(|_| Err(error.clone())).collect(),
    };
    let mut results: Vec<_> = pairs.iter().map(|_| Ok(None)).collect();
    let limit = options.value_size_soft_limit;
    let mut order: Vec<usize> = (0..families.len()).collect();
    if limit != u64::MAX {
        // As RocksDB goes over them: a limit that one passes ends the others after it.
        order.sort_by_key(|number| families[*number].id());
    }
    let mut is_over = false;
    for number in order {
        let (cf, sources) = (families[number], &views[number]);
        let places: Vec<usize> = (0..pairs.len()).filter(|&pair| of[pair] == number).collect();
        let keys: Vec<&[u8]> = places.iter().map(|&pair| pairs[pair].1).collect();
        let tables = &versions.ctx.tables;
        let some = tier::of_lookups(&versions.ctx, cf, sources, options);
        let sources = some.as_ref().unwrap_or(sources);
        let found = watch.counted(|counting| {
            let view = ReadView { tables, cf, sources, seq, options, counting, watch };
            match limit {
                u64::MAX => multi_get(&view, &keys),
                _ if is_over => keys.iter().map(|_| Err(Error::new(ErrorKind::Aborted, ""))).collect(),
                _ => {
                    let (found, passed) = limited(&view, &keys, limit);
                    is_over = passed;
                    found
                }
            }
        });
        places.into_iter().zip(found).for_each(|(pair, value)| results[pair] = value);
    }
    if watch.is_on() {
        counts::keys_read(watch, timer, &results, PinnedValue::size_bytes);
    }
    results
}

/// See [`crate::Db::cursors_with`].
pub fn cursors(
    versions: &VersionSet,
    snapshots: &Arc<SnapshotList>,
    families: &[&ColumnFamilyHandle],
    options: &ReadOptions,
) -> Result<Vec<Cursor>> {
    let all: Vec<&ColumnFamily> = families.iter().map(|cf| &***cf).collect();
    let (views, seq) = views(versions, snapshots, &all, options.snapshot.as_ref())?;
    let views = views.iter().map(|view| Arc::clone(view));
    families.iter().zip(views).map(|(cf, view)| Cursor::new(&versions.ctx, view, seq, cf, options)).collect()
}

/// The place of `cf` in `families`, which it is added to if it is not there.
fn place_of<'f>(families: &mut Vec<&'f ColumnFamily>, cf: &'f ColumnFamilyHandle) -> usize {
    let same = |known: &&ColumnFamily| std::ptr::eq(*known, &**cf);
    // Callers mostly group keys by column family.
    families.iter().rposition(same).unwrap_or_else(|| {
        families.push(cf);
        families.len() - 1
    })
}
