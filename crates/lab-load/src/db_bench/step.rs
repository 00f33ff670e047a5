//! From a step's name and the flags to what it does.
//!
//! Next: `flags.rs` for the flags, `steps/mod.rs` for what the kinds of steps do.

use super::benchmarks;
use super::flags::Flags;
use crate::database::Durability;
use crate::keys::{KeyLayout, KeyPrefix};
use crate::mixgraph::MixParameters;
use crate::steps::{Arrival, Spacing};
use crate::transactions::Concurrency;
use crate::values::{Distribution, Redundancy, ValueSizes};
use crate::{Step, StepKind};

/// The step `name` of the command line; `seed` is the base of its threads' seeds.
///
/// # Errors
/// One sentence that names the flag.
pub(super) fn step_of(name: &str, flags: &Flags, seed: u64) -> Result<Step, String> {
    let reverse = flags.on("reverse_iterator");
    let (kind, while_writing) = match name {
        "fillseq" | "fillbatch" => (StepKind::FillSeq, false),
        "fillrandom" | "fillsync" => (StepKind::FillRandom, false),
        "filluniquerandom" => (StepKind::FillUniqueRandom, false),
        "overwrite" => (StepKind::Overwrite, false),
        "multireadrandom" => (StepKind::MultiRead, false),
        "mixgraph" => (StepKind::MixGraph, false),
        "randomtransaction" => (StepKind::RandomTransaction, false),
        "overwriteandwait" => (StepKind::OverwriteAndWait, false),
        "readrandom" | "readrandomsmall" => (StepKind::ReadRandom, false),
        "readmissing" => (StepKind::ReadMissing, false),
        // A sample of each row is what the histogram is asked for.
        "readseq" | "readtocache" if flags.on("histogram") => (StepKind::ReadRows, false),
        "readseq" | "readtocache" => (StepKind::ReadSeq, false),
        "readreverse" => (StepKind::ReadReverse, false),
        "newiterator" => (StepKind::NewIterator, false),
        "newiteratorwhilewriting" => (StepKind::NewIterator, true),
        "multireadwhilewriting" => (StepKind::MultiRead, true),
        "readrandomwriterandom" => (StepKind::ReadOrWrite, false),
        "verifychecksum" => (StepKind::VerifyChecksums, false),
        "seekrandom" => (StepKind::Range { reverse }, false),
        "readwhilewriting" => (StepKind::ReadRandom, true),
        "readwhilescanning" => (StepKind::ReadWhileScanning, false),
        "seekrandomwhilewriting" => (StepKind::Range { reverse }, true),
        "readwhilemerging" => (StepKind::ReadRandom, true),
        "seekrandomwhilemerging" => (StepKind::Range { reverse }, true),
        "updaterandom" => (StepKind::Update, false),
        "appendrandom" => (StepKind::Append, false),
        "mergerandom" => (StepKind::Merge, false),
        "readrandommergerandom" => (StepKind::ReadOrMerge, false),
        "deleterandom" => (StepKind::Delete, false),
        "deleteseq" => (StepKind::DeleteSeq, false),
        "compact" | "compactall" => (StepKind::Compact, false),
        "compact0" => (StepKind::Compact0, false),
        "compact1" => (StepKind::Compact1, false),
        "flush" => (StepKind::Flush, false),
        "waitforcompaction" => (StepKind::WaitForCompaction, false),
        other => return Err(benchmarks::refusal(other)),
    };
    let merging = name.contains("merg");
    if merging && flags.text("merge_operator").is_empty() {
        return Err(format!("{name} needs --merge_operator, such as put"));
    }
    let num = flags.number("num")?.max(1.0) as u64;
    let num = match flags.number("merge_keys")? {
        keys if merging && !while_writing && keys >= 1.0 => keys as u64,
        _ if name == "fillsync" => fewer(num),
        _ => num,
    };
    let batch_size = if name == "fillbatch" { 1000 } else { flags.number("batch_size")?.max(1.0) as u32 };
    let ops = operations(kind, name, flags)?.map(|ops| whole_batches(kind, ops, batch_size));
    // Of a scan of everything, the rows: as many as lookups are asked for.
    let num = if kind == StepKind::ReadSeq { rows(name, flags)? } else { num };
    let durability = match (flags.on("disable_wal"), flags.on("sync") || name == "fillsync") {
        (true, true) => return Err("--sync needs the WAL; drop --disable_wal".to_string()),
        (true, false) => Durability::NoWal,
        (false, true) => Durability::Sync,
        (false, false) => Durability::Wal,
    };
    let rate = flags.number("benchmark_write_rate_limit")? as u64;
    let threads = if name == "readtocache" { 1 } else { flags.number("threads")?.max(1.0) as u32 };
    if kind == StepKind::FillUniqueRandom && threads > 1 {
        return Err("filluniquerandom takes one thread".to_string());
    }
    let value_sizes = value_sizes(flags)?;
    let redundancy = redundancy(flags)?;
    let key_size = flags.number("key_size")?.max(1.0) as usize;
    let layout = layout(flags)?;
    layout.check(key_size)?;
    let exp_range = flags.number("read_random_exp_range")?;
    if !exp_range.is_finite() || exp_range < 0.0 {
        return Err("--read_random_exp_range must be 0 or above".to_string());
    }
    Ok(Step {
        name: name.to_string(),
        kind,
        while_writing,
        threads,
        ops,
        seconds: flags.number("duration")?,
        durability,
        seek_nexts: flags.number("seek_nexts")? as u32,
        num,
        key_size,
        layout,
        exp_range,
        value_size: match value_sizes {
            None => flags.number("value_size")?.max(0.0) as usize,
            Some(sizes) => sizes.mean(),
        },
        value_sizes,
        redundancy,
        seed,
        writer_rate: rate,
        write_rate: rate,
        writer_num: match flags.number("bgwriter_num")? {
            keys if keys > 0.0 => keys as u64,
            _ => num,
        },
        writer_merges: merging && while_writing,
        merge_operator: flags.text("merge_operator").to_string(),
        merge_percent: flags.number("mergereadpercent")?.clamp(0.0, 100.0) as u32,
        read_percent: flags.number("readwritepercent")?.clamp(0.0, 100.0) as u32,
        batch_size,
        batched: flags.on("multiread_batched"),
        arrival: arrival(flags)?,
        mix: mix(flags)?,
        transaction_sets: flags.number("transaction_sets")?.max(1.0) as u32,
        concurrency: if flags.on("optimistic_transaction_db") {
            Concurrency::Optimistic
        } else {
            Concurrency::Pessimistic
        },
        planted: 0.0,
    })
}

