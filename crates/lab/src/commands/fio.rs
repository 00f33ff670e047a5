//! `outcrop lab fio`: the rate that the device gives to a program that does nothing but read, and how close engines come.
//!
//! ```text
//! fio: random reads with O_DIRECT, one at a time per job  ->  reads/s, latency, processor time per read
//! record: device reads/s and processor time of a step     ->  efficiency, predicted reads/s, time unexplained
//! fio: writes with and without a sync after each          ->  writes/s, MB/s, latency of a sync
//! ```
//! The file is written in full before it is read: devices answer reads of what was never written without looking.
//! Next: `outcrop_lab_stats::io_efficiency` for the model.

use crate::analysis::results::Results;
use crate::report::text::align;
use crate::store::Store;
use outcrop_lab_stats::io_efficiency::{ReadCost, classic_efficiency_text, io_efficiency};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Flags of `lab fio`.
#[derive(Clone, Debug, clap::Args)]
pub struct FioArguments {
    /// Directory on the file system to measure; the file is removed afterwards.
    #[arg(long, default_value = "outcrop-lab-fio")]
    pub data: PathBuf,
    /// Megabytes of the file; more than the device's own cache.
    #[arg(long, default_value_t = 4096)]
    pub megabytes: u64,
    /// Seconds for each number of jobs.
    #[arg(long, default_value_t = 60)]
    pub seconds: u32,
    /// Bytes of a read.
    #[arg(long, default_value_t = 8192)]
    pub block_size: u32,
    /// Readers at once.
    #[arg(long, value_delimiter = ',', default_value = "1,6")]
    pub jobs: Vec<u32>,
    /// Measure writes of 16 KiB and 2 MiB too: without syncs, with fdatasync and with fsync after each.
    #[arg(long)]
    pub writes: bool,
    /// An experiment to hold against it, by number.
    #[arg(long)]
    pub experiment: Option<i64>,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// The figures that fio measured with a number of readers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Baseline {
    /// Readers.
    pub jobs: u32,
    /// Reads and their processor time.
    pub cost: ReadCost,
    /// Mean time of a read, microseconds.
    pub latency_micros: f64,
}

/// The figures that fio measured of writes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Writes {
    /// Bytes of a write.
    pub bytes: u32,
    /// `none`, `fdatasync` or `fsync`, after each.
    pub sync: &'static str,
    /// Writes per second.
    pub writes_per_second: f64,
    /// Bytes per second, in MB of 2^20.
    pub megabytes_per_second: f64,
    /// Mean time of a sync, microseconds; 0 without syncs.
    pub sync_micros: f64,
}

/// A step of an experiment beside the baseline with as many readers.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Name of the step.
    pub step: String,
    /// Name of the target.
    pub target: String,
    /// Operations per second.
    pub operations_per_second: f64,
    /// Reads of the device and their processor time.
    pub cost: ReadCost,
    /// KB of a device read.
    pub request_kilobytes: f64,
    /// Mean time of an operation by the load generator, microseconds.
    pub operation_micros: f64,
    /// Mean time of a read by the device's counters, microseconds.
    pub device_micros: f64,
    /// How it compares.
    pub efficiency: outcrop_lab_stats::io_efficiency::IoEfficiency,
}

/// Measures and prints.
///
/// # Errors
/// If fio is missing or fails, or the experiment cannot be read.
pub fn run(store: &Path, arguments: &FioArguments) -> Result<(), String> {
    let results = match arguments.experiment {
        Some(id) => Some(Results::load(&Store::open_existing(store)?, id)?),
        None => None,
    };
    let created = !arguments.data.exists();
    std::fs::create_dir_all(&arguments.data)
        .map_err(|error| format!("{}: {error}", arguments.data.display()))?;
    let file = arguments.data.join("outcrop-lab-fio.file");
    let measured = fill(arguments, &file).and_then(|()| {
        let reads = arguments.jobs.iter().map(|jobs| read(arguments, &file, *jobs));
        let reads: Vec<Baseline> = reads.collect::<Result<_, String>>()?;
        Ok((reads, if arguments.writes { all_writes(arguments, &file)? } else { Vec::new() }))
    });
    let _ = std::fs::remove_file(&file);
    if created {
        // Fails, as it should, if somebody else put something there.
        let _ = std::fs::remove_dir(&arguments.data);
    }
    let (baselines, writes) = measured?;
    let comparisons = results.as_ref().map_or(Ok(Vec::new()), |results| compare(results, &baselines))?;
    if arguments.json {
        let all = (&baselines, &comparisons, &writes);
        println!("{}", serde_json::to_string_pretty(&all).expect("plain data serialises"));
    } else {
        print!("{}{}", text(&baselines, &comparisons), writes_text(&writes));
    }
    Ok(())
}

