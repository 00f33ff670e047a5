//! Which tickers, histograms and counters of threads stay 0: what the sources name, what `is_counted` says and what
//! `docs/monitoring.md` lists are the same. `REWRITE=1` writes the list.

use outcrop::{HistogramKind, PerfMetric, Ticker};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Why names stay 0: names without `rocksdb.`, or what they begin (`x.*`) or end (`*.x`) with. The first that fits is the reason.
const REASONS: [(&str, &str); 19] = [
    (
        "secondary.cache.* compressed.secondary.cache.* persistent.cache.* sim.block.cache.* row.cache.* \
         secondary_cache_hit_count compressed_sec_cache_* block_cache_standalone_handle_count block_cache_real_handle_count",
        "there are no such caches",
    ),
    (
        "block.cache.compression.dict.* compression_dict_* block_cache_compression_dict_read_byte *.add.redundant \
         blobdb.cache.add.failures",
        "dictionaries stay with their table; a block that another thread added meanwhile is found, and what is not admitted has memory of its own",
    ),
    (
        "blobdb.num.* blobdb.bytes.* blobdb.write.* blobdb.key.size blobdb.value.size blobdb.get.micros blobdb.multiget.micros \
         blobdb.seek.micros blobdb.next.micros blobdb.prev.micros blobdb.blob.index.* blobdb.fifo.* blobdb.gc.num.files \
         blobdb.gc.failures",
        "of RocksDB's older BlobDB alone, which is another product",
    ),
    (
        "txn.overhead.* txn.get.tryagain num.op.per.transaction",
        "of write policies other than WRITE_COMMITTED; transactions are not measured",
    ),
    (
        "prefetch.* prefetched.bytes.discarded async.* read.async.micros async.read.error.count multiscan.* multiscan_* poll.* \
         iodispatcher.* multiget.coroutine.count file.submit.async.read.fallback readahead.trimmed number_async_seek \
         compaction.prefetch.bytes table.open.prefetch.tail.* multiget.io.batch.size",
        "of RocksDB's own prefetching and asynchronous reads; here io_uring or threads",
    ),
    (
        "remote.compact.* open.and.compact.* timestamp.filter.* hot.file.* warm.file.* cool.file.* cold.file.* ice.file.* \
         wal.precreate.* fifo.change_temperature.compactions sst.user.defined.index.load.fail.count number.wbwi.ingest \
         read.path.range.tombstones.* encrypt_data_nanos decrypt_data_nanos file.open.metadata.* manifest.validation.failure.count \
         block.key.distribution.cv",
        "there is no such feature",
    ),
    (
        "last.level.seek.data* non.last.level.seek.data* num.index.* sst.batch.size",
        "tables and blocks that a seek or several keys go through are not counted by level, where they are cached",
    ),
    (
        "file.read.verify.* file.read.corruption.* file.write.* read.block.* write.raw.block.micros sst.write.micros",
        "files are verified by the scrubber, which has counters of its own; writes are measured by the job, and reads of files as a whole",
    ),
    (
        "number.superversion_* db.mutex.wait.micros db_mutex_lock_nanos db_condition_wait_nanos number.direct.load.table.properties",
        "views are borrowed without a count; there is no one mutex",
    ),
    ("compression.times.nanos", "tables are written by jobs: compaction.times.cpu_micros has it"),
    (
        "error.handler.autoresume.retry.count",
        "attempts are counted together: error.handler.autoresume.retry.total.count",
    ),
    ("file_ingestion_*", "ingestions are measured as a whole: ingest.external.file.run.time"),
    (
        "compaction.aborted subcompaction.setup.times.micros compaction.range_del.drop.obsolete",
        "of flushes and compactions no more is counted: events and LOG have each",
    ),
    (
        "filter.operation.time.nanos internal_merge_point_lookup_count number.keys.updated internal_range_del_reseek_count",
        "the time of the application's filters is not measured, and no write is in place",
    ),
    (
        "blobdb.blob.file.* blobdb.compression.micros blobdb.decompression.micros blobdb.gc.num.new.files blob_checksum_time \
         blob_decompress_time",
        "blob files are measured as they are read and synced, no finer",
    ),
    ("footer.corruption.count", "such a file is an error that names it"),
    ("env_*", "calls of the file system are not measured one by one"),
    (
        "*_cpu_time *_cpu_nanos",
        "processor time is not measured in operations: asking for it costs more than most of them",
    ),
    (
        "get_snapshot_time get_post_process_time seek_on_memtable_time next_on_memtable_count prev_on_memtable_count seek_child_seek_time \
         seek_min_heap_time seek_max_heap_time seek_internal_seek_time find_next_user_entry_time new_table_block_iter_nanos \
         new_table_iterator_nanos block_seek_nanos find_table_nanos bloom_memtable_* key_lock_wait_* write_thread_wait_nanos \
         write_scheduling_flushes_compactions_time index_block_read_byte filter_block_read_byte metadata_block_read_byte",
        "the step is not there, or a clock would cost more than it",
    ),
];

