//! Flush jobs, without a database.

use super::*;
use crate::objects::DbObjects;
use crate::sst_file_manager::SstFileManager;
use crate::testing::parts::{FIRST_WAL, Lines, Parts, plain_options};
use outcrop_base::{CfId, ErrorKind};
use outcrop_env::faulty::{EIO, ENOSPC};
use outcrop_options::{ColumnFamilyOptions, DbOptions};

fn two_families(options: DbOptions) -> Parts {
    Parts::with(options, vec![(plain_options(), Default::default()), (plain_options(), Default::default())])
}

fn put_into(parts: &Parts, cf: CfId, key: &str) {
    parts.write(|batch| batch.put_id(cf, key.as_bytes(), b"v")).unwrap();
}

fn picked(parts: &Parts, atomic: bool) -> Option<FlushJob> {
    pick(&mut parts.versions.state.lock(), atomic)
}

#[test]
fn a_flush_writes_one_table_installs_it_and_leaves_the_wal() {
    let parts = Parts::new();
    parts.put("a", "1");
    parts.put("b", "2");
    parts.flush();
    assert_eq!(parts.files(".sst").len(), 1);
    assert_eq!(parts.rows(), "a=1 b=2");
    let state = parts.versions.state.lock();
    let cf = &state.column_families[&CfId(0)];
    assert!(cf.sealed.is_empty() && cf.memtable.is_empty());
    assert_eq!(cf.version.levels[0].files.len(), 1);
    assert_eq!(cf.log_number, parts.versions.current_wal());
    assert!(cf.log_number > FIRST_WAL);
}

#[test]
fn the_table_has_the_epoch_and_the_numbers_of_its_rows() {
    let parts = Parts::new();
    parts.put("a", "1");
    parts.flush();
    parts.put("b", "2");
    parts.put("c", "3");
    parts.flush();
    let version = parts.cf(CfId::DEFAULT).superversion.load().version.clone();
    let of = |file: &TableFile| (file.epoch, file.smallest_seq.0, file.largest_seq.0);
    let files: Vec<_> = version.levels[0].files.iter().map(|file| of(file)).collect();
    assert_eq!(files, [(2, 2, 3), (1, 1, 1)], "the newest first");
}

#[test]
fn several_memtables_become_one_table_and_only_what_is_hidden_goes() {
    let parts = Parts::new();
    parts.put("a", "1");
    parts.put("x", "1");
    parts.seal(&[CfId::DEFAULT]);
    parts.put("a", "2");
    parts.delete("x");
    parts.seal(&[CfId::DEFAULT]);
    parts.flush();
    assert_eq!(parts.tables().split(' ').count(), 2, "{}", parts.tables());
    let version = parts.cf(CfId::DEFAULT).superversion.load().version.clone();
    let file = &version.levels[0].files[0];
    let cf = parts.cf(CfId::DEFAULT);
    let table = parts.ctx.tables.open(&cf, file).unwrap();
    assert_eq!(table.properties().num_entries, 2, "a of the second, and the deletion: x may be below");
    assert_eq!(table.properties().num_deletions, 1);
    assert_eq!(parts.rows(), "a=2");
}

#[test]
fn what_a_snapshot_sees_is_written_too() {
    let parts = Parts::new();
    parts.put("a", "1");
    let snapshot = parts.jobs.snapshots.take(0, || parts.versions.visible_seq());
    parts.put("a", "2");
    parts.flush();
    assert_eq!(parts.get_at("a", snapshot.sequence()), Some("1".into()));
    assert_eq!(parts.get("a"), Some("2".into()));
    drop(snapshot);
    assert!(parts.jobs.snapshots.sequences().is_empty());
}

#[test]
fn a_flush_waits_for_as_many_memtables_as_are_to_be_merged_unless_it_was_asked_for() {
    let options = ColumnFamilyOptions { min_write_buffer_number_to_merge: 2, ..plain_options() };
    let parts = Parts::of(options);
    parts.put("a", "1");
    {
        let mut core = parts.commit.exclude_writers();
        parts.commit.seal(&mut core, &[CfId::DEFAULT], Default::default()).unwrap();
    }
    assert!(picked(&parts, false).is_none());
    parts.versions.request_flush(&[CfId::DEFAULT]);
    assert!(picked(&parts, false).is_some());
}

#[test]
fn a_column_family_is_flushed_by_one_job_at_a_time() {
    let parts = Parts::new();
    parts.put("a", "1");
    parts.seal(&[CfId::DEFAULT]);
    let job = picked(&parts, false).unwrap();
    parts.put("b", "2");
    parts.seal(&[CfId::DEFAULT]);
    assert!(picked(&parts, false).is_none());
    run(&parts.jobs, &job).unwrap();
    parts.end_flush(&job);
    let next = picked(&parts, false).unwrap();
    assert_eq!((next.parts.len(), next.parts[0].memtables.len(), next.parts[0].epoch), (1, 1, 2));
}

