//! The commit pipeline, without a database.

use super::*;
use crate::testing::parts::{FIRST_WAL, Parts, plain_options};
use outcrop_base::{CfId, ErrorKind};
use outcrop_env::faulty::EIO;
use outcrop_options::{ColumnFamilyOptions, DbOptions};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

const PLAIN: WriteOptions = WriteOptions {
    sync: false,
    disable_wal: false,
    no_slowdown: false,
    low_pri: false,
    rate_limiter_priority: None,
    ignore_missing_column_families: false,
};
const SYNC: WriteOptions = WriteOptions { sync: true, ..PLAIN };
const UNLOGGED: WriteOptions = WriteOptions { disable_wal: true, ..PLAIN };

fn batch(pairs: &[(&str, &str)]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    pairs.iter().for_each(|(key, value)| batch.put_id(CfId::DEFAULT, key.as_bytes(), value.as_bytes()));
    batch
}

fn wal_len(parts: &Parts) -> u64 {
    parts.commit.exclude_writers().wal.len()
}

#[test]
fn a_write_is_visible_when_it_returns_and_takes_one_number_for_each_record() {
    let parts = Parts::new();
    assert_eq!(parts.versions.visible_seq(), SeqNum(0));
    parts
        .write(|batch| {
            batch.put_id(CfId::DEFAULT, b"a", b"1");
            batch.put_id(CfId::DEFAULT, b"b", b"2");
            batch.delete_id(CfId::DEFAULT, b"a");
        })
        .unwrap();
    assert_eq!(parts.versions.visible_seq(), SeqNum(3));
    assert_eq!((parts.get("a"), parts.get("b")), (None, Some("2".into())));
    assert_eq!(parts.get_at("a", SeqNum(1)), Some("1".into()));
    parts.put("a", "3");
    assert_eq!(parts.versions.visible_seq(), SeqNum(4));
    assert_eq!(parts.get("a"), Some("3".into()));
}

#[test]
fn a_batch_comes_back_with_its_number_and_can_be_written_again() {
    let parts = Parts::new();
    let mut batch = batch(&[("a", "1")]);
    parts.commit.write(&WriteOptions::default(), &mut batch).unwrap();
    assert_eq!((batch.count(), codec::sequence_of(batch.as_bytes())), (1, SeqNum(1)));
    parts.commit.write(&WriteOptions::default(), &mut batch).unwrap();
    assert_eq!(codec::sequence_of(batch.as_bytes()), SeqNum(2));
}

