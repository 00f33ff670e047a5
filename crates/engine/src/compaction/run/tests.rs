//! Compaction jobs, without a database.

use super::*;
use crate::batch::codec::WriteBatch;
use crate::column_family::ColumnFamilyParts;
use crate::compaction::job::{end, start};
use crate::compaction::pick::{self, overlapping};
use crate::compaction::{Compaction, Reason};
use crate::history::increase_low;
use crate::obsolete_files::{may_purge, purge_obsolete_files};
use crate::testing::parts::{Parts, plain_options};
use outcrop_base::random::SplitMix;
use outcrop_base::{CfId, Comparator, ErrorKind, Timestamp};
use outcrop_env::faulty::EIO;
use outcrop_manifest::FileNumber;
use outcrop_options::{ColumnFamilyOptions, CompressionType, DbOptions};
use std::sync::atomic::AtomicBool;

/// The numbers of the tables that `job` wrote.
fn run(jobs: &JobContext, job: &CompactionJob) -> Result<Vec<FileNumber>> {
    super::run(jobs, job).map(|ran| ran.tables.iter().map(|file| file.number).collect())
}

/// A job that merges all of L0 and L1 into L1.
fn everything(parts: &Parts, work: Work) -> CompactionJob {
    let state = parts.versions.state.lock();
    let cf = &state.column_families[&CfId(0)];
    let options = cf.cf.options.load();
    let input = cf.pick_input(&options);
    let inputs: Vec<LevelFiles> =
        (0..2).filter_map(|level| pick::level_files(level, overlapping(&input, level, None, None))).collect();
    let compaction = Compaction {
        cf_id: CfId(0),
        reason: Reason::Manual,
        inputs,
        output_level: 1,
        grandparents: Vec::new(),
        bottommost: true,
        work,
        compression: CompressionType::None,
        target_file_size: u64::MAX,
        max_grandparent_overlap: u64::MAX,
        path_id: None,
        next_cursor: None,
    };
    CompactionJob::new(compaction, cf, 1)
}

/// Two tables in L0 that overlap.
fn overlapping_tables(options: ColumnFamilyOptions) -> Parts {
    let parts = Parts::of(options);
    for (key, value) in [("a", "1"), ("b", "1"), ("c", "1")] {
        parts.put(key, value);
    }
    parts.flush();
    parts.put("b", "2");
    parts.delete("c");
    parts.flush();
    parts
}

#[test]
fn a_merge_keeps_the_newest_version_of_each_key_and_drops_deletions_at_the_bottom() {
    let parts = overlapping_tables(plain_options());
    let before = parts.tables();
    assert_eq!(before.split(' ').count(), 3, "{before}");
    let numbers = run(&parts.jobs, &everything(&parts, Work::Merge)).unwrap();
    assert_eq!(parts.tables(), format!("L1: {}", numbers[0].0));
    assert_eq!(parts.rows(), "a=1 b=2");
    let cf = parts.cf(CfId::DEFAULT);
    let version = cf.superversion.load().version.clone();
    let table = parts.ctx.tables.open(&cf, &version.levels[1].files[0]).unwrap();
    assert_eq!((table.properties().num_entries, table.properties().num_deletions), (2, 0));
}

#[test]
fn the_output_is_as_old_as_the_oldest_input() {
    let parts = overlapping_tables(plain_options());
    run(&parts.jobs, &everything(&parts, Work::Merge)).unwrap();
    let version = parts.cf(CfId::DEFAULT).superversion.load().version.clone();
    assert_eq!(version.levels[1].files[0].epoch, 1);
}

#[test]
fn what_a_snapshot_sees_stays_and_is_remembered_as_garbage() {
    let parts = Parts::new();
    parts.put("a", "1");
    let snapshot = parts.jobs.snapshots.take(0, || parts.versions.visible_seq());
    parts.put("a", "2");
    parts.flush();
    let numbers = run(&parts.jobs, &everything(&parts, Work::Merge)).unwrap();
    assert_eq!(parts.get_at("a", snapshot.sequence()), Some("1".into()));
    assert_eq!(parts.get("a"), Some("2".into()));
    let state = parts.versions.state.lock();
    assert!(
        state.column_families[&CfId(0)].held_back.contains(&numbers[0]),
        "to be compacted when the snapshot is gone"
    );
}

