//! Parts that the tests share: small options, random numbers, whole contents.

use outcrop::options::{
    ColumnFamilyOptions, CompactionStyle, CompressionType, DbOptions, FilterPolicy, IndexType, Prepopulate,
};
use outcrop::{
    ColumnFamilyDescriptor, ColumnFamilyHandle, ColumnFamilyParts, Db, Env, MergeOperator, ReadOptions,
    Result, UserComparator, Wait, WaitForCompactOptions,
};
pub use outcrop_base::random::SplitMix as Rng;
use outcrop_base::{PrefixExtractor, UserPrefixExtractor};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};

/// All rows of a column family.
pub type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Returns once `holds`, however busy the machine is. Ten minutes pass only if it never will.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed().as_secs() < 600, "{what} never happens");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Sets the flag when it goes: threads of a scope that go on until it is set would otherwise never end once an assertion beside them fails.
pub struct StopOnDrop<'a>(pub &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, atomic::Ordering::Relaxed);
    }
}

/// The seed of a randomised test: from OUTCROP_SEED, or `default`. Printed, so that a failure can be replayed.
pub fn seed(test: &str, default: u64) -> u64 {
    let seed = std::env::var("OUTCROP_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    println!("{test}: seed {seed} (replay with OUTCROP_SEED={seed})");
    seed
}

/// Joins operands with commas.
pub struct Append;

impl MergeOperator for Append {
    fn name(&self) -> &str {
        "StringAppendOperator"
    }

    fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let mut parts: Vec<&[u8]> = existing.into_iter().collect();
        parts.extend_from_slice(operands);
        Some(parts.join(&b','))
    }
}

/// The smallest memtable there is, in bytes: options that ask for less get this. Tests of what happens when memtables
/// fill write several times as much.
pub const LEAST_MEMTABLE: u64 = 64 << 10;

/// The work of background jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Memtables that were written to tables.
    pub memtables: u64,
    /// Compactions that wrote tables or moved them.
    pub compactions: u64,
}

/// Writes what memtables hold to tables, waits for compactions, and reads from the database's LOGs what was done since
/// it was created.
pub fn work_done(db: &Db, env: &Env, path: &str) -> Work {
    db.flush_cfs(&db.column_families(), Wait::UntilDone).unwrap();
    db.wait_for_compact(&WaitForCompactOptions::default()).unwrap();
    let mut work = Work::default();
    for name in env.fs.list(Path::new(path)).unwrap().iter().filter(|name| name.starts_with("LOG")) {
        let text = env.fs.read_all(&Path::new(path).join(name)).unwrap();
        for line in String::from_utf8_lossy(&text).lines() {
            if let Some((count, _)) =
                line.split_once("] wrote ").and_then(|(_, rest)| rest.split_once(" memtables to L0"))
            {
                work.memtables += count.parse::<u64>().unwrap();
            }
            work.compactions += u64::from(line.contains("] compacted ") || line.contains("] moved "));
        }
    }
    work
}

/// Entries of the memtable that takes a column family's writes. Fewer after a write than before: it went into a new one.
pub fn active_entries(db: &Db, cf: &ColumnFamilyHandle) -> u64 {
    db.property_int_cf(cf, "rocksdb.num-entries-active-mem-table").unwrap()
}

/// Options under which some hundred kilobytes go through flushes and several levels.
pub fn small_options(rng: &mut Rng) -> ColumnFamilyOptions {
    let mut options = ColumnFamilyOptions {
        write_buffer_size: rng.pick(&[LEAST_MEMTABLE, LEAST_MEMTABLE, 2 * LEAST_MEMTABLE]),
        target_file_size_base: rng.pick(&[4 << 10, 16 << 10]),
        max_bytes_for_level_base: rng.pick(&[16 << 10, 64 << 10]),
        max_bytes_for_level_multiplier: rng.pick(&[2.0, 4.0, 10.0]),
        level0_file_num_compaction_trigger: rng.pick(&[2, 4]),
        level_compaction_dynamic_level_bytes: rng.one_in(2),
        num_levels: rng.pick(&[2, 4, 7]),
        max_write_buffer_number: rng.pick(&[2, 4]),
        compaction_style: any_style(rng),
        compression: rng.pick(&[CompressionType::None, CompressionType::Lz4, CompressionType::Zstd]),
        enable_blob_files: rng.one_in(3),
        min_blob_size: rng.pick(&[0, 50, 500]),
        blob_file_size: rng.pick(&[2_000, 50_000]),
        blob_compression_type: rng.pick(&[CompressionType::None, CompressionType::Lz4]),
        enable_blob_garbage_collection: rng.one_in(2),
        blob_garbage_collection_age_cutoff: rng.pick(&[0.25, 1.0]),
        ..ColumnFamilyOptions::default()
    };
    options.table.block_size = rng.pick(&[256, 1024, 4096]);
    options.table.format_version = rng.pick(&[2, 4, 5, 5, 6, 7]);
    options.min_write_buffer_number_to_merge = rng.pick(&[1, 1, 2]);
    options.table.index_type = rng.pick(&[
        IndexType::BinarySearch,
        IndexType::BinarySearch,
        IndexType::TwoLevel,
        IndexType::BinarySearchWithFirstKey,
    ]);
    options.table.partition_filters = options.table.index_type == IndexType::TwoLevel && rng.one_in(2);
    options.table.metadata_block_size = rng.pick(&[128, 4096]);
    options.table.whole_key_filtering = rng.one_in(2);
    if rng.one_in(3) {
        options.prefix_extractor = Some(match rng.one_in(2) {
            true => PrefixExtractor::Capped(3),
            false => PrefixExtractor::User(Arc::new(UpToDash)),
        });
    }
    options.memtable_prefix_bloom_size_ratio = rng.pick(&[0.0, 0.1]);
    options.max_sequential_skip_in_iterations = rng.pick(&[0, 2, 8]);
    options.max_successive_merges = rng.pick(&[0, 0, 2]);
    options.strict_max_successive_merges = rng.one_in(2);
    options.paranoid_file_checks = rng.one_in(3);
    options.blob_garbage_collection_force_threshold = rng.pick(&[0.1, 0.5, 1.0]);
    options.blob_compaction_readahead_size = rng.pick(&[0, 100, 5000]);
    options.prepopulate_blob_cache = rng.pick(&[Prepopulate::Disable, Prepopulate::FlushOnly]);
    options.table.prepopulate_block_cache = rng.pick(&[
        Prepopulate::Disable,
        Prepopulate::Disable,
        Prepopulate::FlushOnly,
        Prepopulate::FlushAndCompaction,
    ]);
    options.table.block_align = options.compression == CompressionType::None && rng.one_in(3);
    options.table.cache_index_and_filter_blocks = rng.one_in(2);
    if rng.one_in(2) {
        options.table.filter_policy = rng.pick(&[
            FilterPolicy::Bloom { bits_per_key: 10.0 },
            FilterPolicy::Ribbon { bits_per_key: 10.0, bloom_before_level: 0 },
            FilterPolicy::LegacyBloom { bits_per_key: 10.0 },
        ]);
    }
    options
}