fn fio(arguments: &[String]) -> Result<String, String> {
    let output =
        Command::new("fio").args(arguments).stdin(Stdio::null()).output().map_err(|error| {
            format!("cannot run fio ({error}); install it, on Debian: apt-get install fio")
        })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    let reason = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message");
    Err(format!("fio failed ({}): {reason}", output.status))
}

/// Arguments of every job.
fn common(arguments: &FioArguments, file: &Path, rw: &str) -> Vec<String> {
    vec![
        "--name=outcrop".to_string(),
        format!("--filename={}", file.display()),
        format!("--size={}m", arguments.megabytes),
        format!("--rw={rw}"),
        "--ioengine=psync".to_string(),
        "--direct=1".to_string(),
        "--output-format=json".to_string(),
    ]
}

/// Writes the whole file.
fn fill(arguments: &FioArguments, file: &Path) -> Result<(), String> {
    eprintln!("writing {} MB to {}", arguments.megabytes, file.display());
    let mut words = common(arguments, file, "write");
    words.extend(["--bs=1m".to_string(), "--end_fsync=1".to_string()]);
    fio(&words).map(|_| ())
}

fn read(arguments: &FioArguments, file: &Path, jobs: u32) -> Result<Baseline, String> {
    eprintln!("reading with {jobs} job(s) for {} s", arguments.seconds);
    let mut words = common(arguments, file, "randread");
    words.extend([
        format!("--bs={}", arguments.block_size),
        format!("--numjobs={jobs}"),
        "--randrepeat=0".to_string(),
        "--time_based=1".to_string(),
        format!("--runtime={}", arguments.seconds),
        "--ramp_time=1".to_string(),
        "--group_reporting=1".to_string(),
    ]);
    parse(&fio(&words)?, jobs)
}

/// Every size of write with every kind of sync.
fn all_writes(arguments: &FioArguments, file: &Path) -> Result<Vec<Writes>, String> {
    let mut all = Vec::new();
    for bytes in [16 << 10, 2 << 20] {
        for sync in ["none", "fdatasync", "fsync"] {
            eprintln!("writing {} KB at a time, sync: {sync}, for {} s", bytes >> 10, arguments.seconds);
            let mut words = common(arguments, file, "write");
            // Through the page cache, as logs are written.
            words.retain(|word| word != "--direct=1");
            words.extend([
                format!("--bs={bytes}"),
                "--time_based=1".to_string(),
                format!("--runtime={}", arguments.seconds),
            ]);
            if sync != "none" {
                words.push(format!("--{sync}=1"));
            }
            all.push(parse_writes(&fio(&words)?, bytes, sync)?);
        }
    }
    Ok(all)
}

/// The first job of fio's JSON, before which warnings may stand.
fn first_job(json: &str) -> Result<serde_json::Value, String> {
    let start = json.find('{').ok_or("fio printed no JSON")?;
    let value: serde_json::Value =
        serde_json::from_str(&json[start..]).map_err(|error| format!("fio's JSON: {error}"))?;
    Ok(value["jobs"][0].clone())
}

fn number(value: &serde_json::Value, name: &str) -> Result<f64, String> {
    value.as_f64().ok_or_else(|| format!("fio's JSON has no {name}"))
}

fn parse_writes(json: &str, bytes: u32, sync: &'static str) -> Result<Writes, String> {
    let job = first_job(json)?;
    let syncs =
        if sync == "none" { 0.0 } else { number(&job["sync"]["lat_ns"]["mean"], "sync.lat_ns.mean")? };
    Ok(Writes {
        bytes,
        sync,
        writes_per_second: number(&job["write"]["iops"], "write.iops")?,
        megabytes_per_second: number(&job["write"]["bw_bytes"], "write.bw_bytes")? / f64::from(1 << 20),
        sync_micros: syncs / 1e3,
    })
}

