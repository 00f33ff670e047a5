//! The lines of the tool: those that scripts read have the form of RocksDB's own.

use super::flags::Flags;
use super::stats_text::for_scripts;
use super::step::{redundancy, value_sizes};
use crate::Database;
use crate::coarse_histogram::percentile;
use crate::steps::{KindCounts, OpenLoopResult};
use crate::{Step, StepKind, StepResult};
use hdrhistogram::Histogram;

/// The machine of the run, on standard error: scripts take the date from it.
pub(super) fn print_environment(library: &str) {
    let of_library = if library.is_empty() { String::new() } else { format!(" with {library}") };
    eprintln!("RocksDB:    version {}{of_library}", crate::VERSION);
    eprintln!("Date:       {}", jiff::Zoned::now().strftime("%a %b %e %H:%M:%S %Y"));
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let values = |name: &'static str| {
        cpuinfo.lines().filter_map(move |line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim())
        })
    };
    eprintln!("CPU:        {} * {}", values("model name").count(), values("model name").next().unwrap_or(""));
    eprintln!("CPUCache:   {}", values("cache size").next().unwrap_or(""));
}

/// The output of `--build_info`: name and version, and a line for each fact, as RocksDB's tool has them.
pub(super) fn build_info() -> String {
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let target = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    format!(
        "db_bench (RocksDB) {}\n    rocksdb_build_profile: {profile}\n    rocksdb_build_target: {target}\n",
        crate::VERSION
    )
}

/// The sizes and settings of the run, as RocksDB's tool prints them.
pub(super) fn print_header(flags: &Flags) -> Result<(), String> {
    let (key, num) = (flags.number("key_size")?, flags.number("num")?);
    let sizes = value_sizes(flags)?;
    let value = sizes.map_or(flags.number("value_size")?, |sizes| sizes.mean() as f64);
    let ratio = redundancy(flags)?.compression_ratio;
    let average = if sizes.is_some() { " avg" } else { "" };
    println!("Keys:       {key} bytes each (+ 0 bytes user-defined timestamp)");
    println!("Values:     {value}{average} bytes each ({} bytes after compression)", (value * ratio) as u64);
    if let Some(sizes) = sizes {
        println!("Values Distribution: {} (min: {}, max: {})", sizes.name(), sizes.min, sizes.max);
    }
    println!("Entries:    {num}");
    println!("Prefix:    {} bytes", flags.text("prefix_size"));
    println!("Keys per prefix:    {}", flags.text("keys_per_prefix"));
    println!("RawSize:    {:.1} MB (estimated)", (key + value) * num / 1_048_576.0);
    println!("FileSize:   {:.1} MB (estimated)", (key + value * ratio) * num / 1_048_576.0);
    println!("Write rate: {} bytes/second", flags.text("benchmark_write_rate_limit"));
    println!("Read rate: 0 ops/second");
    println!("Compression: {}", codec_name(flags.text("compression_type")));
    println!("Compression sampling rate: 0");
    println!("Memtablerep: {}", flags.text("memtablerep"));
    println!("Perf Level: 1");
    println!("------------------------------------------------");
    Ok(())
}

/// As RocksDB's tool names the codec.
fn codec_name(flag: &str) -> &str {
    match flag {
        "none" => "NoCompression",
        "snappy" => "Snappy",
        "lz4" => "LZ4",
        "zstd" => "ZSTD",
        other => other,
    }
}

pub(super) fn print_result(name: &str, step: &Step, result: &StepResult, histogram: bool) {
    let message = message(step.kind, result);
    println!(
        "{name:<12} : {:>11.3} micros/op {} ops/sec {:.3} seconds {} operations; {:>6.1} MB/s{message}",
        result.micros_per_op,
        (result.ops as f64 / result.seconds.max(1e-9)) as u64,
        result.seconds,
        result.ops,
        result.bytes as f64 / 1_048_576.0 / result.seconds.max(1e-9)
    );
    if let Some(note) = &result.note {
        let about = if note.starts_with(name) { String::new() } else { format!("{name}: ") };
        println!("{about}{note}");
    }
    if let Some(rows) = result.scanned_rows {
        println!("{name}: {rows} rows were scanned beside, and are not counted");
    }
    if let Some(open) = &result.open {
        println!("{}", open_loop(name, open));
    }
    // A step that brings the tree into shape is no operation.
    if !histogram || step.kind.is_upkeep() {
        return;
    }
    print_histogram(&format!("Microseconds per {}:", what(step)), &result.samples);
    if result.open.is_some() {
        print_histogram("Microseconds from the time an operation was due:", &result.responses);
    }
}

