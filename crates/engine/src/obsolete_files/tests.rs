//! Which files go when, without a database.

use super::*;
use crate::live_files::DeletionsOnHold;
use crate::objects::DbObjects;
use crate::sst_file_manager::SstFileManager;
use crate::testing::parts::{DIR, FIRST_WAL, Lines, Parts, plain_options};
use outcrop_base::CfId;
use outcrop_env::OpenWrite;
use outcrop_env::faulty::EIO;
use outcrop_options::DbOptions;

fn no_recycling() -> Parts {
    Parts::of_db(DbOptions { allow_fallocate: false, ..DbOptions::default() })
}

/// Forgets the tables of the default column family.
fn drop_tables(parts: &Parts) {
    let mut edit = outcrop_manifest::VersionEdit::for_column_family(CfId::DEFAULT);
    let version = parts.cf(CfId::DEFAULT).superversion.load().version.clone();
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
    purge_obsolete_files(&parts.jobs);
    assert_eq!(parts.files(".sst"), [""; 0]);
}

#[test]
fn a_table_goes_with_its_last_holder_whatever_was_removed_before() {
    let parts = no_recycling();
    parts.put("a", "1");
    parts.flush();
    let version = parts.cf(CfId::DEFAULT).superversion.load().version.clone();
    let view = parts.cf(CfId::DEFAULT).superversion.load_full();
    drop_tables(&parts);
    assert!(parts.ctx.background.obsolete_table_bytes() > 0);
    // Each of them holds the table over one removal of files.
    purge_obsolete_files(&parts.jobs);
    drop(view);
    assert!(!may_purge(&parts.ctx, &parts.versions.state.lock()));
    purge_obsolete_files(&parts.jobs);
    assert_eq!(parts.files(".sst").len(), 1);
    drop(version);
    assert!(may_purge(&parts.ctx, &parts.versions.state.lock()), "nobody asked for it");
    purge_obsolete_files(&parts.jobs);
    assert_eq!(parts.files(".sst"), [""; 0]);
    assert_eq!(parts.ctx.background.obsolete_table_bytes(), 0);
}

#[test]
fn a_wal_goes_once_its_rows_are_in_tables() {
    let parts = no_recycling();
    let first = format!("{FIRST_WAL:06}.log");
    parts.put("a", "1");
    parts.seal(&[CfId::DEFAULT]);
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
fn a_wal_of_an_earlier_opening_is_not_recycled() {
    let parts = Parts::of_db(DbOptions { recycle_log_file_num: 1, ..DbOptions::default() });
    parts.versions.state.lock().live_wals[0].is_own = false;
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
    let live = parts.cf(CfId::DEFAULT).superversion.load().version.levels[0].files[0].number;
    let stray = parts.ctx.new_file_number();
    let path = file_name::table(&parts.ctx.path, stray);
    parts.ctx.env.fs.create(&path, OpenWrite::default()).unwrap().close().unwrap();
    parts.ctx.doubtful_outputs.lock().extend([live, stray]);
    remove_doubtful_outputs(&parts.versions);
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
    remove_leftovers(&parts.ctx, &live, FIRST_WAL, FileNumber(1), FileNumber(50)).unwrap();
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

/// A database whose obsolete tables wait for their removal, and its LOG.
fn with_trash(manager: &Arc<SstFileManager>) -> (Parts, Arc<Lines>) {
    let lines = Arc::new(Lines::default());
    let objects = DbObjects {
        sst_file_manager: Some(manager.clone()),
        logger: Some(lines.clone()),
        ..DbObjects::default()
    };
    let families = vec![(plain_options(), Default::default())];
    (Parts::with_objects(DbOptions::default(), families, objects), lines)
}

#[test]
fn a_table_that_waits_for_its_removal_is_removed_where_it_is_by_whoever_comes_to_it() {
    let manager = Arc::new(SstFileManager::default());
    manager.set_delete_rate(1 << 40);
    manager.set_max_trash_ratio(1000.0);
    let (parts, lines) = with_trash(&manager);
    let (other, _) = with_trash(&manager);
    for parts in [&parts, &other] {
        parts.put("a", "1");
        parts.flush();
    }
    let table = parts.files(".sst")[0].clone();
    drop_tables(&parts);
    purge_obsolete_files(&parts.jobs);
    assert_eq!(parts.files(".trash"), [format!("{table}.trash")]);
    assert_eq!(lines.with(&format!("removed {DIR}/{table}")), [""; 0], "it is there still");
    assert_eq!(lines.with(&format!("to be removed: {DIR}/{table}.trash")).len(), 1);
    other.ctx.empty_trash();
    assert_eq!(parts.files(".trash"), [""; 0]);
    assert_eq!((manager.trash_size(), other.files(".sst").len()), (0, 1));
}

#[test]
fn a_table_that_cannot_be_renamed_to_wait_is_removed_at_once() {
    let manager = Arc::new(SstFileManager::default());
    manager.set_delete_rate(1 << 40);
    manager.set_max_trash_ratio(1000.0);
    let (parts, lines) = with_trash(&manager);
    parts.put("a", "1");
    parts.flush();
    assert!(manager.total_size() > 0);
    drop_tables(&parts);
    // The renaming fails, not the removal after it.
    parts.faults().only(Some(".sst"));
    parts.faults().fail_at(parts.faults().changes(), EIO, false);
    purge_obsolete_files(&parts.jobs);
    assert_eq!((parts.files(".sst"), parts.files(".trash")), (vec![], vec![]));
    assert_eq!((manager.total_size(), manager.trash_size()), (0, 0));
    assert_eq!(lines.with("could not mark").len(), 1);
}

#[test]
fn a_leftover_that_cannot_be_removed_is_no_reason_not_to_open() {
    let lines = Arc::new(Lines::default());
    let objects = DbObjects { logger: Some(lines.clone()), ..DbObjects::default() };
    let parts =
        Parts::with_objects(DbOptions::default(), vec![(plain_options(), Default::default())], objects);
    for name in ["1.sst.trash", "2.sst.trash"] {
        parts.ctx.env.fs.create(&Path::new(DIR).join(name), OpenWrite::default()).unwrap();
    }
    parts.faults().only(Some("1.sst.trash"));
    parts.faults().fail_at(parts.faults().changes(), EIO, true);
    parts.ctx.track_files().unwrap();
    assert_eq!(parts.files(".trash"), ["1.sst.trash"]);
    assert_eq!(lines.with("could not take care of 1.sst.trash").len(), 1);
}

#[test]
fn a_caller_waits_for_files_that_another_thread_is_removing() {
    let calls: [fn(&Parts); 2] = [
        |parts| purge_obsolete_files_now(&parts.jobs),
        // The end of a backup or a checkpoint.
        |parts| drop(DeletionsOnHold::new(&parts.jobs)),
    ];
    for call in calls {
        let parts = no_recycling();
        let removed = std::sync::atomic::AtomicBool::new(false);
        let other = Purging::new(&parts.jobs);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                call(&parts);
                assert!(removed.load(Ordering::SeqCst));
            });
            // The caller has removed what it found, which is nothing, and waits, or is about to.
            while parts.versions.state.lock().next_purge < 2 {
                std::thread::yield_now();
            }
            removed.store(true, Ordering::SeqCst);
            drop(other);
        });
        // One that a listener makes on the thread of a removal would wait for itself.
        let _own = Purging::new(&parts.jobs);
        call(&parts);
    }
}
