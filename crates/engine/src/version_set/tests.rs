//! The version set, without a database: a MANIFEST in memory that can fail.

use super::*;
use crate::testing::parts::{DIR, FIRST_WAL, Parts, plain_options};
use crate::write::stall_condition::StallCondition;
use outcrop_base::keys::internal_key;
use outcrop_base::{CfId, Comparator, ValueType};
use outcrop_env::faulty::EIO;
use outcrop_manifest::{RecoveredManifest, TableFile, WalAddition};
use outcrop_options::{ColumnFamilyOptions, DbOptions};
use std::path::Path;

fn table(number: u64, smallest: &str, largest: &str) -> Arc<TableFile> {
    let key = |text: &str| internal_key(text.as_bytes(), SeqNum(1), ValueType::Value);
    let mut file = TableFile::new(FileNumber(number), 100, key(smallest), key(largest));
    (file.smallest_seq, file.largest_seq, file.epoch) = (SeqNum(1), SeqNum(1), number);
    Arc::new(file)
}

fn adding(level: u32, files: &[Arc<TableFile>]) -> VersionEdit {
    let mut edit = VersionEdit::for_column_family(CfId::DEFAULT);
    edit.new_files = files.iter().map(|file| (level, file.clone())).collect();
    edit
}

fn removing(level: u32, numbers: &[u64]) -> VersionEdit {
    let mut edit = VersionEdit::for_column_family(CfId::DEFAULT);
    edit.deleted_files.extend(numbers.iter().map(|number| (level, FileNumber(*number))));
    edit
}

/// The state that a reader of the MANIFEST finds.
fn recovered(parts: &Parts) -> RecoveredManifest {
    outcrop_manifest::recover(
        &*parts.ctx.env.fs,
        Path::new(DIR),
        &|_| Some(Comparator::Bytewise),
        &|_| 7,
        true,
    )
    .unwrap()
}

fn manifest_size(parts: &Parts) -> u64 {
    parts.versions.manifest.lock().writer.size()
}

#[test]
fn an_edit_is_in_the_manifest_and_shown_to_readers() {
    let parts = Parts::new();
    parts
        .versions
        .log_and_apply(vec![adding(1, &[table(20, "a", "c"), table(21, "d", "f")])], |_| {})
        .unwrap();
    assert_eq!(parts.tables(), "L1: 20 21");
    assert_eq!(parts.cf(CfId::DEFAULT).superversion.load().version.num_files(), 2);
    let read = recovered(&parts);
    assert_eq!(read.column_families[0].version.num_files(), 2);
    assert_eq!(read.next_file_number, parts.ctx.next_file_number());
}

#[test]
fn the_state_changes_in_the_same_step_as_the_version() {
    let parts = Parts::new();
    let mut seen = 0;
    parts
        .versions
        .log_and_apply(vec![adding(1, &[table(20, "a", "c")])], |state| {
            seen = state.column_families[&CfId(0)].version.num_files();
        })
        .unwrap();
    assert_eq!(seen, 1, "what runs with the change finds the new version");
}

#[test]
fn a_table_that_goes_is_obsolete_and_its_old_version_is_remembered() {
    let parts = Parts::new();
    parts.versions.log_and_apply(vec![adding(1, &[table(20, "a", "c")])], |_| {}).unwrap();
    let reader = parts.cf(CfId::DEFAULT).superversion.load_full();
    parts.versions.log_and_apply(vec![removing(1, &[20])], |_| {}).unwrap();
    let state = parts.versions.state.lock();
    let background = &parts.ctx.background;
    assert!(background.obsolete_table_bytes() > 0 && !background.has_released_files(), "it is read");
    assert!(state.purge_wanted);
    assert!(
        state.old_versions.iter().any(|(_, version)| version.upgrade().is_some_and(|v| v.num_files() == 1))
    );
    drop(state);
    assert_eq!(reader.version.num_files(), 1, "whoever reads goes on with what there was");
    drop(reader);
    parts.versions.state.lock().column_families.values_mut().for_each(|cf| cf.retired.clear());
    let released = background.take_released_files();
    assert_eq!(released.iter().map(|file| file.number.0).collect::<Vec<_>>(), [20]);
    assert_eq!(background.obsolete_table_bytes(), 0);
}