/// The counts at the end of a result line, in the words of RocksDB's tool; of all threads, where that has those of one.
fn message(kind: StepKind, result: &StepResult) -> String {
    let StepResult { ops, found, .. } = result;
    let KindCounts { gets, puts, put_bytes, merges, seeks, rows, longest, aborts } =
        result.kinds.unwrap_or_default();
    let mean = |sum: u64, count: u64| sum as f64 / count.max(1) as f64;
    match kind {
        StepKind::ReadRandom
        | StepKind::ReadMissing
        | StepKind::ReadWhileScanning
        | StepKind::MultiRead
        | StepKind::Range { .. } => format!(" ({found} of {ops} found)"),
        StepKind::Update | StepKind::Append => format!(" ( updates:{ops} found:{found})"),
        StepKind::Merge => format!(" ( updates:{ops})"),
        StepKind::ReadOrWrite => format!(" ( reads:{gets} writes:{puts} total:{ops} found:{found})"),
        StepKind::ReadOrMerge => {
            format!(" (reads:{gets} merges:{merges} total:{ops} hits:{found} maxlength:{longest})")
        }
        StepKind::MixGraph => format!(
            " ( Gets:{gets} Puts:{puts} Seek:{seeks}, reads {found} in {} found, avg size: {:.1} value, {:.1} scan)",
            gets + seeks,
            mean(put_bytes, puts),
            mean(rows, seeks)
        ),
        StepKind::RandomTransaction => format!(" ( transactions:{} aborts:{aborts})", ops + aborts),
        _ => String::new(),
    }
}

/// Prints what the engine says of `names`: one text, or a line for each number.
pub(super) fn print_properties(db: &Database, names: &[&str]) {
    let text = |name: &str| db.property(name).unwrap_or_else(|| "not available\n".to_string());
    match names {
        [name] => println!("\n{}", for_scripts(&text(name))),
        names => names.iter().for_each(|name| println!("{name}: {}", text(name).trim_end())),
    }
}

/// Writes the operations of each whole interval to `path`.
pub(super) fn write_report(path: &str, per_second: &[u64], interval: u64) -> Result<(), String> {
    let path = if path.is_empty() { "report.csv" } else { path };
    std::fs::write(path, report(per_second, interval))
        .map_err(|error| format!("--report_file={path}: {error}"))
}

/// As RocksDB's tool: the column's name says that it is a rate, but it holds the operations of the interval.
/// Source: RocksDB `tools/db_bench_tool.cc`, `ReporterAgent`.
fn report(per_second: &[u64], interval: u64) -> String {
    let mut text = String::from("secs_elapsed,interval_qps\n");
    let whole = per_second.chunks_exact(interval as usize);
    for (index, seconds) in (1..).zip(whole) {
        text.push_str(&format!("{},{}\n", index * interval, seconds.iter().sum::<u64>()));
    }
    text
}

/// The name of an operation, in the words of RocksDB's tool.
fn what(step: &Step) -> &'static str {
    match step.kind {
        StepKind::FillSeq
        | StepKind::FillRandom
        | StepKind::FillUniqueRandom
        | StepKind::Overwrite
        | StepKind::OverwriteLocked
        | StepKind::OverwriteAndWait => "write",
        StepKind::Delete | StepKind::DeleteSeq => "delete",
        StepKind::Update | StepKind::Append => "update",
        StepKind::Merge => "merge",
        StepKind::Range { .. } => "seek",
        StepKind::MixGraph | StepKind::ReadOrMerge | StepKind::RandomTransaction => "op",
        _ => "read",
    }
}