#[test]
fn options_that_contradict_each_other_are_refused_before_anything_is_done() {
    let parts = Parts::new();
    let both = WriteOptions { sync: true, ..UNLOGGED };
    let error = parts.write_with(&both, |batch| batch.put_id(CfId::DEFAULT, b"a", b"1")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let recycling = Parts::of_db(DbOptions { recycle_log_file_num: 2, ..DbOptions::default() });
    let error = recycling.write_with(&UNLOGGED, |batch| batch.put_id(CfId::DEFAULT, b"a", b"1")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    for parts in [parts, recycling] {
        assert_eq!((parts.versions.visible_seq(), wal_len(&parts)), (SeqNum(0), 0));
    }
}

#[test]
fn an_unlogged_write_leaves_the_wal_alone_and_is_remembered() {
    let parts = Parts::new();
    parts.write_with(&UNLOGGED, |batch| batch.put_id(CfId::DEFAULT, b"a", b"1")).unwrap();
    assert_eq!(parts.get("a"), Some("1".into()));
    let core = parts.commit.exclude_writers();
    assert!(core.unlogged && core.wal.is_empty());
}

#[test]
fn a_synced_write_is_on_disk_and_others_are_not() {
    let parts = Parts::new();
    parts.put("a", "1");
    assert!(!parts.commit.exclude_writers().wal.is_synced());
    let before = parts.faults().syncs();
    parts.write_with(&SYNC, |batch| batch.put_id(CfId::DEFAULT, b"b", b"2")).unwrap();
    assert!(parts.faults().syncs() > before);
    assert!(parts.commit.exclude_writers().wal.is_synced());
    assert_eq!(parts.commit.stats.wal_syncs.get(), 1);
}

#[test]
fn sync_wal_makes_what_was_written_durable() {
    let parts = Parts::new();
    parts.put("a", "1");
    parts.commit.sync_wal().unwrap();
    assert!(parts.commit.exclude_writers().wal.is_synced());
}

#[test]
fn wals_are_synced_though_background_work_failed() {
    let parts = Parts::new();
    parts.put("a", "1");
    parts.versions.fail_writes(outcrop_base::Error::corruption("Merge operator failed"));
    assert!(parts.write(|batch| batch.put_id(CfId::DEFAULT, b"a", b"2")).is_err());
    parts.commit.flush_wal().unwrap();
    parts.commit.sync_wal().unwrap();
    assert!(parts.commit.exclude_writers().wal.is_synced());
}

#[test]
fn with_manual_flushes_records_wait_in_memory() {
    let parts = Parts::of_db(DbOptions { manual_wal_flush: true, ..DbOptions::default() });
    let on_disk = || {
        parts.ctx.env.fs.file_size(&outcrop_manifest::file_name::wal(&parts.ctx.wal_dir, FIRST_WAL)).unwrap()
    };
    parts.put("a", "1");
    let before = on_disk();
    parts.commit.flush_wal().unwrap();
    assert!(on_disk() > before, "{before}");
}

#[test]
fn a_failed_append_hides_the_group_and_stops_writes() {
    let parts = Parts::new();
    parts.put("a", "1");
    parts.faults().fail_at(parts.faults().changes(), EIO, false);
    let error = parts.write(|batch| batch.put_id(CfId::DEFAULT, b"a", b"2")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IoError);
    assert_eq!(parts.get("a"), Some("1".into()));
    assert!(parts.versions.refuses_writes());
    let again = parts.write(|batch| batch.put_id(CfId::DEFAULT, b"a", b"3")).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::IoError, "the background error, though the file works again");
    assert_eq!(parts.versions.visible_seq(), SeqNum(1));
    // The number may be in the file: it is not given out again.
    assert_eq!(parts.commit.exclude_writers().last_seq, SeqNum(2));
    assert!(parts.commit.sync_wal().is_err() && parts.commit.flush_wal().is_err());
}

#[test]
fn what_is_written_is_counted() {
    let parts = Parts::new();
    parts
        .write(|batch| {
            batch.put_id(CfId::DEFAULT, b"a", b"1");
            batch.put_id(CfId::DEFAULT, b"b", b"2");
        })
        .unwrap();
    parts.put("c", "3");
    let stats = &parts.commit.stats;
    assert_eq!((stats.writes.get(), stats.keys_written.get(), stats.groups.get()), (2, 3, 2));
    assert_eq!(stats.wal_bytes.get(), wal_len(&parts));
}

#[test]
fn a_record_of_a_dropped_column_family_is_passed_over() {
    let parts = Parts::new();
    parts.commit.exclude_writers().targets.remove(CfId(7));
    parts
        .write(|batch| {
            batch.put_id(CfId(7), b"a", b"gone");
            batch.put_id(CfId::DEFAULT, b"b", b"2");
        })
        .unwrap();
    assert_eq!(parts.versions.visible_seq(), SeqNum(2));
    assert_eq!(parts.rows(), "b=2");
}

#[test]
fn an_admitted_batch_is_written_and_is_told_the_last_number() {
    let parts = Parts::new();
    parts.put("a", "1");
    let mut told = None;
    let admit = |group: Committing| {
        told = Some(group.last_seq);
        Ok(())
    };
    parts.commit.write_if(&WriteOptions::default(), &mut batch(&[("a", "2")]), admit).unwrap();
    assert_eq!(told, Some(SeqNum(1)));
    assert_eq!(parts.get("a"), Some("2".into()));
}

#[test]
fn a_refused_batch_is_neither_in_the_wal_nor_numbered_and_comes_back_whole() {
    let parts = Parts::new();
    parts.put("a", "1");
    let (len, mut refused) = (wal_len(&parts), batch(&[("a", "2"), ("b", "2")]));
    let before = refused.as_bytes().to_vec();
    let busy = || Error::new(ErrorKind::Busy, "somebody else wrote a");
    let error = parts.commit.write_if(&WriteOptions::default(), &mut refused, |_| Err(busy())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert_eq!((wal_len(&parts), parts.versions.visible_seq()), (len, SeqNum(1)));
    assert_eq!(refused.as_bytes(), before);
    assert!(!parts.versions.refuses_writes(), "it is the caller's affair alone");
    parts.put("a", "3");
    assert_eq!(parts.rows(), "a=3");
}

#[test]
fn who_admits_may_read_everything_that_was_written_before() {
    let parts = Parts::new();
    for round in 0..3 {
        let admit = |group: Committing| match parts.get_at("a", group.last_seq) {
            None => Ok(()),
            Some(_) => Err(Error::new(ErrorKind::Busy, "taken")),
        };
        let result = parts.commit.write_if(&WriteOptions::default(), &mut batch(&[("a", "1")]), admit);
        assert_eq!(result.is_ok(), round == 0, "{round}");
    }
    assert_eq!(parts.versions.visible_seq(), SeqNum(1));
}

#[test]
fn a_panic_of_who_admits_is_an_error_and_stops_nobody() {
    let parts = Parts::new();
    let options = WriteOptions::default();
    let error = parts.commit.write_if(&options, &mut batch(&[("a", "1")]), |_| panic!("no")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Aborted);
    parts.put("b", "2");
    assert_eq!(parts.rows(), "b=2");
}

#[test]
fn a_batch_that_must_be_admitted_waits_for_the_leader_and_is_in_no_group_with_others() {
    let parts = Parts::new();
    let groups = AtomicU64::new(0);
    std::thread::scope(|scope| {
        // The lead is taken by a writer that waits inside.
        let (inside, is_inside) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let parts = &parts;
        scope.spawn(move || {
            let wait = |_| {
                inside.send(()).unwrap();
                may_go_on.recv().unwrap();
                Ok(())
            };
            parts.commit.write_if(&WriteOptions::default(), &mut batch(&[("first", "1")]), wait).unwrap();
        });
        is_inside.recv().unwrap();
        for name in ["x", "y"] {
            let groups = &groups;
            scope.spawn(move || {
                let count = |_| {
                    groups.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                };
                parts.commit.write_if(&WriteOptions::default(), &mut batch(&[(name, "1")]), count).unwrap();
            });
        }
        go_on.send(()).unwrap();
    });
    assert_eq!(groups.load(Ordering::Relaxed), 2);
    assert_eq!((parts.commit.stats.groups.get(), parts.versions.visible_seq()), (3, SeqNum(3)));
}

#[test]
fn writers_of_several_threads_are_all_committed_in_some_order() {
    let parts = Parts::new();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let parts = &parts;
            scope.spawn(move || (0..50).for_each(|i| parts.put(&format!("{thread}-{i}"), "v")));
        }
    });
    assert_eq!(parts.versions.visible_seq(), SeqNum(200));
    assert_eq!(parts.rows().split(' ').count(), 200);
    assert_eq!(parts.commit.stats.writes.get(), 200);
}

