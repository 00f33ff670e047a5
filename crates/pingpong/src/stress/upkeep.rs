//! An application's calls beside reads and writes, while others read and write.

use super::readers::rows_of;
use super::shape::FAMILIES;
use super::worker::Stage;
use crate::backups;
use crate::batch::{Change, write_table};
use crate::database::{Database, Handle, Ingestion, ReadView};
use crate::options::Options;
use outcrop_base::random::SplitMix as Random;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Rows of each table that is ingested: all of them show the number of the newest.
const INGESTED: u64 = 12;

/// Does one thing after the other until all writes were made.
///
/// # Errors
/// What fails, or is not of one moment.
pub fn keep_up(stage: &Stage<'_, '_>) -> Result<(), String> {
    let mut random = Random::new(stage.seed ^ 0xCAFE);
    let mut number = stage.seed % 1000 * 1000;
    while !stage.over.load(Ordering::SeqCst) {
        number += 1;
        let family = random.index(FAMILIES.len());
        let handle = stage.handles[family];
        let database = stage.database;
        let what = random.below(12);
        let outcome = match what {
            0 => database.flush(handle, random.one_in(2)),
            1 => database.flush_together(stage.handles, true),
            2 => database.flush_wal(random.one_in(2)),
            3 => database.compact_range(handle, None, None, 1, true),
            4 => database.compact_range(handle, Some(b"w00-03"), Some(b"w03-03"), 2, false),
            5 => checkpoint(stage, if random.one_in(2) { 0 } else { u64::MAX }),
            6 => backup(stage, random.one_in(2)),
            7 | 8 => ingest(stage, number, family),
            9 => a_family(stage, number),
            10 => database.property(handle, c"rocksdb.estimate-num-keys").map(drop),
            _ => set_options(stage, handle, &mut random),
        };
        // Neither engine lets a flush wait for ever where writes are stopped.
        if let Err(why) = outcome
            && !why.contains("Writes have been stopped, thus unable to perform manual flush")
        {
            return Err(format!("number {what}: {why}"));
        }
    }
    Ok(())
}

fn set_options(stage: &Stage<'_, '_>, handle: Handle, random: &mut Random) -> Result<(), String> {
    let (name, values): (&str, [&str; 2]) = random.pick(&[
        ("write_buffer_size", ["32768", "65536"]),
        ("level0_file_num_compaction_trigger", ["2", "4"]),
        ("max_bytes_for_level_base", ["131072", "262144"]),
        ("compression", ["kLZ4Compression", "kNoCompression"]),
        ("report_bg_io_stats", ["true", "false"]),
        ("disable_auto_compactions", ["false", "false"]),
    ]);
    stage.database.set_options(handle, name, random.pick(&values))
}

/// Looks at a copy: all column families show one moment, no older than what was acknowledged before it was begun.
fn judge_copy(stage: &Stage<'_, '_>, path: &Path, done: &[u64]) -> Result<(), String> {
    let families = stage.handles.iter().zip(FAMILIES);
    let families = families
        .map(|(_, name)| Ok((name.to_string(), Options::new(stage.api, stage.options)?)))
        .collect::<Result<Vec<_>, String>>()?;
    let mut names = crate::database::list_families(stage.api, &path.to_string_lossy())?;
    names.retain(|name| !FAMILIES.contains(&name.as_str()));
    let others = names.into_iter().map(|name| Ok((name, Options::new(stage.api, stage.options)?)));
    let families = families.into_iter().map(Ok).chain(others).collect::<Result<Vec<_>, String>>()?;
    let (copy, handles) = Database::open(stage.api, &path.to_string_lossy(), families)?;
    for (writer, done) in done.iter().enumerate() {
        let mut found = Vec::new();
        for (family, handle) in handles.iter().take(FAMILIES.len()).enumerate() {
            found.push((family, rows_of(copy.iter(*handle, &ReadView::default())?, writer, false)?));
        }
        let count = stage.shape.judge(writer, &found)?;
        let begun = stage.clock[writer].begun.load(Ordering::SeqCst);
        // Without a flush, a WAL that is flushed by hand may not have everything yet.
        let by_hand = stage.options.iter().any(|option| option == "manual_wal_flush=true");
        if (count < *done && !by_hand) || count > begun {
            return Err(format!(
                "writer {writer}: {count} writes of {begun}, and {done} were acknowledged before"
            ));
        }
        stage.moments.fetch_add(1, Ordering::Relaxed);
    }
    handles.iter().try_for_each(|handle| copy.destroy_handle(*handle))?;
    copy.close()
}