/// Response times in one line. Operations that are due are calls, of which one of multireadrandom looks up several keys.
fn open_loop(name: &str, open: &OpenLoopResult) -> String {
    let [p50, p99, p999, p9999, max] = open.percentiles;
    format!(
        "{name:<12} : response time at {:.0} ops/sec due: P50: {p50:.2} P99: {p99:.2} P99.9: {p999:.2} \
         P99.99: {p9999:.2} Max: {max:.0} micros; {} of {} started late, {} never",
        open.rate, open.late, open.served, open.unserved
    )
}

fn print_histogram(title: &str, samples: &Histogram<u64>) {
    println!("{title}");
    println!(
        "Count: {} Average: {:.4}  StdDev: {:.2}",
        samples.len(),
        samples.mean() / 1000.0,
        samples.stdev() / 1000.0
    );
    println!(
        "Min: {}  Median: {:.4}  Max: {}",
        samples.min() / 1000,
        percentile(samples, 50.0),
        samples.max() / 1000
    );
    let at = |p: f64| percentile(samples, p);
    println!(
        "Percentiles: P50: {:.2} P75: {:.2} P99: {:.2} P99.9: {:.2} P99.99: {:.2}",
        at(50.0),
        at(75.0),
        at(99.0),
        at(99.9),
        at(99.99)
    );
    println!("------------------------------------------------------");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_open_loop_the_calls_that_were_late_are_of_all_calls() {
        let open =
            OpenLoopResult { rate: 50.0, percentiles: [1.0; 5], late: 7, unserved: 2, served: 100, due: 102 };
        let line = open_loop("multireadrandom", &open);
        assert!(line.ends_with("; 7 of 100 started late, 2 never"), "{line}");
    }

    #[test]
    fn counts_are_told_in_the_words_of_rocksdbs_tool() {
        let kinds = KindCounts {
            gets: 60,
            puts: 30,
            put_bytes: 1000,
            merges: 40,
            seeks: 10,
            rows: 25,
            longest: 101,
            aborts: 3,
        };
        let result = StepResult { ops: 100, found: 50, kinds: Some(kinds), ..StepResult::nothing() };
        let of = |kind| message(kind, &result);
        assert_eq!(of(StepKind::ReadRandom), " (50 of 100 found)");
        assert_eq!(of(StepKind::ReadOrWrite), " ( reads:60 writes:30 total:100 found:50)");
        assert_eq!(of(StepKind::ReadOrMerge), " (reads:60 merges:40 total:100 hits:50 maxlength:101)");
        assert_eq!(of(StepKind::RandomTransaction), " ( transactions:103 aborts:3)");
        assert_eq!(
            of(StepKind::MixGraph),
            " ( Gets:60 Puts:30 Seek:10, reads 50 in 70 found, avg size: 33.3 value, 2.5 scan)"
        );
        let empty = message(StepKind::MixGraph, &StepResult::nothing());
        assert!(empty.ends_with("reads 0 in 0 found, avg size: 0.0 value, 0.0 scan)"), "{empty}");
        assert_eq!(of(StepKind::FillSeq), "");
    }

    #[test]
    fn a_report_has_the_operations_of_each_whole_interval() {
        assert_eq!(report(&[10, 20, 30], 1), "secs_elapsed,interval_qps\n1,10\n2,20\n3,30\n");
        // The operations of an interval, not a rate; and nothing of one that was cut short.
        assert_eq!(report(&[10, 20, 31, 40, 50], 2), "secs_elapsed,interval_qps\n2,30\n4,71\n");
        assert_eq!(report(&[10], 2), "secs_elapsed,interval_qps\n");
        let temp = std::env::temp_dir().join(format!("outcrop-report-{}", std::process::id()));
        let path = temp.to_str().unwrap();
        write_report(path, &[1], 1).unwrap();
        assert!(std::fs::read_to_string(&temp).unwrap().ends_with("1,1\n"));
        std::fs::remove_file(&temp).unwrap();
        assert!(write_report("/no/such/dir/x", &[1], 1).unwrap_err().contains("--report_file"));
    }
}