/// The prefix of a key: up to its first dash. A key without one has none.
pub struct UpToDash;

impl UserPrefixExtractor for UpToDash {
    fn name(&self) -> &str {
        "test.UpToDash"
    }

    fn in_domain(&self, key: &[u8]) -> bool {
        key.contains(&b'-')
    }

    fn transform<'k>(&'k self, key: &'k [u8]) -> &'k [u8] {
        &key[..=key.iter().position(|&byte| byte == b'-').expect("asked for its domain first")]
    }
}

/// A compaction style that keeps all data of a small test: FIFO deletes only above its limit of 1 GiB.
pub fn any_style(rng: &mut Rng) -> CompactionStyle {
    rng.pick(&[
        CompactionStyle::Level,
        CompactionStyle::Level,
        CompactionStyle::Universal,
        CompactionStyle::Universal,
        CompactionStyle::Fifo,
    ])
}

/// Options that create what is missing.
pub fn creating() -> DbOptions {
    DbOptions { create_if_missing: true, create_missing_column_families: true, ..DbOptions::default() }
}

/// Options of a database for column family options: drawn from them, so that every opening has the same.
pub fn database_options(options: &ColumnFamilyOptions) -> DbOptions {
    DbOptions {
        recycle_log_file_num: u64::from(options.num_levels == 4) * 2,
        track_and_verify_wals_in_manifest: options.num_levels == 2,
        track_and_verify_wals: options.num_levels >= 4,
        wal_compression: if options.num_levels == 7 { CompressionType::Zstd } else { CompressionType::None },
        ..creating()
    }
}

/// A column family with the appending merge operator.
pub fn descriptor(name: &str, options: &ColumnFamilyOptions) -> ColumnFamilyDescriptor {
    let parts = ColumnFamilyParts { merge_operator: Some(Arc::new(Append)), ..ColumnFamilyParts::default() };
    ColumnFamilyDescriptor { name: name.to_string(), options: options.clone(), parts }
}

/// Opens `/db` in `env` with only the default column family.
pub fn open(env: &Env, options: &ColumnFamilyOptions) -> Result<Db> {
    Db::builder("/db")
        .options(database_options(options))
        .env(env.clone())
        .column_family(descriptor("default", options))
        .open()
}

/// Every row, by a forward scan; checked against a backward scan.
pub fn contents(db: &Db, cf: &ColumnFamilyHandle, options: &ReadOptions) -> Rows {
    contents_with(db, cf, options, <[u8]>::to_vec)
}

/// The same, with each key as `spell` has it.
pub fn contents_with(
    db: &Db,
    cf: &ColumnFamilyHandle,
    options: &ReadOptions,
    spell: fn(&[u8]) -> Vec<u8>,
) -> Rows {
    let mut iter = db.cursor_cf_with(cf, options).unwrap();
    let mut forward = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        forward.push((spell(iter.key()), iter.value().to_vec()));
        iter.next();
    }
    iter.status().unwrap();
    let mut backward = Vec::new();
    iter.seek_to_last();
    while iter.valid() {
        backward.push((spell(iter.key()), iter.value().to_vec()));
        iter.prev();
    }
    iter.status().unwrap();
    backward.reverse();
    assert_eq!(forward, backward, "both directions show the same rows");
    let count = forward.len();
    let rows: Rows = forward.into_iter().collect();
    assert_eq!(rows.len(), count, "no key is shown twice");
    rows
}

/// Compares ASCII letters without regard to case: different bytes are one key.
pub struct CaseFold;

impl UserComparator for CaseFold {
    fn name(&self) -> &str {
        "test.CaseFold"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}