fn done(stage: &Stage<'_, '_>) -> Vec<u64> {
    stage.clock.iter().map(|hand| hand.done.load(Ordering::SeqCst)).collect()
}

fn checkpoint(stage: &Stage<'_, '_>, log_size_for_flush: u64) -> Result<(), String> {
    let path = stage.dir.join("checkpoint");
    let _ = std::fs::remove_dir_all(&path);
    let done = done(stage);
    stage.database.checkpoint(&path.to_string_lossy(), log_size_for_flush)?;
    judge_copy(stage, &path, &done).map_err(|why| format!("a checkpoint: {why}"))
}

fn backup(stage: &Stage<'_, '_>, flush: bool) -> Result<(), String> {
    let (dir, to) = (stage.dir.join("backups"), stage.dir.join("restored"));
    let done = done(stage);
    backups::create(stage.database, &dir.to_string_lossy(), flush, 2)?;
    let _ = std::fs::remove_dir_all(&to);
    backups::restore(stage.api, &dir.to_string_lossy(), &to.to_string_lossy())?;
    judge_copy(stage, &to, &done).map_err(|why| format!("a backup: {why}"))
}

/// Ingests a table, whose rows then all have its number.
fn ingest(stage: &Stage<'_, '_>, number: u64, family: usize) -> Result<(), String> {
    let path = stage.dir.join("ingest.sst");
    let path = path.to_string_lossy();
    let rows: Vec<(Vec<u8>, Vec<u8>)> =
        (0..INGESTED).map(|row| (format!("i{row:03}").into_bytes(), number.to_be_bytes().to_vec())).collect();
    let options = Options::new(stage.api, stage.options)?;
    write_table(stage.api, &path, &options, rows.iter().map(|(key, value)| Change::Put(key, value)))?;
    let handle = stage.handles[family];
    let how = Ingestion { move_files: number.is_multiple_of(2), ..Ingestion::default() };
    stage.database.ingest(handle, &[&path], &how)?;
    let _ = std::fs::remove_file(path.as_ref());
    let mut iter = stage.database.iter(handle, &ReadView::default())?;
    iter.seek(b"i")?;
    for (key, value) in &rows {
        if !iter.valid()? || iter.row()? != (&key[..], &value[..]) {
            return Err(format!("table {number} is not there after it was ingested"));
        }
        iter.next()?;
    }
    iter.status()
}

/// A column family comes and goes, with an iterator that outlives it.
fn a_family(stage: &Stage<'_, '_>, number: u64) -> Result<(), String> {
    let database = stage.database;
    let options = Options::new(stage.api, stage.options)?;
    let handle = database.create_family(&format!("passing-{number}"), options)?;
    let row = |row: u64| format!("row {row}").into_bytes();
    for at in 0..10 {
        database.write_one(handle, Change::Put(&row(at), b"in a column family that goes"), at == 5, true)?;
    }
    if number.is_multiple_of(2) {
        database.flush(handle, true)?;
    }
    let mut iter = database.iter(handle, &ReadView::default())?;
    database.drop_family(handle)?;
    iter.seek_to_first()?;
    let mut count = 0;
    while iter.valid()? {
        count += 1;
        iter.next()?;
    }
    iter.status()?;
    drop(iter);
    database.destroy_handle(handle)?;
    if count == 10 {
        Ok(())
    } else {
        Err(format!("{count} rows of a column family that was dropped, not 10"))
    }
}