#[test]
fn a_full_memtable_is_sealed_before_the_next_group() {
    let parts = Parts::of(ColumnFamilyOptions { write_buffer_size: 1 << 16, ..plain_options() });
    let value = "v".repeat(1 << 12);
    let sealed = || parts.versions.state.lock().column_families[&CfId(0)].sealed.len();
    let mut i = 0;
    while sealed() == 0 {
        parts.put(&format!("{i:04}"), &value);
        i += 1;
        assert!(i < 100, "nothing is sealed");
    }
    let state = parts.versions.state.lock();
    let cf = &state.column_families[&CfId(0)];
    assert!(!cf.memtable.is_empty(), "the write that found it full is in the next");
    assert_eq!(state.live_wals.len(), 2);
    assert_eq!(cf.sealed[0].next_wal, state.live_wals[1].number);
    assert_eq!(parts.versions.current_wal(), state.live_wals[1].number);
    drop(state);
    assert_eq!(parts.rows().split(' ').count(), i);
}

#[test]
fn sealing_what_is_empty_changes_nothing() {
    let parts = Parts::new();
    parts.seal(&[CfId::DEFAULT]);
    let state = parts.versions.state.lock();
    assert!(state.column_families[&CfId(0)].sealed.is_empty());
    assert_eq!((state.live_wals.len(), parts.versions.current_wal()), (1, FIRST_WAL));
}

