//! Indexed batches with timestamps beside RocksDB: writes that await theirs, reads of the batch meanwhile, alone and over the database.

use super::{Api, Errptr, Object, Session, bytes_of, comparator, drawn_key, error_of, pointer, ts_size};
use crate::library::libraries;
use libc::{c_void, size_t};
use outcrop_base::random::SplitMix;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::ptr::null_mut;

/// An indexed batch beside an open database.
struct Batch<'s> {
    api: &'s Api,
    session: &'s Session<'s>,
    batch: Object,
}

impl Batch<'_> {
    /// Calls `look_up`, which gives a value and its length; gives what was answered.
    fn answer(&self, look_up: impl FnOnce(*mut size_t, Errptr) -> *mut libc::c_char) -> String {
        let (mut len, mut value) = (0, null_mut());
        let error = error_of(self.api, |e| value = look_up(&raw mut len, e));
        // SAFETY: as the call gave it.
        format!("{} {error}", unsafe { self.session.taken(value, len) })
    }

    /// The answers about `key`: the batch alone, and over the database at `at`.
    fn get(&self, key: &[u8], at: u64) -> String {
        let Batch { api, session, batch } = *self;
        let (k, kl) = pointer(key);
        // SAFETY: live objects.
        let alone = self.answer(|len, e| unsafe {
            (api.rocksdb_writebatch_wi_get_from_batch_cf)(batch, null_mut(), session.stamped, k, kl, len, e)
        });
        let over = session.reading(at, None, |options| {
            // SAFETY: live objects.
            self.answer(|len, e| unsafe {
                let (db, cf) = (session.db, session.stamped);
                (api.rocksdb_writebatch_wi_get_from_batch_and_db_cf)(batch, db, options, cf, k, kl, len, e)
            })
        });
        format!("{} at {at}: {alone}, over the database {over}", key.escape_ascii())
    }

    /// The entries of an iterator over the database at `at` with the batch laid over it, both ways and around a key.
    fn walk(&self, draw: &mut SplitMix, at: u64) -> Vec<String> {
        let Batch { api, session, batch } = *self;
        let mut log = vec![format!("walk at {at}")];
        session.reading(at, None, |options| {
            // SAFETY: live objects; the iterator that is made owns its base.
            unsafe {
                let base = (api.rocksdb_create_iterator_cf)(session.db, options, session.stamped);
                let iter =
                    (api.rocksdb_writebatch_wi_create_iterator_with_base_cf)(batch, base, session.stamped);
                (api.rocksdb_iter_seek_to_first)(iter);
                while (api.rocksdb_iter_valid)(iter) != 0 {
                    log.push(session.shown(iter));
                    (api.rocksdb_iter_next)(iter);
                }
                log.push("back".to_string());
                (api.rocksdb_iter_seek_to_last)(iter);
                while (api.rocksdb_iter_valid)(iter) != 0 {
                    log.push(session.shown(iter));
                    (api.rocksdb_iter_prev)(iter);
                }
                let target = drawn_key(draw);
                let (k, kl) = pointer(&target);
                log.push(format!("around {}", target.escape_ascii()));
                (api.rocksdb_iter_seek)(iter, k, kl);
                for _ in 0..6 {
                    if (api.rocksdb_iter_valid)(iter) == 0 {
                        break;
                    }
                    log.push(session.shown(iter));
                    match draw.below(2) {
                        0 => (api.rocksdb_iter_next)(iter),
                        _ => (api.rocksdb_iter_prev)(iter),
                    }
                }
                log.push(error_of(api, |e| (api.rocksdb_iter_get_error)(iter, e)));
                (api.rocksdb_iter_destroy)(iter);
            }
        });
        log
    }

    /// Number of writes, and their bytes.
    fn contents(&self) -> String {
        // SAFETY: live objects; the bytes are copied before the batch changes.
        unsafe {
            let (count, mut len) = ((self.api.rocksdb_writebatch_wi_count)(self.batch), 0);
            let data = (self.api.rocksdb_writebatch_wi_data)(self.batch, &raw mut len);
            // The first eight are the sequence number of a batch that was written.
            format!("{count}: {}", bytes_of(data, len)[8..].escape_ascii())
        }
    }

    fn update(&self, ts: &[u8], of: unsafe extern "C" fn(*mut c_void, u32) -> size_t) -> String {
        let (t, tl) = pointer(ts);
        // SAFETY: live objects.
        error_of(self.api, |e| unsafe {
            (self.api.rocksdb_writebatch_wi_update_timestamps)(self.batch, t, tl, null_mut(), of, e);
        })
    }

    fn write(&self) -> String {
        let Batch { api, session, batch } = *self;
        // SAFETY: live objects.
        error_of(api, |e| unsafe { (api.rocksdb_write_writebatch_wi)(session.db, session.write, batch, e) })
    }

    fn step(&self, draw: &mut SplitMix, now: &mut u64, log: &mut Vec<String>) {
        let Batch { api, session, batch } = *self;
        let (key, at) = (drawn_key(draw), *now - 3 + draw.below(6));
        let value = format!("b{now}-{}", draw.below(100));
        let ((k, kl), (v, vl)) = (pointer(&key), pointer(value.as_bytes()));
        // SAFETY: live objects.
        unsafe {
            match draw.below(40) {
                0..12 => (api.rocksdb_writebatch_wi_put_cf)(batch, session.stamped, k, kl, v, vl),
                12..15 => (api.rocksdb_writebatch_wi_delete_cf)(batch, session.stamped, k, kl),
                15 => (api.rocksdb_writebatch_wi_singledelete_cf)(batch, session.stamped, k, kl),
                16..19 => (api.rocksdb_writebatch_wi_put_cf)(batch, session.default, k, kl, v, vl),
                19 => (api.rocksdb_writebatch_wi_set_save_point)(batch),
                kind @ (20 | 38) => {
                    log.push(error_of(api, |e| match kind {
                        38 => (api.rocksdb_writebatch_wi_clear)(batch),
                        _ => (api.rocksdb_writebatch_wi_rollback_to_save_point)(batch, e),
                    }));
                    // RocksDB does not see that no write is left that awaits its timestamp.
                    log.push(self.update(&now.to_le_bytes(), ts_size));
                }
                21..24 => {
                    *now += 1 + draw.below(4);
                    log.push(self.update(&now.to_le_bytes(), ts_size));
                    log.push(self.contents());
                }
                24..32 => log.push(self.get(&key, at)),
                32..35 => log.extend(self.walk(draw, at)),
                35..38 => {
                    log.push(self.write());
                    log.push(session.get(&key, *now));
                }
                _ => session.flush(),
            }
        }
    }
}