fn stamp(number: u64) -> Timestamp {
    Timestamp::from_bytes(&number.to_le_bytes()).unwrap()
}

fn stamped_key(key: &str, number: u64) -> Vec<u8> {
    [key.as_bytes(), stamp(number).as_bytes()].concat()
}

/// A column family whose keys have timestamps.
fn stamped_parts() -> Parts {
    let ordered = ColumnFamilyParts {
        comparator: Comparator::bytewise_with_timestamps(),
        ..ColumnFamilyParts::default()
    };
    Parts::with(DbOptions::default(), vec![(plain_options(), ordered)])
}

/// True if a table is marked for the garbage at the bottom that a compaction would remove; every table has been read before.
fn is_marked(parts: &Parts) -> bool {
    let cf = parts.cf(CfId::DEFAULT);
    let mut state = parts.versions.state.lock();
    let state = state.column_families.get_mut(&CfId::DEFAULT).unwrap();
    for (_, file) in state.version.files() {
        parts.ctx.tables.open(&cf, file).unwrap();
    }
    state.refresh_marks(u64::MAX, 0, parts.versions.visible_seq());
    !state.marks.bottommost.is_empty()
}

#[test]
fn deletions_are_marked_once_their_timestamps_need_not_stay() {
    let parts = stamped_parts();
    parts.write(|batch| batch.put_id(CfId::DEFAULT, &stamped_key("k", 48), b"1")).unwrap();
    parts.write(|batch| batch.delete_id(CfId::DEFAULT, &stamped_key("k", 50))).unwrap();
    parts.flush();
    run(&parts.jobs, &everything(&parts, Work::Merge)).unwrap();
    assert!(!is_marked(&parts), "all history is kept");
    for (low, expected) in [(49, false), (50, false), (51, true)] {
        increase_low(&parts.versions, &parts.cf(CfId::DEFAULT), stamp(low)).unwrap();
        assert_eq!(is_marked(&parts), expected, "kept from {low} on");
    }
    run(&parts.jobs, &everything(&parts, Work::Merge)).unwrap();
    assert_eq!(parts.tables(), "");
}

/// A mark that its compaction does not take away has the table written again each second.
#[test]
fn a_marked_table_is_compacted_once() {
    let mut marked = 0;
    for seed in 1..=100 {
        let mut random = SplitMix::new(seed);
        let parts = stamped_parts();
        let (mut now, mut low) = (10, 0);
        for round in 0..4 {
            for _ in 0..6 {
                now += random.below(3);
                let key = stamped_key(&format!("k{}", random.below(4)), now);
                let deletes = random.one_in(3);
                let write = |batch: &mut WriteBatch| match deletes {
                    true => batch.delete_id(CfId::DEFAULT, &key),
                    false => batch.put_id(CfId::DEFAULT, &key, b"v"),
                };
                parts.write(write).unwrap();
            }
            parts.flush();
            let held =
                random.one_in(3).then(|| parts.jobs.snapshots.take(0, || parts.versions.visible_seq()));
            run(&parts.jobs, &everything(&parts, Work::Merge)).unwrap();
            drop(held);
            if random.one_in(2) {
                // In one of three cases all that was written is history.
                low = low.max(now + 1 - random.below(3));
                now = now.max(low);
                increase_low(&parts.versions, &parts.cf(CfId::DEFAULT), stamp(low)).unwrap();
            }
            if is_marked(&parts) {
                marked += 1;
                run(&parts.jobs, &everything(&parts, Work::Merge)).unwrap();
                assert!(!is_marked(&parts), "seed {seed}, round {round}: marked again");
            }
        }
    }
    assert!(marked > 10, "{marked} were marked");
}

#[test]
fn a_move_keeps_the_files_and_writes_only_the_manifest() {
    let parts = Parts::new();
    parts.put("a", "1");
    parts.flush();
    let files = parts.files(".sst");
    let number = parts.tables().replace("L0: ", "");
    parts.faults().only(Some(".sst"));
    let changes = parts.faults().changes();
    let moved = run(&parts.jobs, &everything(&parts, Work::Move)).unwrap();
    assert_eq!(moved[0].0.to_string(), number);
    assert_eq!(parts.tables(), format!("L1: {number}"));
    assert_eq!((parts.files(".sst"), parts.faults().changes()), (files, changes));
    assert_eq!(
        parts.cf(CfId::DEFAULT).stats.work.lock().levels[1].bytes_moved,
        parts.cf(CfId::DEFAULT).superversion.load().version.total_bytes()
    );
}