/// Reads fio's JSON. Processor time is of the measured part, like the reads: the ramp is in neither.
fn parse(json: &str, jobs: u32) -> Result<Baseline, String> {
    let job = &first_job(json)?;
    let reads = number(&job["read"]["total_ios"], "read.total_ios")?;
    let seconds = number(&job["read"]["runtime"], "read.runtime")? / 1e3;
    // Percent of one processor, averaged over the jobs of the group.
    let cpu = |name: &str| Ok::<f64, String>(number(&job[name], name)? / 100.0 * seconds * f64::from(jobs));
    let cost = ReadCost::from_totals(seconds, reads, cpu("usr_cpu")?, cpu("sys_cpu")?);
    Ok(Baseline {
        jobs,
        cost: cost.map_err(|error| format!("fio's numbers: {error}"))?,
        latency_micros: number(&job["read"]["lat_ns"]["mean"], "read.lat_ns.mean")? / 1e3,
    })
}

/// Steps of the experiment that read the device, beside the baseline with as many readers.
fn compare(results: &Results, baselines: &[Baseline]) -> Result<Vec<Comparison>, String> {
    /// Device reads per operation from which a step is about reading.
    const READS: f64 = 0.1;
    let mut found = Vec::new();
    for planned in results.experiment.plan.steps.iter().filter(|planned| planned.only_reads()) {
        let Some(baseline) = baselines.iter().find(|baseline| baseline.jobs == planned.step.threads) else {
            continue;
        };
        for (target, name) in results.target_names().into_iter().enumerate() {
            let rows = || results.rows(&planned.step.name, target);
            let total = |of: &dyn Fn(&crate::store::StepRow) -> f64| rows().map(of).sum::<f64>();
            let reads = total(&|row| row.metrics.get("r/o").copied().unwrap_or(0.0) * row.result.ops as f64);
            if reads <= READS * total(&|row| row.result.ops as f64) || reads == 0.0 {
                continue;
            }
            let cost = ReadCost::from_totals(
                total(&|row| row.result.seconds),
                reads,
                total(&|row| row.result.usage.user_seconds),
                total(&|row| row.result.usage.system_seconds),
            );
            let efficiency = cost.and_then(|cost| {
                Ok((cost, io_efficiency(&cost, &baseline.cost, baseline.latency_micros, baseline.jobs)?))
            });
            let (cost, efficiency) =
                efficiency.map_err(|error| format!("{}, {name}: {error}", planned.step.name))?;
            let median =
                |metric: &str| results.median(&planned.step.name, target, metric).unwrap_or(f64::NAN);
            found.push(Comparison {
                step: planned.step.name.clone(),
                target: name.to_string(),
                operations_per_second: median("ops_sec"),
                cost,
                request_kilobytes: median("rKB/o") / median("r/o"),
                operation_micros: median("usec_op"),
                device_micros: median("read_await") * 1e3,
                efficiency,
            });
        }
    }
    Ok(found)
}

fn text(baselines: &[Baseline], comparisons: &[Comparison]) -> String {
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut rows = vec![words(&["jobs", "reads/s", "usPer", "syPer", "cpuPer", "lat.us"])];
    for baseline in baselines {
        rows.push(vec![
            baseline.jobs.to_string(),
            format!("{:.0}", baseline.cost.reads_per_second),
            format!("{:.3}", baseline.cost.user_micros),
            format!("{:.3}", baseline.cost.system_micros),
            format!("{:.3}", baseline.cost.cpu_micros()),
            format!("{:.2}", baseline.latency_micros),
        ]);
    }
    let text = align(&rows);
    if comparisons.is_empty() {
        return text;
    }
    // In the columns of the published tables, in two parts that fit a terminal.
    let mut observed =
        vec![words(&["", "qps", "iops", "reqsz", "usPer", "syPer", "cpuPer", "op.lat", "io.lat"])];
    let mut compared = vec![words(&["", "io.eff", "us.inc", "cpu.inc", "predicted", "rest.us"])];
    let mut names = String::new();
    for (index, comparison) in comparisons.iter().enumerate() {
        let (found, cost) = (&comparison.efficiency, &comparison.cost);
        let number = (index + 1).to_string();
        names.push_str(&format!("{number:>2} : {}, {}\n", comparison.step, comparison.target));
        observed.push(vec![
            number.clone(),
            format!("{:.0}", comparison.operations_per_second),
            format!("{:.0}", cost.reads_per_second),
            format!("{:.1}", comparison.request_kilobytes),
            format!("{:.3}", cost.user_micros),
            format!("{:.3}", cost.system_micros),
            format!("{:.3}", cost.cpu_micros()),
            format!("{:.2}", comparison.operation_micros),
            format!("{:.0}", comparison.device_micros),
        ]);
        compared.push(vec![
            number,
            classic_efficiency_text(found.efficiency),
            format!("{:.3}", found.user_increase_micros),
            format!("{:.3}", found.cpu_increase_micros),
            format!("{:.0}", found.predicted_reads_per_second),
            format!("{:.1}{}", found.residual_micros, if found.unexplained { "!" } else { "" }),
        ]);
    }
    format!(
        "{text}\n{names}\n{}\n{}\n\
         reqsz: KB of a device read; op.lat, io.lat: us of an operation, of a device read\n\
         rest.us: time of a read that device and processor do not explain; !: beyond 5 %\n",
        align(&observed),
        align(&compared)
    )
}