#[test]
fn sealing_one_column_family_moves_an_empty_one_to_the_new_wal() {
    let families = vec![(plain_options(), Default::default()), (plain_options(), Default::default())];
    let parts = Parts::with(DbOptions::default(), families);
    parts.put("a", "1");
    parts.seal(&[CfId::DEFAULT]);
    let state = parts.versions.state.lock();
    let wal = parts.versions.current_wal();
    assert_eq!(state.column_families[&CfId(0)].log_number, FIRST_WAL, "its data is in the first WAL still");
    assert_eq!(state.column_families[&CfId(1)].log_number, wal);
    assert_eq!(state.min_wal_needed(wal), FIRST_WAL);
}

#[test]
fn with_atomic_flush_all_column_families_are_sealed_together() {
    let families = vec![(plain_options(), Default::default()), (plain_options(), Default::default())];
    let options = DbOptions { atomic_flush: true, ..DbOptions::default() };
    let parts = Parts::with(options, families);
    parts
        .write(|batch| {
            batch.put_id(CfId::DEFAULT, b"a", b"1");
            batch.put_id(CfId(1), b"a", b"1");
        })
        .unwrap();
    parts.seal(&[CfId(1)]);
    let state = parts.versions.state.lock();
    assert!(state.column_families.values().all(|cf| cf.sealed.len() == 1 && cf.memtable.is_empty()));
}

#[test]
fn a_wal_that_was_closed_unsynced_is_synced_with_the_next_synced_write() {
    let parts = Parts::new();
    parts.put("a", "1");
    parts.seal(&[CfId::DEFAULT]);
    parts.faults().only(Some(&format!("{FIRST_WAL:06}.log")));
    let before = parts.faults().syncs();
    parts.write_with(&SYNC, |batch| batch.put_id(CfId::DEFAULT, b"b", b"2")).unwrap();
    assert_eq!(parts.faults().syncs() - before, 1, "else a synced record could follow a hole");
    parts.write_with(&SYNC, |batch| batch.put_id(CfId::DEFAULT, b"c", b"2")).unwrap();
    assert_eq!(parts.faults().syncs() - before, 1, "once is enough");
}

#[test]
fn after_a_failed_append_another_wal_is_begun() {
    let parts = Parts::new();
    parts.put("a", "1");
    parts.faults().fail_at(parts.faults().changes(), EIO, false);
    parts.write(|batch| batch.put_id(CfId::DEFAULT, b"b", b"2")).unwrap_err();
    parts.faults().heal();
    let mut core = parts.commit.exclude_writers();
    parts.commit.replace_failed_wal(&mut core).unwrap();
    let number = core.wal.number();
    assert!(number > FIRST_WAL && core.wal.is_untouched());
    assert_eq!(parts.versions.current_wal(), number);
    // That of an attempt that failed later on is used again.
    parts.commit.replace_failed_wal(&mut core).unwrap();
    assert_eq!(core.wal.number(), number);
}

#[test]
fn what_a_failed_group_left_in_memtables_is_discarded() {
    let parts = Parts::new();
    parts.put("a", "1");
    let mut core = parts.commit.exclude_writers();
    // As if a comparator had panicked after the first of two inserts.
    core.last_seq = SeqNum(3);
    let memtable = core.targets[0].memtable.clone();
    apply::insert(&memtable, SeqNum(2), Op::Put { key: b"b", value: b"2" });
    parts.commit.discard_unpublished(&mut core).unwrap();
    assert!(!Arc::ptr_eq(&core.targets[0].memtable, &memtable), "it was replaced");
    assert!(!core.targets[0].memtable.holds_newer_than(SeqNum(1)));
    let kept = core.targets[0].memtable.clone();
    core.last_seq = SeqNum(1);
    parts.commit.discard_unpublished(&mut core).unwrap();
    assert!(Arc::ptr_eq(&core.targets[0].memtable, &kept), "nothing to discard, nothing replaced");
    drop(core);
    assert_eq!(parts.rows(), "a=1");
}