#[test]
fn a_drop_takes_the_rows_away_and_makes_the_tables_obsolete() {
    let parts = overlapping_tables(plain_options());
    run(&parts.jobs, &everything(&parts, Work::Drop)).unwrap();
    assert_eq!((parts.tables(), parts.rows()), (String::new(), String::new()));
    purge_obsolete_files(&parts.jobs);
    assert_eq!(parts.files(".sst"), [""; 0]);
}

#[test]
fn nobody_else_gets_the_inputs_between_start_and_end() {
    let parts = overlapping_tables(plain_options());
    let job = everything(&parts, Work::Merge);
    let mut state = parts.versions.state.lock();
    start(&mut state, &job);
    assert_eq!((state.running_compactions, state.column_families[&CfId(0)].running.len()), (1, 1));
    let busy = |state: &crate::state::DbState| state.column_families[&CfId(0)].busy.len();
    assert_eq!(busy(&state), 2);
    assert!(state.has_work());
    drop(state);
    let job = job.release();
    let mut state = parts.versions.state.lock();
    end(&parts.versions, &mut state, &job);
    assert_eq!((state.running_compactions, state.column_families[&CfId(0)].running.len()), (0, 0));
    assert_eq!(busy(&state), 0);
}

#[test]
fn inputs_that_were_held_when_files_were_removed_go_when_the_job_ends() {
    let parts = overlapping_tables(plain_options());
    let job = everything(&parts, Work::Merge);
    start(&mut parts.versions.state.lock(), &job);
    run(&parts.jobs, &job).unwrap();
    purge_obsolete_files(&parts.jobs);
    assert_eq!(parts.files(".sst").len(), 3, "the job holds its inputs");
    assert!(!may_purge(&parts.ctx, &parts.versions.state.lock()));
    let job = job.release();
    end(&parts.versions, &mut parts.versions.state.lock(), &job);
    assert!(may_purge(&parts.ctx, &parts.versions.state.lock()));
    purge_obsolete_files(&parts.jobs);
    assert_eq!(parts.files(".sst").len(), 1);
}

#[test]
fn a_compaction_that_cannot_write_leaves_no_file_and_its_inputs() {
    let parts = overlapping_tables(plain_options());
    let (tables, files) = (parts.tables(), parts.files(".sst"));
    let job = everything(&parts, Work::Merge);
    parts.faults().only(Some(".sst"));
    parts.faults().fail_at(parts.faults().changes() + 1, EIO, false);
    run(&parts.jobs, &job).unwrap_err();
    assert_eq!((parts.tables(), parts.files(".sst")), (tables, files));
    assert_eq!(parts.rows(), "a=1 b=2");
}

#[test]
fn one_that_is_no_longer_wanted_ends_with_nothing_changed() {
    let parts = Parts::new();
    (0..300).for_each(|i| parts.put(&format!("{i:03}"), "v"));
    parts.flush();
    let tables = parts.tables();
    let canceled = Some(Arc::new(AtomicBool::new(true)));
    let job = CompactionJob { canceled, ..everything(&parts, Work::Merge) };
    assert_eq!(run(&parts.jobs, &job).unwrap_err().kind(), ErrorKind::Incomplete);
    assert_eq!((parts.tables(), parts.files(".sst").len()), (tables, 1));
}

#[test]
fn one_that_runs_when_the_database_closes_is_given_up() {
    let parts = Parts::new();
    (0..300).for_each(|i| parts.put(&format!("{i:03}"), "v"));
    parts.flush();
    parts.ctx.closing.store(true, std::sync::atomic::Ordering::Relaxed);
    let error = run(&parts.jobs, &everything(&parts, Work::Merge)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ShutdownInProgress);
}

#[test]
fn outputs_are_cut_at_the_target_size() {
    let parts = Parts::new();
    (0..200).for_each(|i| parts.put(&format!("{i:03}"), &"v".repeat(1000)));
    parts.flush();
    let mut job = everything(&parts, Work::Merge);
    job.compaction.target_file_size = 50_000;
    let numbers = run(&parts.jobs, &job).unwrap();
    assert!((3..=5).contains(&numbers.len()), "{numbers:?}");
    assert_eq!(parts.rows().split(' ').count(), 200);
}