fn writes_text(writes: &[Writes]) -> String {
    if writes.is_empty() {
        return String::new();
    }
    let mut rows = vec![["sync, KB", "w/s", "MB/s", "sync_us"].map(str::to_string).to_vec()];
    rows.extend(writes.iter().map(|writes| {
        vec![
            format!("{}, {}", writes.sync, writes.bytes >> 10),
            format!("{:.0}", writes.writes_per_second),
            format!("{:.1}", writes.megabytes_per_second),
            if writes.sync == "none" { "-".to_string() } else { format!("{:.1}", writes.sync_micros) },
        ]
    }));
    format!("\n{}", align(&rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "fio: a warning\n{\"jobs\":[{\"usr_cpu\":1.5,\"sys_cpu\":10.0,\"read\":{\"total_ios\":98840,\
        \"runtime\":10000,\"lat_ns\":{\"mean\":101610.0}}}]}";

    #[test]
    fn fios_numbers_become_costs_of_a_read() {
        let one = parse(OUTPUT, 1).unwrap();
        assert_eq!((one.cost.reads_per_second, one.latency_micros), (9884.0, 101.61));
        assert!((one.cost.cpu_micros() - 1e6 * 1.15 / 98840.0).abs() < 1e-9);
        let six = parse(OUTPUT, 6).unwrap();
        assert!((six.cost.cpu_micros() - 6.0 * one.cost.cpu_micros()).abs() < 1e-9, "percent of each job");
        assert!(parse("{}", 1).unwrap_err().contains("total_ios"));
        assert!(parse("nothing", 1).is_err());
    }

    #[test]
    fn the_table_fits_a_terminal_and_marks_what_is_unexplained() {
        let baseline = parse(OUTPUT, 1).unwrap();
        // The first row of the published table; its efficiency is cut off, not rounded.
        let cost = ReadCost { reads_per_second: 8350.0, user_micros: 11.643, system_micros: 7.602 };
        let efficiency = io_efficiency(&cost, &baseline.cost, baseline.latency_micros, 1).unwrap();
        let comparison = Comparison {
            step: "readrandom".into(),
            target: "rocksdb@11.8.1".into(),
            operations_per_second: 8282.0,
            cost,
            request_kilobytes: 8.5,
            operation_micros: 120.74,
            device_micros: 101.0,
            efficiency,
        };
        let text = text(&[baseline], &[comparison]);
        assert!(text.contains("0.844") && text.contains('!'), "{text}");
        let row = ["1", "8282", "8350", "8.5", "11.643", "7.602", "19.245", "120.74", "101"];
        assert!(text.lines().any(|line| line.split_whitespace().eq(row)), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn writes_have_a_rate_and_synced_ones_a_latency() {
        let json = "{\"jobs\":[{\"write\":{\"iops\":1000.5,\"bw_bytes\":16393216},\"sync\":{\"lat_ns\":{\"mean\":150250.0}}}]}";
        let synced = parse_writes(json, 16384, "fdatasync").unwrap();
        assert_eq!((synced.writes_per_second, synced.sync_micros), (1000.5, 150.25));
        assert!((synced.megabytes_per_second - 15.63).abs() < 0.01);
        let plain = parse_writes(json, 16384, "none").unwrap();
        assert_eq!(plain.sync_micros, 0.0);
        let text = writes_text(&[plain, synced]);
        assert!(text.contains("fdatasync, 16  1000  15.6    150.2") && text.contains(" -\n"), "{text}");
        assert!(parse_writes("{\"jobs\":[{}]}", 1, "fsync").is_err() && writes_text(&[]).is_empty());
    }
}