#[test]
fn a_stopped_writer_that_asked_not_to_wait_fails() {
    let parts = Parts::of(ColumnFamilyOptions { max_write_buffer_number: 1, ..plain_options() });
    parts.put("a", "1");
    parts.seal(&[CfId::DEFAULT]);
    assert_eq!(parts.versions.stall.condition(), StallCondition::Stopped);
    let options = WriteOptions { no_slowdown: true, ..WriteOptions::default() };
    let error = parts.write_with(&options, |batch| batch.put_id(CfId::DEFAULT, b"b", b"2")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incomplete);
    assert_eq!(parts.versions.visible_seq(), SeqNum(1));
}

#[test]
fn a_stopped_writer_goes_on_when_a_flush_has_ended() {
    let parts = Parts::of(ColumnFamilyOptions { max_write_buffer_number: 1, ..plain_options() });
    parts.put("a", "1");
    parts.seal(&[CfId::DEFAULT]);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| parts.put("b", "2"));
        parts.flush();
        writer.join().unwrap();
    });
    assert_eq!(parts.rows(), "a=1 b=2");
}

#[test]
fn a_stopped_writer_is_told_that_the_database_closes() {
    let parts = Parts::of(ColumnFamilyOptions { max_write_buffer_number: 1, ..plain_options() });
    parts.put("a", "1");
    parts.seal(&[CfId::DEFAULT]);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| parts.write(|batch| batch.put_id(CfId::DEFAULT, b"b", b"2")));
        {
            let mut state = parts.versions.state.lock();
            state.shutting_down = true;
            parts.versions.refuse_writes(true);
            parts.versions.state_changed.notify_all();
        }
        assert_eq!(writer.join().unwrap().unwrap_err().kind(), ErrorKind::ShutdownInProgress);
    });
}

#[test]
fn a_merge_that_is_written_again_and_again_becomes_a_value() {
    let options = ColumnFamilyOptions { max_successive_merges: 2, ..plain_options() };
    let merge_operator = outcrop_base::builtin_merge::by_name("uint64add");
    assert!(merge_operator.is_some());
    let objects = crate::column_family::ColumnFamilyParts { merge_operator, ..Default::default() };
    let parts = Parts::with(DbOptions::default(), vec![(options, objects)]);
    let one = 1u64.to_le_bytes();
    parts.write(|batch| batch.put_id(CfId::DEFAULT, b"n", &one)).unwrap();
    for _ in 0..5 {
        parts.write(|batch| batch.merge_id(CfId::DEFAULT, b"n", &one)).unwrap();
    }
    let cf = parts.cf(CfId::DEFAULT);
    let view = cf.superversion.load();
    let mut kinds = Vec::new();
    view.memtable.get(&outcrop_base::LookupKey::new(b"n"), SeqNum::MAX, |_, kind, value| {
        kinds.push((kind, value.to_vec()));
        std::ops::ControlFlow::Continue(())
    });
    let values = kinds.iter().filter(|(kind, _)| *kind == outcrop_base::ValueType::Value).count();
    assert_eq!(values, 2, "the put, and the merge that met two operands: {kinds:?}");
}

/// Options of a database with a rate limiter that lets everything pass at once.
fn limited() -> DbOptions {
    let mut options = DbOptions::default();
    let rows = outcrop_options::kept::DB_KEPT;
    assert!(options.kept.set(rows, "rate_limiter_bytes_per_sec", &(1u64 << 40).to_string()).unwrap());
    options
}

