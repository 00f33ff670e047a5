//! Universal compaction beside RocksDB's: what is moved, and what is written when it goes piece by piece.

use crate::library::{Bytes, Errptr, Object, c_functions, libraries, outcrop_library, succeeding};
use libc::{c_char, c_int, c_uchar, c_void, size_t};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::path::Path;

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_destroy: fn(Object);
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_enable_statistics: fn(Object);
    rocksdb_options_statistics_get_string: fn(Object) -> *mut c_char;
    rocksdb_options_set_compaction_style: fn(Object, c_int);
    rocksdb_options_set_compression: fn(Object, c_int);
    rocksdb_options_set_level0_file_num_compaction_trigger: fn(Object, c_int);
    rocksdb_options_set_target_file_size_base: fn(Object, u64);
    rocksdb_options_set_max_compaction_bytes: fn(Object, u64);
    rocksdb_options_set_universal_compaction_options: fn(Object, Object);
    rocksdb_universal_compaction_options_create: fn() -> Object;
    rocksdb_universal_compaction_options_destroy: fn(Object);
    rocksdb_universal_compaction_options_set_allow_trivial_move: fn(Object, c_uchar);
    rocksdb_universal_compaction_options_set_incremental: fn(Object, c_uchar);
    rocksdb_universal_compaction_options_set_max_size_amplification_percent: fn(Object, c_int);
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_close: fn(Object);
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_put: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_flush: fn(Object, Object, Errptr);
    rocksdb_wait_for_compact_options_create: fn() -> Object;
    rocksdb_wait_for_compact: fn(Object, Object, Errptr);
    rocksdb_livefiles: fn(Object) -> Object;
    rocksdb_livefiles_count: fn(Object) -> c_int;
    rocksdb_livefiles_level: fn(Object, c_int) -> c_int;
    rocksdb_livefiles_destroy: fn(Object);
    rocksdb_free: fn(*mut c_void);
}

struct Settings {
    may_move: bool,
    incremental: bool,
}

/// The result of a script.
#[derive(Debug, PartialEq)]
struct Outcome {
    /// Tables by level.
    shape: BTreeMap<c_int, usize>,
    /// Bytes that flushes and compactions wrote.
    flushed: u64,
    compacted: u64,
}

