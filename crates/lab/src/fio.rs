//! `outcrop lab fio`: what the device gives to a program that does nothing but read, and how close engines come.
//!
//! ```text
//! fio: random reads with O_DIRECT, one at a time per job  ->  reads/s, latency, processor time per read
//! record: device reads/s and processor time of a step     ->  efficiency, predicted reads/s, time unexplained
//! ```
//! The file is written in full before it is read: devices answer reads of what was never written without looking.
//! Next: `outcrop_lab_stats::io_efficiency` for the model.

use crate::results::Results;
use crate::store::Store;
use crate::text::align;
use outcrop_lab_stats::io_efficiency::{ReadCost, io_efficiency};
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
    /// An experiment to hold against it, by number.
    #[arg(long)]
    pub experiment: Option<i64>,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// What fio measured with a number of readers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Baseline {
    /// Readers.
    pub jobs: u32,
    /// Reads and their processor time.
    pub cost: ReadCost,
    /// Mean time of a read, microseconds.
    pub latency_micros: f64,
}

/// A step of an experiment beside the baseline with as many readers.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Name of the step.
    pub step: String,
    /// Name of the target.
    pub target: String,
    /// Reads of the device and their processor time.
    pub cost: ReadCost,
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
    let measured: Result<Vec<Baseline>, String> = fill(arguments, &file)
        .and_then(|()| arguments.jobs.iter().map(|jobs| read(arguments, &file, *jobs)).collect());
    let _ = std::fs::remove_file(&file);
    if created {
        // Fails, as it should, if somebody else put something there.
        let _ = std::fs::remove_dir(&arguments.data);
    }
    let baselines = measured?;
    let comparisons = results.as_ref().map_or(Ok(Vec::new()), |results| compare(results, &baselines))?;
    if arguments.json {
        let all = (&baselines, &comparisons);
        println!("{}", serde_json::to_string_pretty(&all).expect("plain data serialises"));
    } else {
        print!("{}", text(&baselines, &comparisons));
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

/// Reads fio's JSON. Processor time is of the measured part, like the reads: the ramp is in neither.
fn parse(json: &str, jobs: u32) -> Result<Baseline, String> {
    // Warnings may stand before it.
    let start = json.find('{').ok_or("fio printed no JSON")?;
    let value: serde_json::Value =
        serde_json::from_str(&json[start..]).map_err(|error| format!("fio's JSON: {error}"))?;
    let job = &value["jobs"][0];
    let number = |value: &serde_json::Value, name: &str| {
        value.as_f64().ok_or_else(|| format!("fio's JSON has no {name}"))
    };
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
            found.push(Comparison {
                step: planned.step.name.clone(),
                target: name.to_string(),
                cost,
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
    let mut text = align(&rows);
    if comparisons.is_empty() {
        return text;
    }
    let mut rows =
        vec![words(&["step, target", "reads/s", "io.eff", "us.inc", "cpu.inc", "predicted", "rest.us"])];
    for comparison in comparisons {
        let found = &comparison.efficiency;
        rows.push(vec![
            format!("{}, {}", comparison.step, comparison.target),
            format!("{:.0}", comparison.cost.reads_per_second),
            format!("{:.3}", found.efficiency),
            format!("{:.3}", found.user_increase_micros),
            format!("{:.3}", found.cpu_increase_micros),
            format!("{:.0}", found.predicted_reads_per_second),
            format!("{:.1}{}", found.residual_micros, if found.unexplained { "!" } else { "" }),
        ]);
    }
    text.push('\n');
    text.push_str(&align(&rows));
    text + "\nrest.us: time of a read beyond the device's and the added processor time; !: unexplained\n"
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
        let cost = ReadCost { reads_per_second: 8350.0, user_micros: 11.6, system_micros: 7.6 };
        let efficiency = io_efficiency(&cost, &baseline.cost, baseline.latency_micros, 1).unwrap();
        let comparison =
            Comparison { step: "readrandom".into(), target: "rocksdb@11.8.1".into(), cost, efficiency };
        let text = text(&[baseline], &[comparison]);
        assert!(text.contains("0.845") && text.contains('!'), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 90), "{text}");
    }
}