#[test]
fn an_edit_of_a_dropped_column_family_is_refused_and_not_written() {
    let parts = Parts::new();
    let size = manifest_size(&parts);
    let edit = VersionEdit { log_number: Some(FileNumber(9)), ..VersionEdit::for_column_family(CfId(5)) };
    let error = parts.versions.log_and_apply(vec![edit], |_| panic!("nothing is installed")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ColumnFamilyDropped);
    assert_eq!(manifest_size(&parts), size);
    assert!(!parts.versions.refuses_writes());
}

#[test]
fn tables_of_a_level_that_overlap_are_corruption_and_nothing_is_written() {
    let parts = Parts::new();
    let size = manifest_size(&parts);
    let edit = adding(1, &[table(20, "a", "m"), table(21, "c", "z")]);
    let error = parts.versions.log_and_apply(vec![edit], |_| panic!("nothing is installed")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert_eq!((manifest_size(&parts), parts.tables()), (size, String::new()));
}

#[test]
fn removing_a_table_that_is_not_there_is_corruption() {
    let parts = Parts::new();
    let error = parts.versions.log_and_apply(vec![removing(1, &[99])], |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
}

#[test]
fn after_a_failed_write_nothing_is_appended_until_another_manifest_is_in_charge() {
    let parts = Parts::new();
    parts.faults().only(Some("MANIFEST"));
    parts.faults().fail_at(parts.faults().changes(), EIO, false);
    let edit = || vec![adding(1, &[table(20, "a", "c")])];
    let error = parts.versions.log_and_apply(edit(), |_| panic!("nothing is installed")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IoError);
    assert!(parts.versions.refuses_writes());
    parts.faults().heal();
    let size = manifest_size(&parts);
    parts.versions.log_and_apply(edit(), |_| panic!("its tail is unknown")).unwrap_err();
    assert_eq!(manifest_size(&parts), size);
    parts.versions.restart_manifest().unwrap();
    parts.versions.log_and_apply(edit(), |_| {}).unwrap();
    assert_eq!(recovered(&parts).column_families[0].version.num_files(), 1);
}

#[test]
fn a_manifest_that_cannot_be_created_leaves_the_old_one_unused() {
    let parts = Parts::new();
    parts.faults().only(Some("MANIFEST"));
    parts.faults().fail_at(parts.faults().changes(), EIO, true);
    parts.versions.restart_manifest().unwrap_err();
    parts.faults().heal();
    let error = parts.versions.log_and_apply(vec![adding(1, &[table(20, "a", "c")])], |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IoError, "CURRENT may name either");
}

#[test]
fn a_manifest_that_has_grown_is_replaced_and_says_the_same() {
    let parts = Parts::of_db(DbOptions { max_manifest_file_size: 1, ..DbOptions::default() });
    let first = parts.versions.manifest.lock().writer.number();
    for number in 20..23 {
        let name = format!("k{number}");
        parts.versions.log_and_apply(vec![adding(1, &[table(number, &name, &name)])], |_| {}).unwrap();
    }
    assert!(parts.versions.manifest.lock().writer.number() > first);
    assert_eq!(recovered(&parts).column_families[0].version.num_files(), 3);
    let names = parts.ctx.env.fs.list(Path::new(DIR)).unwrap();
    assert_eq!(names.iter().filter(|name| name.starts_with("MANIFEST")).count(), 1, "{names:?}");
}

/// A WAL that is lost in part, as nobody had synced it, would else be behind a column family that had nothing in it.
#[test]
fn a_manifest_that_replaces_another_does_not_say_what_only_memory_knows_of_wals() {
    let parts = Parts::of_db(DbOptions { max_manifest_file_size: 1, ..DbOptions::default() });
    let before = recovered(&parts).column_families[0].log_number;
    let log_number = FileNumber(before.0 + 7);
    parts.versions.state.lock().column_families.get_mut(&CfId::DEFAULT).unwrap().log_number = log_number;
    for number in 20..23 {
        let name = format!("k{number}");
        parts.versions.log_and_apply(vec![adding(1, &[table(number, &name, &name)])], |_| {}).unwrap();
    }
    assert_eq!(recovered(&parts).column_families[0].log_number, before);
    let edit = VersionEdit { log_number: Some(log_number), ..VersionEdit::for_column_family(CfId::DEFAULT) };
    parts.versions.log_and_apply(vec![edit], |_| {}).unwrap();
    parts.versions.log_and_apply(vec![adding(1, &[table(23, "k23", "k23")])], |_| {}).unwrap();
    assert_eq!(recovered(&parts).column_families[0].log_number, log_number);
}

#[test]
fn the_last_sequence_number_in_the_manifest_never_goes_down() {
    let parts = Parts::new();
    let ingesting = || Ok((vec![adding(1, &[table(20, "a", "c")])], SeqNum(50)));
    parts.versions.log_prepared(ingesting, |_| {}).unwrap();
    assert_eq!(parts.versions.visible_seq(), SeqNum(0), "not shown yet");
    parts.versions.log_and_apply(vec![adding(1, &[table(21, "d", "f")])], |_| {}).unwrap();
    assert_eq!(recovered(&parts).last_sequence, SeqNum(50));
}

#[test]
fn the_log_number_of_a_column_family_never_goes_down() {
    let parts = Parts::new();
    let log = |number| {
        let edit = VersionEdit {
            log_number: Some(FileNumber(number)),
            ..VersionEdit::for_column_family(CfId::DEFAULT)
        };
        parts.versions.log_and_apply(vec![edit], |_| {}).unwrap();
        parts.versions.state.lock().column_families[&CfId(0)].log_number.0
    };
    assert_eq!(log(9), 9);
    assert_eq!(log(5), 9);
}

#[test]
fn closed_wals_are_synced_for_what_memtables_got_from_older_ones() {
    let parts = Parts::new();
    assert!(!parts.versions.needs_synced_wals(), "one column family loses a tail at most");
    parts.versions.state.lock().column_families[&CfId(0)].memtable.note_prepared_wal(FileNumber(3));
    assert!(parts.versions.needs_synced_wals(), "its writes are in WAL 3, their commit in a later one");
}

#[test]
fn several_column_families_change_in_one_step() {
    let families = vec![(plain_options(), Default::default()), (plain_options(), Default::default())];
    let parts = Parts::with(DbOptions::default(), families);
    assert!(parts.versions.needs_synced_wals());
    let other = VersionEdit { column_family: CfId(1), ..adding(1, &[table(21, "a", "c")]) };
    parts.versions.log_and_apply(vec![adding(1, &[table(20, "a", "c")]), other], |_| {}).unwrap();
    let state = parts.versions.state.lock();
    assert!(state.column_families.values().all(|cf| cf.version.num_files() == 1));
}

#[test]
fn a_change_that_leaves_too_many_tables_in_l0_stops_writers_and_another_lets_them_on() {
    let options = ColumnFamilyOptions {
        level0_slowdown_writes_trigger: 2,
        level0_stop_writes_trigger: 3,
        ..plain_options()
    };
    let parts = Parts::of(options);
    let condition = || parts.versions.stall.condition();
    for (number, expected) in
        [(20, StallCondition::Normal), (21, StallCondition::Delayed), (22, StallCondition::Stopped)]
    {
        parts.versions.log_and_apply(vec![adding(0, &[table(number, "a", "c")])], |_| {}).unwrap();
        assert_eq!(condition(), expected, "{number}");
    }
    parts.versions.log_and_apply(vec![removing(0, &[20, 21])], |_| {}).unwrap();
    assert_eq!(condition(), StallCondition::Normal);
}

#[test]
fn old_wals_are_left_for_good_once_everything_is_in_tables() {
    let parts = Parts::new();
    parts.put("a", "1");
    parts.flush();
    let current = parts.versions.current_wal();
    assert!(current > FIRST_WAL);
    parts.versions.advance_min_wal().unwrap();
    let read = recovered(&parts);
    assert_eq!((read.min_log_number_to_keep, read.column_families[0].log_number), (current, current));
}

#[test]
fn waiting_for_a_flush_ends_with_the_background_error() {
    let parts = Parts::new();
    parts.put("a", "1");
    parts.seal(&[CfId::DEFAULT]);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| parts.versions.wait_for_flush(&[CfId::DEFAULT]));
        parts.versions.fail_writes(Error::new(ErrorKind::IoError, "test"));
        assert_eq!(waiting.join().unwrap().unwrap_err().kind(), ErrorKind::IoError);
    });
}