#[test]
fn an_atomic_flush_takes_all_column_families_and_runs_alone() {
    let parts = two_families(DbOptions { atomic_flush: true, ..DbOptions::default() });
    put_into(&parts, CfId(0), "a");
    put_into(&parts, CfId(1), "b");
    parts.seal(&[CfId::DEFAULT]);
    let job = picked(&parts, true).unwrap();
    assert_eq!(job.info().column_families, [CfId(0), CfId(1)]);
    put_into(&parts, CfId(1), "c");
    parts.seal(&[CfId(1)]);
    assert!(picked(&parts, true).is_none());
    run(&parts.jobs, &job).unwrap();
    parts.end_flush(&job);
    let state = parts.versions.state.lock();
    assert!(state.column_families.values().all(|cf| cf.version.num_files() == 1));
}

#[test]
fn the_wal_of_another_column_family_is_kept() {
    let parts = two_families(DbOptions::default());
    put_into(&parts, CfId(0), "a");
    put_into(&parts, CfId(1), "b");
    parts.flush();
    let state = parts.versions.state.lock();
    assert_eq!(state.column_families[&CfId(1)].log_number, FIRST_WAL);
    assert_eq!(state.min_wal_needed(parts.versions.current_wal()), FIRST_WAL);
}

#[test]
fn with_several_column_families_closed_wals_are_synced_before_the_table_counts() {
    let parts = two_families(DbOptions::default());
    put_into(&parts, CfId(0), "a");
    parts.seal(&[CfId::DEFAULT]);
    parts.faults().only(Some(&format!("{FIRST_WAL:06}.log")));
    let before = parts.faults().syncs();
    let job = picked(&parts, false).unwrap();
    run(&parts.jobs, &job).unwrap();
    assert_eq!(parts.faults().syncs() - before, 1, "a batch may span column families");
}

#[test]
fn a_flush_that_cannot_write_leaves_no_file_and_its_memtables() {
    for errno in [EIO, ENOSPC] {
        let parts = Parts::new();
        parts.put("a", "1");
        parts.seal(&[CfId::DEFAULT]);
        let job = picked(&parts, false).unwrap();
        parts.faults().only(Some(".sst"));
        parts.faults().fail_at(parts.faults().changes() + 1, errno, false);
        run(&parts.jobs, &job).unwrap_err();
        assert_eq!(parts.files(".sst"), [""; 0]);
        assert_eq!(parts.rows(), "a=1", "it is in memory still");
        parts.faults().heal();
        run(&parts.jobs, &job).unwrap();
        assert_eq!(parts.rows(), "a=1");
    }
}

#[test]
fn a_table_that_a_failed_manifest_may_name_is_kept_until_another_is_in_charge() {
    let parts = Parts::new();
    parts.put("a", "1");
    parts.seal(&[CfId::DEFAULT]);
    let job = picked(&parts, false).unwrap();
    parts.faults().only(Some("MANIFEST"));
    parts.faults().fail_at(parts.faults().changes(), EIO, false);
    run(&parts.jobs, &job).unwrap_err();
    assert_eq!(parts.files(".sst").len(), 1);
    parts.faults().heal();
    parts.versions.restart_manifest().unwrap();
    crate::obsolete_files::remove_doubtful_outputs(&parts.versions);
    assert_eq!(parts.files(".sst"), [""; 0]);
}

#[test]
fn the_table_of_a_dropped_column_family_is_removed() {
    let parts = two_families(DbOptions::default());
    put_into(&parts, CfId(1), "b");
    parts.seal(&[CfId(1)]);
    let job = picked(&parts, false).unwrap();
    parts.versions.state.lock().column_families.remove(&CfId(1));
    assert_eq!(run(&parts.jobs, &job).unwrap_err().kind(), ErrorKind::ColumnFamilyDropped);
    assert_eq!(parts.files(".sst"), [""; 0]);
}

#[test]
fn large_values_go_to_a_blob_file() {
    let options = ColumnFamilyOptions { enable_blob_files: true, min_blob_size: 10, ..plain_options() };
    let parts = Parts::of(options);
    parts.put("a", "small");
    parts.put("b", "large enough");
    parts.flush();
    assert_eq!((parts.files(".sst").len(), parts.files(".blob").len()), (1, 1));
    assert_eq!(parts.rows(), "a=small b=large enough");
    assert_eq!(parts.get("b"), Some("large enough".into()));
}

#[test]
fn a_flush_of_nothing_but_hidden_rows_installs_no_table() {
    let parts = Parts::new();
    parts.put("a", "1");
    parts.seal(&[CfId::DEFAULT]);
    parts.write(|batch| batch.delete_range_id(CfId::DEFAULT, b"a", b"b")).unwrap();
    parts.seal(&[CfId::DEFAULT]);
    parts.flush();
    let version = parts.cf(CfId::DEFAULT).superversion.load().version.clone();
    assert_eq!(version.num_files(), 1, "the tombstone may hide what is below");
    assert_eq!(parts.rows(), "");
}