#[test]
fn drawn_batches_have_the_same_answers() {
    let first = std::env::var("OUTCROP_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    for seed in first..first + 8 {
        println!("batch {seed} (OUTCROP_SEED={seed})");
        let script = |api: &Api, dir: &Path| {
            let (mut draw, mut now, mut log) = (SplitMix::new(seed), 100, Vec::new());
            let session = Session::open(api, dir, false, None);
            for _ in 0..20 {
                log.push(session.put(&drawn_key(&mut draw), now, b"before"));
            }
            // SAFETY: live objects.
            unsafe {
                let batch = (api.rocksdb_writebatch_wi_create)(0, (seed % 2) as u8);
                let on = Batch { api, session: &session, batch };
                (0..150).for_each(|_| on.step(&mut draw, &mut now, &mut log));
                (api.rocksdb_writebatch_wi_destroy)(batch);
            }
            // Forward alone: of two versions of one timestamp RocksDB shows another one backward.
            log.extend(session.scan(&mut draw, u64::MAX, Some(1)));
            log.extend(session.scan(&mut draw, u64::MAX, None));
            session.close();
            log
        };
        let mut logs = libraries().into_iter().map(|(_, library)| {
            let (api, dir) = (ManuallyDrop::new(Api::load(&library)), tempfile::tempdir().unwrap());
            script(&api, &dir.path().join("db"))
        });
        let log = logs.next().unwrap();
        for theirs in logs {
            for (at, (ours, theirs)) in log.iter().zip(&theirs).enumerate() {
                let before = log[at.saturating_sub(8)..at].join("\n");
                assert_eq!(ours, theirs, "batch {seed}: left ours, right RocksDB's, after\n{before}");
            }
            assert_eq!(log.len(), theirs.len(), "batch {seed}");
        }
        let written = |line: &&String| line.contains("=b1");
        assert!(log.iter().filter(written).count() > 5, "batch {seed}: values of batches are read");
        let awaited = "Invalid argument: write batch must have timestamp(s) set";
        assert!(log.iter().any(|line| line == awaited), "batch {seed}: some writes come too early");
    }
}