#[test]
fn waiting_for_a_flush_of_nothing_ends_at_once() {
    Parts::new().versions.wait_for_flush(&[CfId(0), CfId(7)]).unwrap();
}

#[test]
fn only_what_is_sealed_is_asked_to_be_flushed() {
    let parts = Parts::new();
    parts.versions.request_flush(&[CfId::DEFAULT]);
    assert!(!parts.versions.state.lock().column_families[&CfId(0)].flush_requested);
    parts.put("a", "1");
    parts.seal(&[CfId::DEFAULT]);
    assert!(parts.versions.state.lock().column_families[&CfId(0)].wants_flush());
}

#[test]
fn a_database_that_is_only_read_refuses_with_its_own_error() {
    let parts = Parts::new();
    parts.versions.refuse_if_read_only().unwrap();
    parts.versions.state.lock().background_error = Some(Error::new(ErrorKind::IoError, "of another kind"));
    parts.versions.refuse_if_read_only().unwrap();
    parts.versions.state.lock().background_error = Some(Error::not_supported("read only"));
    assert_eq!(parts.versions.refuse_if_read_only().unwrap_err().kind(), ErrorKind::NotSupported);
}

#[test]
fn synced_wals_are_tracked_until_they_may_go() {
    let options = DbOptions { track_and_verify_wals_in_manifest: true, ..DbOptions::default() };
    let parts = Parts::of_db(options);
    parts.put("a", "1");
    parts.versions.track_synced_wals(&[(FIRST_WAL, 77)]).unwrap();
    let tracked = recovered(&parts).wals.snapshot().unwrap();
    let first = WalAddition { number: FIRST_WAL, synced_bytes: Some(77) };
    assert_eq!(tracked.wal_additions, [first]);
    let size = manifest_size(&parts);
    parts.versions.untrack_wals(FIRST_WAL).unwrap();
    assert_eq!(manifest_size(&parts), size, "none of those below is tracked");
    parts.versions.untrack_wals(FIRST_WAL.next()).unwrap();
    assert!(recovered(&parts).wals.snapshot().is_none());
}