/// Operations of each thread; `None`: the time decides.
fn operations(kind: StepKind, name: &str, flags: &Flags) -> Result<Option<u64>, String> {
    let (reads, writes, duration) =
        (flags.number("reads")?, flags.number("writes")?, flags.number("duration")?);
    let num = flags.number("num")?.max(1.0) as u64;
    let count = |asked: f64| if asked < 0.0 { num } else { asked as u64 };
    // No writes at all are as many as there are keys, as in RocksDB's tool.
    let written = || if writes >= 1.0 { writes as u64 } else { num };
    Ok(match kind {
        StepKind::FillSeq | StepKind::FillUniqueRandom => Some(written()),
        StepKind::ReadSeq | StepKind::VerifyChecksums => Some(1),
        StepKind::ReadRows | StepKind::ReadReverse => Some(rows(name, flags)?),
        // Of RocksDB's flags deletes is missing, so num it is.
        StepKind::DeleteSeq => Some(num),
        kind if kind.is_upkeep() => Some(1),
        _ if duration > 0.0 => None,
        StepKind::Delete => Some(num),
        StepKind::FillRandom if name == "fillsync" && (0.0..1.0).contains(&writes) => Some(fewer(num)),
        StepKind::FillRandom | StepKind::Overwrite | StepKind::OverwriteAndWait => Some(written()),
        // Steps that read and write go by the larger of the two counts.
        StepKind::Update
        | StepKind::Append
        | StepKind::Merge
        | StepKind::ReadOrMerge
        | StepKind::ReadOrWrite
        | StepKind::RandomTransaction => Some(count(reads.max(writes))),
        _ if name == "readrandomsmall" => Some(count(reads) / 1000),
        _ => Some(count(reads)),
    })
}