#[test]
fn the_record_of_a_group_asks_the_limiter_once_for_the_bytes_of_all() {
    let parts = Parts::of_db(limited());
    let limiter = parts.ctx.pacing.limiter.clone().expect("the options ask for one");
    let paced = WriteOptions { rate_limiter_priority: Some(IoPriority::User), ..PLAIN };
    let asked = |key: &str, value: &str| {
        let bytes = batch(&[(key, value)]).take_bytes();
        Request { bytes, options: paced, alone: false }
    };
    assert!(parts.commit.queue.try_lead());
    let mut own = asked("own", "1");
    let others = [asked("follower", "22"), asked("another", "333")];
    let bytes = own.bytes.len() + others.iter().map(|r| r.bytes.len() - codec::HEADER_LEN).sum::<usize>();
    std::thread::scope(|scope| {
        for request in others {
            scope.spawn(|| {
                assert!(matches!(parts.commit.queue.wait_in_line(request, None), Turn::Done(Ok(()), _)))
            });
        }
        let mut followers = Vec::new();
        while followers.len() < 2 {
            followers.extend(parts.commit.queue.gather(&own));
            std::thread::yield_now();
        }
        parts.commit.lead_group(&paced, &mut own.bytes, &mut followers).unwrap();
        for (writer, request) in followers {
            writer.finish(Ok(()), request.bytes);
        }
        parts.commit.end_lead(&paced, own.bytes.len());
    });
    assert_eq!(
        (limiter.requests(IoPriority::User), limiter.bytes_through(IoPriority::User)),
        (1, bytes as u64)
    );
    parts.put("plain", "4");
    assert_eq!(limiter.requests(IoPriority::User), 1, "it did not ask");
}

#[test]
fn what_is_prepared_waits_as_writes_of_low_priority_do_and_what_is_decided_does_not() {
    let options = ColumnFamilyOptions { level0_file_num_compaction_trigger: 2, ..plain_options() };
    let parts = Parts::of(options);
    let low = WriteOptions { low_pri: true, no_slowdown: true, ..PLAIN };
    let writes = Arc::new(batch(&[("a", "1")]));
    for name in [b"one", b"two"] {
        parts.commit.prepare(&low, name, &writes).unwrap();
    }
    let mut files = 0;
    while !parts.versions.stall.falls_behind() {
        parts.put("b", "2");
        parts.seal(&[CfId::DEFAULT]);
        parts.flush();
        files += 1;
        assert!(files < 20, "compactions never fall behind");
    }
    let refused = parts.commit.prepare(&low, b"three", &writes).unwrap_err();
    assert_eq!(refused.to_string(), "Result incomplete: Low priority write stall");
    parts.commit.commit_prepared(&low, b"one", &WriteBatch::new()).unwrap();
    parts.commit.rollback_prepared(&low, b"two").unwrap();
    let size = codec::prepared_record(&writes, b"three").len() as u64;
    parts.commit.prepare(&WriteOptions { no_slowdown: false, ..low }, b"three", &writes).unwrap();
    let paced = parts.versions.stall.low_priority(&parts.ctx.env.clock);
    assert_eq!(paced.bytes_through(IoPriority::High), size);
}

#[test]
fn options_are_checked_before_a_write_of_low_priority_waits() {
    // Without a limit compactions always fall behind. Source: RocksDB `RecalculateWriteStallConditions`.
    let options = ColumnFamilyOptions { soft_pending_compaction_bytes_limit: 0, ..plain_options() };
    let parts = Parts::of(options);
    parts.versions.stall.update(&parts.versions.state.lock());
    assert!(parts.versions.stall.falls_behind());
    let refusal = |options: WriteOptions| {
        parts.write_with(&options, |batch| batch.put_id(CfId::DEFAULT, b"a", b"1")).unwrap_err().kind()
    };
    let hasty = WriteOptions { low_pri: true, no_slowdown: true, ..PLAIN };
    assert_eq!(refusal(hasty), ErrorKind::Incomplete);
    for wrong in [
        WriteOptions { rate_limiter_priority: Some(IoPriority::Low), ..hasty },
        WriteOptions { rate_limiter_priority: Some(IoPriority::User), disable_wal: true, ..hasty },
        WriteOptions { sync: true, disable_wal: true, ..hasty },
    ] {
        assert_eq!(refusal(wrong), ErrorKind::InvalidArgument);
    }
}