#[test]
fn wals_are_not_tracked_unless_asked_for_nor_when_they_are_not_needed() {
    let parts = Parts::new();
    let size = manifest_size(&parts);
    parts.versions.track_synced_wals(&[(FIRST_WAL, 77)]).unwrap();
    assert_eq!(manifest_size(&parts), size);
    let options = DbOptions { track_and_verify_wals_in_manifest: true, ..DbOptions::default() };
    let parts = Parts::of_db(options);
    let size = manifest_size(&parts);
    parts.versions.track_synced_wals(&[(FileNumber(FIRST_WAL.0 - 1), 77)]).unwrap();
    parts.versions.track_synced_wals(&[]).unwrap();
    assert_eq!(manifest_size(&parts), size);
}

#[test]
fn listeners_are_told_of_a_failed_manifest_once_it_is_unlocked() {
    let options = DbOptions { track_and_verify_wals_in_manifest: true, ..DbOptions::default() };
    let failing = || {
        let parts = Parts::of_db(options.clone());
        let told = parts.listen_for_errors(false);
        parts.faults().only(Some("MANIFEST"));
        parts.faults().fail_at(parts.faults().changes(), EIO, true);
        (parts, told)
    };
    let changes: [fn(&VersionSet) -> Result<()>; 3] = [
        |versions| versions.log_and_apply(vec![adding(1, &[table(20, "a", "c")])], |_| {}),
        |versions| versions.restart_manifest(),
        |versions| versions.track_synced_wals(&[(FIRST_WAL, 10)]),
    ];
    for change in changes {
        let (parts, told) = failing();
        let error = change(&parts.versions).unwrap_err();
        assert_eq!(told.take(), [format!("ManifestWrite {error}")]);
        assert!(parts.versions.refuses_writes());
        // Met again: it is the same error.
        assert!(change(&parts.versions).is_err());
    }
}