/// The keys of fillsync, of which RocksDB's tool has fewer.
fn fewer(num: u64) -> u64 {
    (num / 1000).max(1)
}

/// Of `ops` asked for, those that are done: a batch that would go beyond them is not begun, as in RocksDB's tool.
fn whole_batches(kind: StepKind, ops: u64, batch_size: u32) -> u64 {
    let in_batches =
        kind.is_put() || matches!(kind, StepKind::Delete | StepKind::DeleteSeq | StepKind::MultiRead);
    if in_batches { ops - ops % u64::from(batch_size) } else { ops }
}

/// Rows that a scan reads at most.
fn rows(name: &str, flags: &Flags) -> Result<u64, String> {
    let (reads, num) = (flags.number("reads")?, flags.number("num")?.max(1.0) as u64);
    Ok(if reads < 0.0 || name == "readtocache" { num } else { reads as u64 })
}

/// How numbers become keys.
fn layout(flags: &Flags) -> Result<KeyLayout, String> {
    let (size, per_prefix) = (flags.number("prefix_size")?, flags.number("keys_per_prefix")?);
    let count = (flags.number("num")?.max(1.0) as u64).checked_div(per_prefix.max(0.0) as u64);
    let prefix = count.filter(|_| size >= 1.0).map(|count| KeyPrefix { size: size as usize, count });
    Ok(KeyLayout { prefix, ..KeyLayout::default() })
}

/// How far values can be compressed.
pub(super) fn redundancy(flags: &Flags) -> Result<Redundancy, String> {
    let redundancy = Redundancy {
        compression_ratio: flags.number("compression_ratio")?,
        same_percent: flags.number("same_value_percentage")?.max(0.0) as u32,
    };
    redundancy.check().map(|()| redundancy)
}

/// How sizes of values scatter, if they do.
pub(super) fn value_sizes(flags: &Flags) -> Result<Option<ValueSizes>, String> {
    let distribution = match flags.text("value_size_distribution_type") {
        "fixed" => return Ok(None),
        "uniform" => Distribution::Uniform,
        "normal" => Distribution::Normal,
        other => return Err(format!("--value_size_distribution_type={other}: use fixed, uniform or normal")),
    };
    let bytes = |name: &str| flags.number(name).map(|size| size.max(0.0) as usize);
    let sizes = ValueSizes { distribution, min: bytes("value_size_min")?, max: bytes("value_size_max")? };
    sizes.check().map(|()| Some(sizes))
}

fn arrival(flags: &Flags) -> Result<Option<Arrival>, String> {
    let rate = flags.number("arrival_rate")?;
    let spacing = match flags.text("arrival_spacing") {
        "fixed" => Spacing::Grid,
        "poisson" => Spacing::Poisson,
        other => return Err(format!("--arrival_spacing={other}: use fixed or poisson")),
    };
    if !rate.is_finite() || rate < 0.0 {
        return Err("--arrival_rate must be 0 or above".to_string());
    }
    Ok((rate > 0.0).then_some(Arrival { rate, spacing }))
}

