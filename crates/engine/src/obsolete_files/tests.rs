//! Which files go when, without a database.

use super::*;
use crate::testing::parts::{FIRST_WAL, Parts};
use outcrop_env::OpenWrite;
use outcrop_options::DbOptions;

fn no_recycling() -> Parts {
    Parts::of_db(DbOptions { allow_fallocate: false, ..DbOptions::default() })
}

/// Forgets the tables of the default column family.
fn drop_tables(parts: &Parts) {
    let mut edit = outcrop_manifest::VersionEdit::for_column_family(0);
    let version = parts.cf(0).superversion.load().version.clone();
    edit.deleted_files.extend(version.files().map(|(level, file)| (level as u32, file.number)));
    parts.versions.log_and_apply(vec![edit], |_| {}).unwrap();
}

#[test]
fn a_table_goes_once_nobody_reads_it() {
    let parts = no_recycling();
    parts.put("a", "1");
    parts.flush();
    let mut iter = parts.iter(&Default::default());
    drop_tables(&parts);
    purge_obsolete_files(&parts.jobs);
    assert_eq!(parts.files(".sst").len(), 1, "the iterator reads it");
    iter.seek_to_first();
    assert!(iter.valid());
    drop(iter);
    parts.versions.state.lock().purge_wanted = true;
    purge_obsolete_files(&parts.jobs);
    assert_eq!(parts.files(".sst"), [""; 0]);
    assert!(parts.versions.state.lock().obsolete_tables.is_empty());
}

#[test]
fn a_wal_goes_once_its_rows_are_in_tables() {
    let parts = no_recycling();
    let first = format!("{FIRST_WAL:06}.log");
    parts.put("a", "1");
    parts.seal(&[0]);
    parts.versions.state.lock().purge_wanted = true;
    purge_obsolete_files(&parts.jobs);
    assert!(parts.files(".log").contains(&first), "it is all there is of a row");
    parts.flush();
    purge_obsolete_files(&parts.jobs);
    assert!(!parts.files(".log").contains(&first), "{:?}", parts.files(".log"));
    assert_eq!(parts.versions.state.lock().live_wals.len(), 1);
}

#[test]
fn with_deletions_disabled_everything_stays_and_goes_later() {
    let parts = no_recycling();
    parts.put("a", "1");
    parts.flush();
    drop_tables(&parts);
    parts.versions.state.lock().deletions_disabled = 1;
    purge_obsolete_files(&parts.jobs);
    assert_eq!(parts.files(".sst").len(), 1);
    parts.versions.state.lock().deletions_disabled = 0;
    purge_obsolete_files(&parts.jobs);
    assert_eq!(parts.files(".sst"), [""; 0]);
}

#[test]
fn a_dead_wal_is_recycled_as_often_as_was_asked_for_and_not_while_it_is_read() {
    let parts = Parts::of_db(DbOptions { recycle_log_file_num: 1, ..DbOptions::default() });
    parts.put("a", "1");
    parts.flush();
    purge_obsolete_files(&parts.jobs);
    assert_eq!(parts.versions.state.lock().recyclable_wals, [FIRST_WAL]);
    drop_kept_wals(&parts.jobs);
    assert_eq!(parts.versions.state.lock().recyclable_wals, [FIRST_WAL], "it was asked for");
    let parts = Parts::of_db(DbOptions { recycle_log_file_num: 1, ..DbOptions::default() });
    parts.versions.wal_readers.store(1, Ordering::Relaxed);
    parts.put("a", "1");
    parts.flush();
    purge_obsolete_files(&parts.jobs);
    assert!(parts.versions.state.lock().recyclable_wals.is_empty());
}

#[test]
fn a_wal_that_is_kept_without_being_asked_for_goes_when_nobody_writes() {
    let parts = Parts::new();
    parts.put("a", "1");
    parts.flush();
    purge_obsolete_files(&parts.jobs);
    let kept = parts.versions.state.lock().recyclable_wals.clone();
    assert_eq!(kept, [FIRST_WAL]);
    drop_kept_wals(&parts.jobs);
    assert!(parts.versions.state.lock().recyclable_wals.is_empty());
    assert!(!parts.files(".log").contains(&format!("{FIRST_WAL:06}.log")));
}

#[test]
fn files_set_aside_go_unless_a_version_has_them() {
    let parts = Parts::new();
    parts.put("a", "1");
    parts.flush();
    let live = parts.cf(0).superversion.load().version.levels[0].files[0].number;
    let stray = FileNumber(parts.ctx.new_file_number());
    let path = file_name::table(&parts.ctx.path, stray);
    parts.ctx.env.fs.create(&path, OpenWrite::default()).unwrap().close().unwrap();
    parts.ctx.quarantined.lock().extend([live, stray]);
    remove_quarantined(&parts.versions);
    assert_eq!(parts.files(".sst"), [format!("{:06}.sst", live.0)]);
}

#[test]
fn leftovers_of_earlier_openings_go_and_files_of_other_names_stay() {
    let parts = Parts::new();
    let create = |name: &str| {
        let path = parts.ctx.path.join(name);
        parts.ctx.env.fs.create(&path, OpenWrite::default()).unwrap().close().unwrap();
    };
    [
        "000005.sst",
        "000006.sst",
        "000007.blob",
        "000099.sst",
        "OPTIONS-000003",
        "OPTIONS-000004",
        "OPTIONS-000008",
    ]
    .into_iter()
    .for_each(create);
    ["MANIFEST-000000", "000001.log", "000003.dbtmp", "notes.txt", "LOG.old.1"].into_iter().for_each(create);
    let live = BTreeSet::from([FileNumber(6)]);
    remove_leftovers(&parts.ctx, &live, FIRST_WAL, FileNumber(1), 50).unwrap();
    let mut names = parts.ctx.env.fs.list(&parts.ctx.path).unwrap();
    names.sort();
    let expected = [
        "000002.log",
        "000006.sst",
        "000099.sst",
        "CURRENT",
        "LOG.old.1",
        "MANIFEST-000001",
        "OPTIONS-000004",
        "OPTIONS-000008",
        "notes.txt",
    ];
    assert_eq!(names, expected);
}