/// Crates that count.
const COUNTING: [&str; 3] = ["table", "engine", "capi"];
const BEGIN: &str = "<!-- never counted: made by `REWRITE=1 cargo test -p outcrop --test it counted` -->\n";
const END: &str = "<!-- end of never counted -->\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The code of a directory, without comments and tests.
fn code(dir: &Path, all: &mut String) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_stem().unwrap().to_str().unwrap();
        if path.is_dir() && name != "tests" {
            code(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") && name != "tests" {
            let text = std::fs::read_to_string(&path).unwrap();
            let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            all.extend(
                product
                    .lines()
                    .filter(|line| !line.trim_start().starts_with("//"))
                    .flat_map(|line| [line, "\n"]),
            );
        }
    }
}

/// The names of values of `kind` (such as `Ticker`) that the code uses.
fn used(code: &str, kind: &str) -> std::collections::BTreeSet<String> {
    let path = format!("{kind}::");
    let after = code.split(path.as_str()).skip(1);
    after.map(|rest| rest.chars().take_while(char::is_ascii_alphanumeric).collect()).collect()
}

fn fits(name: &str, pattern: &str) -> bool {
    match (pattern.strip_suffix('*'), pattern.strip_prefix('*')) {
        (Some(begin), _) => name.starts_with(begin),
        (_, Some(end)) => name.ends_with(end),
        _ => name == pattern,
    }
}

/// The table of names that stay 0, by reason.
fn table(uncounted: &[(&str, &str)]) -> String {
    let mut rows: Vec<[Vec<&str>; 3]> = REASONS.map(|_| Default::default()).into();
    for (kind, name) in uncounted {
        let name = name.trim_start_matches("rocksdb.");
        let reason =
            REASONS.iter().position(|(names, _)| names.split_whitespace().any(|pattern| fits(name, pattern)));
        let reason = reason.unwrap_or_else(|| panic!("{kind} {name} is never counted: why?"));
        let place = ["Ticker", "HistogramKind", "PerfMetric"].iter().position(|known| known == kind).unwrap();
        rows[reason][place].push(name);
    }
    for pattern in REASONS.iter().flat_map(|(names, _)| names.split_whitespace()) {
        let has_one = uncounted.iter().any(|(_, name)| fits(name.trim_start_matches("rocksdb."), pattern));
        assert!(has_one, "{pattern}: everything of that name is counted");
    }
    let mut text = String::from("| why | tickers | histograms | of threads |\n|---|---|---|---|\n");
    for ((_, why), names) in REASONS.iter().zip(rows) {
        let listed =
            names.map(|names| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" "));
        assert!(listed.iter().any(|names| !names.is_empty()), "nothing stays 0 because {why}");
        let _ = writeln!(text, "| {why} | {} | {} | {} |", listed[0], listed[1], listed[2]);
    }
    text
}

#[test]
fn what_is_never_counted_is_what_the_docs_say() {
    let mut all = String::new();
    COUNTING.iter().for_each(|name| code(&root().join("crates").join(name).join("src"), &mut all));
    // Which tickers the events of a lookup change.
    all.push_str(&std::fs::read_to_string(root().join("crates/monitor/src/read_counts.rs")).unwrap());
    let mut uncounted = Vec::new();
    let tickers = used(&all, "Ticker");
    for ticker in Ticker::ALL {
        let is_used = tickers.contains(&format!("{ticker:?}"));
        assert_eq!(ticker.is_counted(), is_used, "Ticker::{ticker:?}");
        uncounted.extend((!is_used).then(|| ("Ticker", ticker.name())));
    }
    let histograms = used(&all, "HistogramKind");
    for kind in HistogramKind::ALL {
        let is_used = histograms.contains(&format!("{kind:?}"));
        assert_eq!(kind.is_counted(), is_used, "HistogramKind::{kind:?}");
        uncounted.extend((!is_used).then(|| ("HistogramKind", kind.name())));
    }
    let metrics = used(&all, "PerfMetric");
    let unused = PerfMetric::ALL.iter().filter(|metric| !metrics.contains(&format!("{metric:?}")));
    uncounted.extend(unused.map(|metric| ("PerfMetric", metric.name())));
    let path = root().join("docs/monitoring.md");
    let docs = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = docs.split_once(BEGIN).expect("the list begins");
    let (listed, after) = rest.split_once(END).expect("the list ends");
    let table = table(&uncounted);
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(&path, [before, BEGIN, &table, END, after].concat()).unwrap();
    } else {
        assert_eq!(listed, table, "docs/monitoring.md: see {BEGIN}");
    }
}