unsafe extern "C" fn unknown(_: *mut c_void, _: u32) -> size_t {
    size_t::MAX
}

unsafe extern "C" fn all(_: *mut c_void, _: u32) -> size_t {
    8
}

#[test]
fn misfitting_calls_of_batches_fail_in_the_same_words() {
    let script = |api: &Api, dir: &Path| {
        let session = Session::open(api, dir, false, None);
        let (stamped, default) = (session.stamped, session.default);
        let ((k, kl), (v, vl)) = (pointer(b"a long key"), pointer(b"value"));
        let (four, eight) = (1u32.to_le_bytes(), 0x4142_4344_4546_4748u64.to_le_bytes());
        let mut log = Vec::new();
        // SAFETY: live objects; RocksDB refers to a comparator for as long as the batch lives, so it is not given back.
        unsafe {
            let on = Batch { api, session: &session, batch: (api.rocksdb_writebatch_wi_create)(0, 1) };
            // Without a write nothing asks for the length of a timestamp.
            log.push(on.update(&[], ts_size));
            (api.rocksdb_writebatch_wi_put_cf)(on.batch, stamped, k, kl, v, vl);
            log.extend([&b""[..], &four].map(|ts| on.update(ts, ts_size)));
            log.push(on.update(&eight, unknown));
            log.push(on.write());
            log.push(on.contents());
            let read = (api.rocksdb_readoptions_create)();
            let get = |options: Object| {
                on.answer(|len, e| {
                    let (batch, db) = (on.batch, session.db);
                    (api.rocksdb_writebatch_wi_get_from_batch_and_db_cf)(
                        batch, db, options, stamped, k, kl, len, e,
                    )
                })
            };
            log.push(get(read));
            log.push(on.update(&eight, ts_size));
            log.push(on.write());
            log.push(session.get(b"a long key", u64::from_le_bytes(eight)));
            (api.rocksdb_writebatch_wi_destroy)(on.batch);

            // One whose default column family has timestamps.
            let order = comparator(api, 8);
            let batch = (api.rocksdb_writebatch_wi_create_with_params)(order, 0, 1, 0, 0);
            let on = Batch { api, session: &session, batch };
            (api.rocksdb_writebatch_wi_put_cf)(batch, default, k, kl, v, vl);
            (api.rocksdb_writebatch_wi_put)(batch, k, kl, v, vl);
            (api.rocksdb_writebatch_wi_put)(batch, k, kl, k, kl);
            log.push(on.contents());
            log.push(on.update(&eight, all));
            log.push(on.contents());
            let (get, options) = (api.rocksdb_writebatch_wi_get_from_batch, (api.rocksdb_options_create)());
            log.push(on.answer(|len, e| get(batch, options, k, kl, len, e)));
            (api.rocksdb_writebatch_wi_destroy)(batch);

            // One in which the end of a key is taken for a timestamp, at the caller's word.
            let batch = (api.rocksdb_writebatch_wi_create)(0, 0);
            let on = Batch { api, session: &session, batch };
            (api.rocksdb_writebatch_wi_put_cf)(batch, default, k, kl, v, vl);
            log.push(on.update(&eight, all));
            log.push(on.contents());
            (api.rocksdb_writebatch_wi_destroy)(batch);
        }
        session.close();
        log
    };
    let log = Api::same_on_both(script);
    assert_eq!(log[1], "Invalid argument: Timestamp is empty");
    assert_eq!(log[6], "none Invalid argument: Must specify timestamp");
}