/// Writes `flushes` tables of `rows` rows of 1,000 bytes with the keys that `key` gives, each after the compactions of those before.
fn outcome(
    api: &Api,
    dir: &Path,
    settings: &Settings,
    (flushes, rows): (u64, u64),
    key: impl Fn(u64) -> u64,
) -> Outcome {
    let path = CString::new(dir.to_str().unwrap()).unwrap();
    // SAFETY: live objects, and pointers to live bytes.
    unsafe {
        let universal = (api.rocksdb_universal_compaction_options_create)();
        let flag = |set: bool| c_uchar::from(set);
        (api.rocksdb_universal_compaction_options_set_allow_trivial_move)(universal, flag(settings.may_move));
        (api.rocksdb_universal_compaction_options_set_incremental)(universal, flag(settings.incremental));
        (api.rocksdb_universal_compaction_options_set_max_size_amplification_percent)(universal, 50);
        let options = (api.rocksdb_options_create)();
        (api.rocksdb_options_set_create_if_missing)(options, 1);
        (api.rocksdb_options_enable_statistics)(options);
        (api.rocksdb_options_set_compaction_style)(options, 1);
        (api.rocksdb_options_set_compression)(options, 0);
        (api.rocksdb_options_set_level0_file_num_compaction_trigger)(options, 4);
        (api.rocksdb_options_set_target_file_size_base)(options, 20_000);
        (api.rocksdb_options_set_max_compaction_bytes)(options, 200_000);
        (api.rocksdb_options_set_universal_compaction_options)(options, universal);
        let db = succeeding(api.rocksdb_free, |e| (api.rocksdb_open)(options, path.as_ptr(), e));
        let writing = (api.rocksdb_writeoptions_create)();
        let flushing = (api.rocksdb_flushoptions_create)();
        let waiting = (api.rocksdb_wait_for_compact_options_create)();
        let value = [b'v'; 1000];
        for flush in 0..flushes {
            for row in 0..rows {
                let key = format!("{:016}", key(flush * rows + row));
                succeeding(api.rocksdb_free, |e| {
                    let (from, len) = (key.as_ptr().cast(), key.len());
                    (api.rocksdb_put)(db, writing, from, len, value.as_ptr().cast(), value.len(), e);
                });
            }
            succeeding(api.rocksdb_free, |e| (api.rocksdb_flush)(db, flushing, e));
            succeeding(api.rocksdb_free, |e| (api.rocksdb_wait_for_compact)(db, waiting, e));
        }
        let files = (api.rocksdb_livefiles)(db);
        let mut shape = BTreeMap::new();
        for at in 0..(api.rocksdb_livefiles_count)(files) {
            *shape.entry((api.rocksdb_livefiles_level)(files, at)).or_default() += 1;
        }
        (api.rocksdb_livefiles_destroy)(files);
        let text = (api.rocksdb_options_statistics_get_string)(options);
        let statistics = CStr::from_ptr(text).to_str().unwrap().to_string();
        (api.rocksdb_free)(text.cast());
        let ticker = |name: &str| {
            let line = statistics.lines().find(|line| line.starts_with(name)).expect("it is there");
            line.rsplit(' ').next().unwrap().parse().unwrap()
        };
        let (flushed, compacted) =
            (ticker("rocksdb.flush.write.bytes "), ticker("rocksdb.compact.write.bytes "));
        (api.rocksdb_close)(db);
        (api.rocksdb_options_destroy)(options);
        (api.rocksdb_universal_compaction_options_destroy)(universal);
        Outcome { shape, flushed, compacted }
    }
}

/// The outcome with ours, and with RocksDB's if it is there.
fn outcomes(settings: &Settings, size: (u64, u64), key: impl Fn(u64) -> u64 + Copy) -> Vec<Outcome> {
    let of = |library: &Path| {
        let dir = tempfile::tempdir().unwrap();
        outcome(&Api::load(library), &dir.path().join("db"), settings, size, key)
    };
    libraries().iter().map(|(_, library)| of(library)).collect()
}

#[test]
fn runs_that_do_not_overlap_are_moved_if_they_may() {
    // RocksDB 11.8.1 ends by a signal where pieces of runs that do not overlap are due.
    let dir = tempfile::tempdir().unwrap();
    let pieces = Settings { may_move: true, incremental: true };
    let ours = outcome(&Api::load(&outcrop_library()), &dir.path().join("db"), &pieces, (20, 40), |row| row);
    assert_eq!(ours.compacted, 0, "{ours:?}");
    for may_move in [true, false] {
        let given = outcomes(&Settings { may_move, incremental: false }, (20, 40), |row| row);
        let ours = &given[0];
        assert_eq!(ours.compacted == 0, may_move, "{ours:?}");
        for theirs in &given[1..] {
            assert_eq!(theirs.compacted == 0, may_move, "{theirs:?}");
            // New tables are cut by their size, which is not the same to a byte.
            assert!(!may_move || ours.shape == theirs.shape, "{ours:?} {theirs:?}");
        }
    }
}

#[test]
fn large_merges_go_piece_by_piece_if_they_may() {
    // All over the key space, the same on both.
    let key = |row: u64| row.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 1_000_000_007;
    let whole = outcomes(&Settings { may_move: false, incremental: false }, (60, 40), key);
    let parts = outcomes(&Settings { may_move: false, incremental: true }, (60, 40), key);
    for given in [&whole, &parts] {
        let ours = given[0].compacted as f64;
        for theirs in &given[1..] {
            let ratio = ours / theirs.compacted as f64;
            assert!((0.95..1.05).contains(&ratio), "{ratio}: {given:?}");
        }
    }
    // The next to last run keeps what a piece did not take.
    assert_ne!(whole[0], parts[0]);
}