#[test]
fn a_table_that_asked_to_be_compacted_asks_no_more_on_the_deepest_level() {
    let parts = Parts::new();
    let marked = |number| {
        let mut file = Arc::into_inner(table(number, "a", "c")).unwrap();
        file.marked_for_compaction = true;
        Arc::new(file)
    };
    let requested = || {
        let state = parts.versions.state.lock();
        state.column_families[&CfId(0)].marks.requested.iter().map(|number| number.0).collect::<Vec<_>>()
    };
    let change = |gone: &[(u32, u64)], new: &[(u32, Arc<TableFile>)]| {
        let mut edit = VersionEdit::for_column_family(CfId::DEFAULT);
        edit.new_files = new.to_vec();
        edit.deleted_files.extend(gone.iter().map(|(level, number)| (*level, FileNumber(*number))));
        parts.versions.log_and_apply(vec![edit], |_| {}).unwrap();
    };
    let refresh = || {
        let mut state = parts.versions.state.lock();
        state.column_families.get_mut(&CfId(0)).unwrap().refresh_marks(0, 0, SeqNum(0));
    };
    change(&[], &[(1, marked(20)), (3, table(21, "a", "c"))]);
    assert_eq!(requested(), [20]);
    change(&[(1, 20)], &[(2, marked(20))]);
    assert_eq!(requested(), [20], "there is a level below");
    change(&[(3, 21)], &[]);
    assert_eq!(requested(), [0; 0], "there is none");
    change(&[], &[(3, table(22, "a", "c"))]);
    refresh();
    assert_eq!(requested(), [20]);
    change(&[(2, 20), (3, 22)], &[(3, marked(20))]);
    assert_eq!(requested(), [0; 0], "it was moved there");
    parts.versions.state.lock().column_families.get_mut(&CfId(0)).unwrap().suggested.insert(FileNumber(20));
    refresh();
    change(&[], &[(2, table(23, "x", "z"))]);
    assert_eq!(requested(), [20], "somebody suggested it");
}

/// Resumes as soon as it is told of an error.
struct Resumer {
    versions: std::sync::Weak<VersionSet>,
    fs: Arc<outcrop_env::faulty::FaultyFs>,
}

impl crate::events::EventSink for Resumer {
    fn tell(&self, _: crate::events::Event<'_>) {
        self.fs.faults().heal();
        let versions = self.versions.upgrade().expect("it tells");
        versions.restart_manifest().unwrap();
        let mut state = versions.state.lock();
        (state.background_error, state.severity) = (None, None);
        versions.refuse_writes(false);
    }
}

#[test]
fn an_error_of_the_manifest_does_not_come_back_after_a_resume() {
    let parts = Parts::new();
    let versions = Arc::downgrade(&parts.versions);
    parts.ctx.set_event_sink(Arc::new(Resumer { versions, fs: parts.fs.clone() }));
    parts.faults().only(Some("MANIFEST"));
    parts.faults().fail_at(parts.faults().changes(), EIO, true);
    let edit = || vec![adding(1, &[table(20, "a", "c")])];
    parts.versions.log_and_apply(edit(), |_| panic!("nothing is installed")).unwrap_err();
    assert!(parts.versions.state.lock().background_error.is_none());
    assert!(!parts.versions.refuses_writes());
    parts.versions.log_and_apply(edit(), |_| {}).unwrap();
}