#[test]
fn parts_on_several_threads_write_what_one_would() {
    let rows = |threads: u32| {
        let parts = Parts::new();
        for i in 0..400 {
            parts.put(&format!("{i:03}"), &"v".repeat(500));
        }
        parts.flush();
        parts.write(|batch| batch.delete_range_id(CfId::DEFAULT, b"100", b"300")).unwrap();
        parts.flush();
        let mut job = everything(&parts, Work::Merge);
        job.max_subcompactions = threads;
        job.compaction.target_file_size = 30_000;
        let numbers = run(&parts.jobs, &job).unwrap();
        assert!(numbers.len() > 1);
        parts.rows()
    };
    assert_eq!(rows(1), rows(4));
    assert_eq!(rows(4).split(' ').count(), 200);
}

#[test]
fn the_observer_is_told_and_requests_are_answered() {
    use crate::compaction::manual_request::{CompactRangeOptions, ManualCompaction, Scope};
    let parts = overlapping_tables(plain_options());
    let job = everything(&parts, Work::Merge);
    let request =
        Arc::new(ManualCompaction::new(CfId(0), Scope::Everything, &CompactRangeOptions::default()));
    {
        let mut state = parts.versions.state.lock();
        start(&mut state, &job);
        state.pool_compactions += 1;
        request.start();
    }
    crate::scheduler::job::run_compaction(&parts.jobs, job, Some(request.clone()));
    assert!(request.result().is_some_and(|result| result.is_ok()));
    let seen = parts.seen.0.lock();
    assert!(seen[0].starts_with("began Compaction [default] L0 -> L1: inputs"), "{seen:?}");
    assert_eq!(seen[1], "ended Compaction well");
    let state = parts.versions.state.lock();
    assert_eq!((state.running_compactions, state.pool_compactions), (0, 0));
}

#[test]
fn a_compaction_that_fails_for_io_stops_no_writes_and_rests() {
    let parts = overlapping_tables(plain_options());
    let job = everything(&parts, Work::Merge);
    {
        let mut state = parts.versions.state.lock();
        start(&mut state, &job);
        state.pool_compactions += 1;
    }
    parts.faults().only(Some(".sst"));
    parts.faults().fail_at(parts.faults().changes(), EIO, false);
    crate::scheduler::job::run_compaction(&parts.jobs, job, None);
    assert!(!parts.versions.refuses_writes());
    let state = parts.versions.state.lock();
    assert!(state.compaction_pause.is_some_and(|pause| pause.needed_bytes == 0));
    assert_eq!((state.running_compactions, state.background_errors), (0, 1));
}

#[test]
fn log_says_how_much_tables_and_blob_files_take_each() {
    let lines = std::sync::Arc::new(crate::testing::parts::Lines::default());
    let objects = crate::objects::DbObjects { logger: Some(lines.clone()), ..Default::default() };
    let options = ColumnFamilyOptions {
        enable_blob_files: true,
        min_blob_size: 0,
        enable_blob_garbage_collection: true,
        blob_garbage_collection_age_cutoff: 1.0,
        ..plain_options()
    };
    let families = vec![(options, Default::default())];
    let parts = Parts::with_objects(outcrop_options::DbOptions::default(), families, objects);
    for value in ["x", "y"] {
        parts.put("a", &value.repeat(100_000));
        parts.flush();
    }
    let job = everything(&parts, Work::Merge);
    start(&mut parts.versions.state.lock(), &job);
    let ran = super::run(&parts.jobs, &job).unwrap();
    end(&parts.versions, &mut parts.versions.state.lock(), &job.release());
    let finished = lines.with("compaction_finished");
    let sizes = format!(
        "\"num_output_files\": 1, \"total_output_size\": {}, \"num_blob_output_files\": 1, \"total_blob_output_size\": {}, ",
        ran.tables[0].size, ran.blob_files[0].total_bytes
    );
    assert!(ran.tables[0].size < 10_000 && ran.blob_files[0].total_bytes > 100_000);
    assert!(finished.len() == 1 && finished[0].contains(&sizes), "{finished:?}");
}