fn mix(flags: &Flags) -> Result<MixParameters, String> {
    let number = |name: &str| flags.number(name);
    let mix = MixParameters {
        mix_get_ratio: number("mix_get_ratio")?,
        mix_put_ratio: number("mix_put_ratio")?,
        mix_seek_ratio: number("mix_seek_ratio")?,
        mix_max_scan_len: number("mix_max_scan_len")? as u64,
        mix_max_value_size: number("mix_max_value_size")? as u64,
        key_dist_a: number("key_dist_a")?,
        key_dist_b: number("key_dist_b")?,
        keyrange_dist_a: number("keyrange_dist_a")?,
        keyrange_dist_b: number("keyrange_dist_b")?,
        keyrange_dist_c: number("keyrange_dist_c")?,
        keyrange_dist_d: number("keyrange_dist_d")?,
        keyrange_num: number("keyrange_num")? as u64,
        value_theta: number("value_theta")?,
        value_k: number("value_k")?,
        value_sigma: number("value_sigma")?,
        iter_theta: number("iter_theta")?,
        iter_k: number("iter_k")?,
        iter_sigma: number("iter_sigma")?,
        sine_mix_rate: flags.on("sine_mix_rate"),
        sine_a: number("sine_a")?,
        sine_b: number("sine_b")?,
        sine_c: number("sine_c")?,
        sine_d: number("sine_d")?,
        sine_mix_rate_interval_milliseconds: number("sine_mix_rate_interval_milliseconds")? as u64,
    };
    mix.check()?;
    Ok(mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_string).collect()
    }

    #[test]
    fn flags_are_rocksdbs_and_typos_are_named() {
        let flags = Flags::parse(&arguments("--num=5 --cache_numshardbits=6 --sync=1")).unwrap();
        assert_eq!(flags.number("num").unwrap(), 5.0);
        assert!(flags.on("sync"));
        let error = Flags::parse(&arguments("--write_bufer_size=5")).err().unwrap();
        assert!(error.contains("--write_buffer_size"), "{error}");
        assert!(Flags::parse(&arguments("--new_flag=1 --undefok=new_flag,other")).is_ok());
    }

    #[test]
    fn switches_are_read_as_gflags_reads_them() {
        let on = |text: &str, name: &str| Flags::parse(&arguments(text)).map(|flags| flags.on(name));
        for word in ["1", "t", "true", "y", "yes", "True", "YES", "T"] {
            assert_eq!(on(&format!("--histogram={word}"), "histogram"), Ok(true), "{word}");
        }
        for word in ["0", "f", "false", "n", "no", "False", "NO", "F"] {
            assert_eq!(on(&format!("--progress_reports={word}"), "progress_reports"), Ok(false), "{word}");
        }
        assert_eq!(on("--histogram", "histogram"), Ok(true));
        assert_eq!(on("-nohistogram", "histogram"), Ok(false));
        // The value of a negated flag is not looked at, and the last word about a flag counts.
        assert_eq!(on("--noprogress_reports=1", "progress_reports"), Ok(false));
        assert_eq!(on("--nosync --sync", "sync"), Ok(true));
        let passed = |text: &str| {
            Flags::parse(&arguments(text)).and_then(|flags| flags.passed()).map(|options| options.text)
        };
        assert_eq!(passed("--block_align=Y").unwrap(), "block_based_table_factory={block_align=true}");
        assert_eq!(passed("--noparanoid_checks").unwrap(), "paranoid_checks=false");
        assert!(passed("--nostatistics --notransaction_db").is_ok(), "those that change nothing, too");
        assert!(passed("--nonew_flag --undefok=new_flag").is_ok());
        for (text, name, value) in [
            ("--histogram=on", "--histogram", "on"),
            ("--sync=", "--sync", "=:"),
            ("--disable_wal=2", "--disable_wal", "2"),
            ("--block_align=maybe", "--block_align", "maybe"),
        ] {
            let error = passed(text).unwrap_err();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
        assert!(passed("--nonum").unwrap_err().contains("--num is no switch"));
        assert!(passed("--nohistogramm").unwrap_err().contains("unknown flag --nohistogramm"));
        assert!(passed("--noreadonly").unwrap_err().contains("is a flag of RocksDB's db_bench"));
    }

    #[test]
    fn operation_counts_follow_num_reads_writes_and_duration() {
        let step =
            |name: &str, text: &str| step_of(name, &Flags::parse(&arguments(text)).unwrap(), 1).unwrap();
        assert_eq!(step("fillseq", "--num=7 --duration=9").ops, Some(7), "loads ignore the duration");
        assert_eq!(step("readrandom", "--num=7").ops, Some(7));
        assert_eq!(step("readrandom", "--num=7 --reads=3").ops, Some(3));
        assert_eq!(step("overwrite", "--num=7 --duration=9").ops, None);
        assert_eq!(step("fillseq", "--disable_wal=1").durability, Durability::NoWal);
        // A scan ends after so many rows, whether each has a sample or not.
        let rows = |text: &str| step("readseq", text);
        assert_eq!((rows("--num=7 --reads=3").num, rows("--num=7").num), (3, 7));
        assert_eq!(rows("--num=7 --reads=3 --histogram=1").ops, Some(3));
        assert_eq!(step("readreverse", "--num=7 --reads=3").ops, Some(3));
        assert_eq!((step("readtocache", "--num=7 --reads=3 --threads=4").num), 7);
        assert_eq!(step("fillbatch", "--num=7000").batch_size, 1000);
        // A batch is not begun that would exceed what was asked for.
        assert_eq!(step("fillbatch", "--num=7500").ops, Some(7000));
        assert_eq!(step("fillbatch", "--num=7500 --writes=100").ops, Some(0));
        assert_eq!(step("overwrite", "--num=7 --batch_size=3").ops, Some(6));
        assert_eq!(step("fillseq", "--num=7 --writes=0").ops, Some(7));
        assert_eq!(step("multireadrandom", "--num=7 --batch_size=3 --reads=5").ops, Some(3));
        assert_eq!(step("readrandom", "--num=7 --batch_size=3").ops, Some(7), "it has no batches");
        assert_eq!(step("readrandomsmall", "--num=7000").ops, Some(7));
        assert_eq!(step("readrandomwriterandom", "--num=7 --reads=3 --writes=9").ops, Some(9));
        let beside_scan = step("readwhilescanning", "--num=7 --reads=3 --threads=2");
        assert_eq!((beside_scan.ops, beside_scan.threads, beside_scan.threads_beside()), (Some(3), 2, 1));
        // It has fewer keys, not fewer writes, and ends with the time.
        let sync = |text: &str| {
            let step = step("fillsync", text);
            assert_eq!(step.durability, Durability::Sync);
            (step.num, step.ops)
        };
        assert_eq!(sync("--num=5000"), (5, Some(5000)));
        assert_eq!(sync("--num=5000 --duration=60"), (5, None));
        assert_eq!(
            (sync("--num=5000 --writes=70"), sync("--num=5000 --writes=0")),
            ((5, Some(70)), (5, Some(5)))
        );
        assert_eq!(step("randomtransaction", "--num=7 --writes=3").ops, Some(3));
        assert_eq!(step("randomtransaction", "--num=7 --writes=3 --reads=5").ops, Some(5));
    }

    #[test]
    fn deletions_are_num_in_whole_batches_whatever_is_said_of_writes() {
        let step = |text: &str| step_of("deleterandom", &Flags::parse(&arguments(text)).unwrap(), 1).unwrap();
        let deletions = step("--num=2500 --writes=100");
        assert_eq!((deletions.ops, deletions.batch_size), (Some(2500), 1));
        let deletions = step("--num=2500 --writes=100 --batch_size=1000");
        assert_eq!((deletions.ops, deletions.batch_size), (Some(2000), 1000));
        assert_eq!(step("--num=2500 --duration=3").ops, None);
    }

    #[test]
    fn merges_and_sizes_of_values_come_from_flags() {
        let step = |name: &str, text: &str| step_of(name, &Flags::parse(&arguments(text)).unwrap(), 1);
        assert!(step("mergerandom", "").unwrap_err().contains("--merge_operator"));
        let merge = step("readrandommergerandom", "--merge_operator=put --merge_keys=9 --num=50").unwrap();
        assert_eq!((merge.kind, merge.num, merge.merge_percent), (StepKind::ReadOrMerge, 9, 70));
        assert_eq!(merge.ops, Some(50));
        assert_eq!(step("mergerandom", "--merge_operator=put --reads=3 --writes=8").unwrap().ops, Some(8));
        let beside = step("readwhilemerging", "--merge_operator=put").unwrap();
        assert!(beside.while_writing && beside.writer_merges && beside.merges());
        assert!(!step("readwhilewriting", "--merge_operator=put").unwrap().merges());
        let sizes = "--value_size_distribution_type=normal --value_size_min=10 --value_size_max=30";
        let drawn = step("overwrite", sizes).unwrap();
        let normal = ValueSizes { distribution: Distribution::Normal, min: 10, max: 30 };
        assert_eq!((drawn.value_sizes, drawn.value_size), (Some(normal), 20));
        assert!(step("overwrite", "--value_size_distribution_type=pareto").is_err());
        assert!(step("overwrite", &sizes.replace("=30", "=3")).is_err());
    }

    #[test]
    fn keys_values_and_rates_come_from_flags() {
        let step = |name: &str, text: &str| step_of(name, &Flags::parse(&arguments(text)).unwrap(), 1);
        let plain = step("readrandom", "--num=1000").unwrap();
        assert_eq!((plain.layout, plain.exp_range, plain.writer_rate), (KeyLayout::default(), 0.0, 0));
        let grouped = step("readrandom", "--num=1000 --prefix_size=4 --keys_per_prefix=10").unwrap();
        assert_eq!(grouped.layout.prefix, Some(KeyPrefix { size: 4, count: 100 }));
        assert_eq!(
            step("fillseq", "--prefix_size=4").unwrap().layout.prefix,
            None,
            "it is the engine's alone"
        );
        assert!(step("fillseq", "--prefix_size=16 --keys_per_prefix=2").unwrap_err().contains("key_size"));
        assert!(step("fillseq", "--num=5 --prefix_size=4 --keys_per_prefix=10").is_err());
        assert_eq!(step("readrandom", "--read_random_exp_range=10.5").unwrap().exp_range, 10.5);
        assert!(step("readrandom", "--read_random_exp_range=-1").is_err());
        let values = step("overwrite", "--compression_ratio=0.25 --same_value_percentage=7").unwrap();
        assert_eq!(values.redundancy, Redundancy { compression_ratio: 0.25, same_percent: 7 });
        assert!(step("overwrite", "--compression_ratio=2").is_err());
        let limited = step("overwrite", "--benchmark_write_rate_limit=1000").unwrap();
        assert_eq!((limited.write_rate, limited.writer_rate), (1000, 1000));
    }

    #[test]
    fn every_benchmark_of_the_list_is_one() {
        let flags = Flags::parse(&arguments("--merge_operator=put")).unwrap();
        for (name, _) in benchmarks::BENCHMARKS {
            let is_known = !super::super::properties_of(name).is_empty() || step_of(name, &flags, 1).is_ok();
            assert!(is_known, "{name}");
        }
    }

    #[test]
    fn levels_are_compacted_one_by_one() {
        let kind =
            |name: &str| step_of(name, &Flags::parse(&[]).unwrap(), 1).map(|step| (step.kind, step.ops));
        assert_eq!(kind("compact").unwrap(), (StepKind::Compact, Some(1)));
        assert_eq!(kind("compact0").unwrap(), (StepKind::Compact0, Some(1)));
        assert_eq!(kind("compact1").unwrap(), (StepKind::Compact1, Some(1)));
        assert!(kind("compact2").is_err());
    }

    #[test]
    fn options_of_the_engine_are_passed_on() {
        let options = |text: &str| Flags::parse(&arguments(text)).unwrap().passed();
        let passed = |text: &str| options(text).map(|options| options.text);
        assert_eq!(passed("--subcompactions=1 --compaction_style=0 --open_files=-1").unwrap(), "");
        let universal = "--compaction_style=1 --universal_size_ratio=10 --subcompactions=4 \
                         --universal_allow_trivial_move=1 --disable_auto_compactions=true";
        assert_eq!(
            passed(universal).unwrap(),
            "compaction_style=kCompactionStyleUniversal;max_subcompactions=4;disable_auto_compactions=true;\
             compaction_options_universal={size_ratio=10;allow_trivial_move=true}"
        );
        assert_eq!(passed("--block_align=1").unwrap(), "block_based_table_factory={block_align=true}");
        assert!(passed("--compaction_style=9").unwrap_err().contains("0 to 2"));
        let error = Flags::parse(&arguments("--subcompaction=5")).err().unwrap();
        assert!(error.contains("--subcompactions"), "{error}");
    }

    #[test]
    fn a_default_is_said_if_it_was_given_and_the_library_knows_it() {
        let options = |text: &str| Flags::parse(&arguments(text)).unwrap().passed().unwrap();
        // RocksDB's tool sets this one always; a library by itself has another value.
        let rate = "delayed_write_rate=8388608".to_string();
        let unsaid = options("");
        assert_eq!((unsaid.text.as_str(), &unsaid.wanted), ("", &vec![rate.clone()]));
        assert_eq!(options("--delayed_write_rate=8388608").wanted, [rate]);
        let other = options("--delayed_write_rate=5");
        assert_eq!((other.text.as_str(), other.wanted.len()), ("delayed_write_rate=5", 0));
        let given = options("--bytes_per_sync=1048576 --checksum_type=4 --compaction_readahead_size=2097152");
        for said in [
            "bytes_per_sync=1048576",
            "block_based_table_factory={checksum=kXXH3}",
            "compaction_readahead_size=2097152",
        ] {
            assert!(given.wanted.iter().any(|wanted| wanted == said), "{given:?}");
        }
        assert_eq!(given.text, "");
        // These leave the option alone in RocksDB's tool.
        assert_eq!(options("--universal_size_ratio=0 --ttl_seconds= --wal_dir="), unsaid);
    }

    #[test]
    fn blobs_are_compressed_only_if_that_is_asked_for() {
        let text = |text: &str| Flags::parse(&arguments(text)).unwrap().passed().unwrap().text;
        assert_eq!(text("--blob_compression_type=snappy"), "blob_compression_type=kSnappyCompression");
        assert_eq!(text("--blob_compression_type=none"), "");
    }

    #[test]
    fn mixes_batches_and_arrivals_come_from_flags() {
        let step = |name: &str, text: &str| step_of(name, &Flags::parse(&arguments(text)).unwrap(), 1);
        let mixed = step("mixgraph", "--mix_get_ratio=0.8 --mix_put_ratio=0.2 --key_dist_b=0.5").unwrap();
        assert_eq!((mixed.mix.mix_put_ratio, mixed.mix.key_dist_b, mixed.mix.value_sigma), (0.2, 0.5, 25.45));
        assert_eq!(step("mixgraph", "--value_k=0.2615").unwrap().mix, MixParameters::default());
        assert!(step("mixgraph", "--mix_get_ratio=0").unwrap_err().contains("mix_get_ratio"));
        let many = step("multireadrandom", "--batch_size=10 --multiread_batched").unwrap();
        assert!(many.batched && many.batch_size == 10 && many.arrival.is_none());
        let open = step("readrandom", "--arrival_rate=50 --arrival_spacing=poisson").unwrap();
        assert_eq!(open.arrival, Some(Arrival { rate: 50.0, spacing: Spacing::Poisson }));
        assert!(step("readrandom", "--arrival_spacing=even").is_err());
        assert!(step("filluniquerandom", "--threads=2").is_err());
    }
}
