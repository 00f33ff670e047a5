//! Reads by every call, each of which has to show one moment.

use super::shape::{FAMILIES, Rows, heads_of, keys, range};
use super::worker::Stage;
use crate::database::{Handle, ReadView, SnapshotHandle};
use crate::iter::Iter;
use outcrop_base::random::SplitMix as Random;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// Rows of column families, by their numbers.
type Found = Vec<(usize, Rows)>;

/// Reads until all writes were made.
///
/// # Errors
/// What is not of one moment.
pub fn read(stage: &Stage<'_, '_>, reader: usize) -> Result<(), String> {
    let mut random = Random::new(stage.seed ^ 0xBEEF ^ (reader as u64) << 32);
    let mut seen = vec![0; stage.clock.len()];
    let mut since = 0;
    while !stage.over.load(Ordering::SeqCst) {
        let call = random.below(8);
        let writer = random.index(stage.clock.len());
        let mut judge = |writer: usize, done: u64, found: &Found| -> Result<(), String> {
            let count = stage.shape.judge(writer, found)?;
            let begun = stage.clock[writer].begun.load(Ordering::SeqCst);
            if count < done || count > begun || count < seen[writer] {
                return Err(format!(
                    "writer {writer}: {count} writes are shown, of {begun} that began; {done} were acknowledged before, {} were seen",
                    seen[writer]
                ));
            }
            seen[writer] = count;
            stage.moments.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        let done: Vec<u64> = stage.clock.iter().map(|hand| hand.done.load(Ordering::SeqCst)).collect();
        let outcome = match call {
            0 => updates(stage, &mut since),
            1 => {
                let iters = stage.database.iterators(stage.handles)?;
                let found = iters
                    .into_iter()
                    .enumerate()
                    .map(|(family, iter)| Ok((family, rows_of(iter, writer, random.one_in(2))?)))
                    .collect::<Result<Found, String>>()?;
                judge(writer, done[writer], &found)
            }
            2 => {
                let family = random.index(FAMILIES.len());
                let (lower, upper) = range(writer);
                let view = ReadView { lower: Some(&lower), upper: Some(&upper), ..ReadView::default() };
                let iter = stage.database.iter(stage.handles[family], &view)?;
                judge(writer, done[writer], &vec![(family, rows_of(iter, writer, random.one_in(2))?)])
            }
            3 => {
                let found = at_once(stage, writer)?;
                judge(writer, done[writer], &found)
            }
            _ => {
                let snapshot = stage.database.snapshot()?;
                // All writers at this one moment, twice: it stays as it is.
                let outcome = (0..stage.clock.len()).try_for_each(|writer| {
                    let first = by_call(stage, writer, snapshot, call)?;
                    judge(writer, done[writer], &first)?;
                    let again = by_call(stage, writer, snapshot, 4 + random.below(4))?;
                    if first == again {
                        Ok(())
                    } else {
                        Err(format!("a snapshot of writer {writer} changed"))
                    }
                });
                stage.database.release(snapshot)?;
                outcome
            }
        };
        outcome.map_err(|why| format!("by call {call}: {why}"))?;
    }
    Ok(())
}

/// Everything is there that was written, when nobody writes.
///
/// # Errors
/// What is missing.
pub fn all_is_there(stage: &Stage<'_, '_>) -> Result<(), String> {
    for (writer, hand) in stage.clock.iter().enumerate() {
        let found = stage
            .handles
            .iter()
            .enumerate()
            .map(|(family, handle)| {
                Ok((family, rows_of(stage.database.iter(*handle, &ReadView::default())?, writer, false)?))
            })
            .collect::<Result<Found, String>>()?;
        let (count, done) = (stage.shape.judge(writer, &found)?, hand.done.load(Ordering::SeqCst));
        if count != done {
            return Err(format!("writer {writer}: {count} writes are there, of {done}"));
        }
    }
    Ok(())
}

/// The rows of a writer in all column families, by one call for each key or all.
fn by_call(
    stage: &Stage<'_, '_>,
    writer: usize,
    snapshot: SnapshotHandle,
    call: u64,
) -> Result<Found, String> {
    let view = ReadView { snapshot: Some(snapshot), ..ReadView::default() };
    let (database, keys) = (stage.database, keys(writer));
    let slices: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let of_family = |handle: Handle| -> Result<Rows, String> {
        let values = match call {
            4 => slices.iter().map(|key| database.get(handle, &view, key)).collect::<Result<Vec<_>, _>>()?,
            5 => slices
                .iter()
                .map(|key| database.get_pinned(handle, &view, key))
                .collect::<Result<Vec<_>, _>>()?,
            6 => database.batched_multi_get(handle, &view, &slices)?,
            _ => return rows_of(database.iter(handle, &view)?, writer, writer.is_multiple_of(2)),
        };
        Ok(with_values(&keys, values))
    };
    stage.handles.iter().enumerate().map(|(family, handle)| Ok((family, of_family(*handle)?))).collect()
}

/// The rows of a writer in all column families by one multi_get, without a snapshot.
fn at_once(stage: &Stage<'_, '_>, writer: usize) -> Result<Found, String> {
    let keys = keys(writer);
    let wanted: Vec<(Handle, &[u8])> =
        stage.handles.iter().flat_map(|handle| keys.iter().map(|key| (*handle, &key[..]))).collect();
    let mut values = stage.database.multi_get_of(&ReadView::default(), &wanted)?;
    let found = (0..FAMILIES.len()).map(|family| {
        let rest = values.split_off(keys.len());
        (family, with_values(&keys, std::mem::replace(&mut values, rest)))
    });
    Ok(found.collect())
}

fn with_values(keys: &[Vec<u8>], values: Vec<Option<Vec<u8>>>) -> Rows {
    keys.iter().cloned().zip(values).filter_map(|(key, value)| Some((key, value?))).collect()
}

/// The rows of a writer that an iterator finds, forwards or backwards.
pub fn rows_of(mut iter: Iter<'_>, writer: usize, backwards: bool) -> Result<Rows, String> {
    let (first, end) = range(writer);
    let mut rows = Rows::new();
    if backwards {
        iter.seek_for_prev(&end)?;
    } else {
        iter.seek(&first)?;
    }
    while iter.valid()? {
        let (key, value) = iter.row()?;
        if key < &first[..] || key >= &end[..] {
            break;
        }
        if rows.insert(key.to_vec(), value.to_vec()).is_some() {
            return Err(format!("an iterator shows {} twice", String::from_utf8_lossy(key)));
        }
        if backwards {
            iter.prev()?;
        } else {
            iter.next()?;
        }
    }
    iter.status()?;
    Ok(rows)
}

/// The batches since the number that was reached: each is whole, and none of a writer is left out.
fn updates(stage: &Stage<'_, '_>, since: &mut u64) -> Result<(), String> {
    let mut last: BTreeMap<usize, u64> = BTreeMap::new();
    let mut wrong = None;
    let mut reached = *since;
    // An error ends them: WALs that were removed meanwhile, or the end of what is readable now.
    let _ = stage.database.each_update(*since, |first, batch| {
        reached = first;
        let heads = heads_of(batch);
        // Batches of a group of writers may stand in the WAL as one, one after the other.
        for heads in heads.chunks(FAMILIES.len()) {
            let (writer, number) = heads[0];
            if heads.len() != FAMILIES.len() || heads.iter().any(|head| *head != heads[0]) {
                wrong.get_or_insert(format!("a batch of updates has the heads {heads:?}"));
            }
            if let Some(before) = last.insert(writer, number)
                && before + 1 != number
            {
                wrong.get_or_insert(format!("updates of writer {writer} go from {before} to {number}"));
            }
        }
    });
    *since = reached;
    match wrong {
        Some(wrong) => Err(wrong),
        None => {
            stage.moments.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }
}