#[test]
fn a_flush_without_a_table_lets_its_wal_go() {
    let parts = Parts::new();
    parts.put("a", "1");
    parts.write(|batch| batch.single_delete_id(CfId::DEFAULT, b"a")).unwrap();
    parts.flush();
    assert_eq!(parts.tables(), "", "they took each other away");
    let (first, live) = {
        let state = parts.versions.state.lock();
        assert!(state.purge_wanted);
        (state.live_wals[0].number, state.live_wals.len())
    };
    assert_eq!((first, live), (FIRST_WAL, 2));
    crate::obsolete_files::purge_obsolete_files(&parts.jobs);
    assert_eq!(parts.versions.state.lock().live_wals.len(), 1);
}

#[test]
fn counters_and_the_observer_know_of_it() {
    let parts = Parts::new();
    parts.put("a", "1");
    parts.seal(&[CfId::DEFAULT]);
    let job = picked(&parts, false).unwrap();
    crate::scheduler::job::run_flush(&parts.jobs, &job);
    assert_eq!(*parts.seen.0.lock(), ["began Flush [default] 1 memtables", "ended Flush well"]);
    let cf = parts.cf(CfId::DEFAULT);
    assert_eq!(cf.stats.work.lock().levels[0].records_in, 1);
    let size = cf.superversion.load().version.total_bytes();
    assert_eq!(cf.stats.work.lock().flushes.bytes_written, size);
    let state = parts.versions.state.lock();
    assert_eq!((state.running_flushes, state.column_families[&CfId(0)].flush_running), (0, false));
}

#[test]
fn a_flush_that_fails_stops_writes_and_may_be_tried_again() {
    let parts = Parts::new();
    parts.put("a", "1");
    parts.seal(&[CfId::DEFAULT]);
    let job = picked(&parts, false).unwrap();
    parts.faults().only(Some(".sst"));
    parts.faults().fail_at(parts.faults().changes(), EIO, false);
    crate::scheduler::job::run_flush(&parts.jobs, &job);
    assert_eq!(parts.seen.0.lock()[1], "ended Flush with an error");
    assert!(parts.versions.refuses_writes());
    let state = parts.versions.state.lock();
    assert_eq!(state.severity, Some(crate::background_errors::Severity::Hard));
    assert!(state.auto_resume.is_some_and(|plan| plan.attempts > 0));
    assert_eq!(state.background_errors, 1);
    assert_eq!(state.column_families[&CfId(0)].sealed.len(), 1);
}

/// A database whose next flush reaches the limit on space, and its LOG.
fn with_little_space() -> (Parts, Arc<Lines>) {
    let manager = Arc::new(SstFileManager::default());
    manager.set_max_allowed_space(1);
    let lines = Arc::new(Lines::default());
    let objects =
        DbObjects { sst_file_manager: Some(manager), logger: Some(lines.clone()), ..DbObjects::default() };
    let families = vec![(plain_options(), Default::default())];
    (Parts::with_objects(DbOptions::default(), families, objects), lines)
}

#[test]
fn listeners_are_told_that_space_is_used_up_before_writes_stop() {
    let (parts, lines) = with_little_space();
    let told = parts.listen_for_errors(false);
    parts.put("a", "1");
    parts.flush();
    let text = "IO error: Space limit reached: Max allowed space was reached";
    assert_eq!(told.take(), [format!("Flush {text}")]);
    assert_eq!(lines.with("writes stop").len(), 1);
    let error = parts.write(|batch| batch.put_id(CfId::DEFAULT, b"b", b"2")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SpaceLimit);
}

#[test]
fn a_listener_that_takes_the_limit_on_space_away_lets_writes_go_on() {
    let (parts, lines) = with_little_space();
    let told = parts.listen_for_errors(true);
    parts.put("a", "1");
    parts.flush();
    assert_eq!(told.take().len(), 1);
    assert_eq!(lines.with("writes stop"), [""; 0]);
    parts.put("b", "2");
    assert!(parts.versions.state.lock().background_error.is_none());
}

#[test]
fn log_says_that_a_flush_has_finished_once_its_table_is_there() {
    let lines = Arc::new(Lines::default());
    let objects = DbObjects { logger: Some(lines.clone()), ..DbObjects::default() };
    let families = vec![(plain_options(), Default::default())];
    let parts = Parts::with_objects(DbOptions::default(), families, objects);
    parts.put("a", "1");
    parts.flush();
    let finished = lines.with("flush_finished");
    assert!(finished.len() == 1 && finished[0].contains("\"lsm_state\": [1, 0"), "{finished:?}");
    parts.put("b", "2");
    parts.seal(&[CfId::DEFAULT]);
    parts.faults().only(Some("MANIFEST"));
    parts.faults().fail_at(parts.faults().changes(), EIO, true);
    let job = picked(&parts, false).unwrap();
    run(&parts.jobs, &job).unwrap_err();
    assert_eq!(lines.with("flush_finished").len(), 1, "it was not installed");
}
