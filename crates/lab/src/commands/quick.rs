//! `outcrop lab quick`: an experiment made of flags, run, printed and reported at once.
//!
//! It is the standard sequence of `experiment::steps` on the engines named; the report shows the experiment as TOML,
//! so that it can be repeated and changed as a file.

use crate::analysis::results::Results;
use crate::experiment::{self, WorkloadKind};
use crate::planning::memory;
use crate::report::{show, site};
use crate::run::{self, Start};
use crate::store::Store;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Flags of `lab quick`.
#[derive(Clone, Debug, clap::Args)]
pub struct QuickArguments {
    /// Keys to load [default: from memory, at most 2000000].
    #[arg(long)]
    pub keys: Option<u64>,
    /// Seconds of each timed step.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Reading and writing threads.
    #[arg(long, default_value_t = 1)]
    pub threads: u32,
    /// Rounds; every engine runs once in each. Fewer than 5 give ratios and no verdicts.
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Engines: outcrop, NAME@VERSION of the catalogue or NAME=LIBRARY, the last being the base. The base named twice
    /// is compared with itself.
    #[arg(long, value_delimiter = ',', default_value = "outcrop,rocksdb@11.8.1")]
    pub engines: Vec<String>,
    /// Kind of data set.
    #[arg(long, value_enum, default_value = "byrx")]
    pub workload: WorkloadKind,
    /// Base of all seeds [default: the time].
    #[arg(long)]
    pub seed: Option<u64>,
    /// Directory for databases; removed afterwards.
    #[arg(long, default_value = "outcrop-lab-data")]
    pub data: PathBuf,
    /// Directory for report.html (one file), the pages that start with index.html, the tables and the record.
    #[arg(long, default_value = "outcrop-lab-report")]
    pub output: PathBuf,
    /// Leave out the base's A/A twin, which shows the noise and takes a target's share of the time.
    #[arg(long)]
    pub no_twin: bool,
    /// Print the comparison as JSON instead of tables.
    #[arg(long, conflicts_with = "classic")]
    pub json: bool,
    /// Print the 28 columns of RocksDB's scripts for each target; they are in summary.txt in any case.
    #[arg(long)]
    pub classic: bool,
}

/// Lines printed below the first page.
const BELOW: usize = 4;

/// Runs everything.
///
/// # Errors
/// One sentence that says what to do.
pub fn run(arguments: &QuickArguments) -> Result<(), String> {
    if arguments.rounds == 0 || arguments.threads == 0 || arguments.seconds <= 0.0 {
        return Err("--rounds, --threads and --seconds must be above zero".to_string());
    }
    let text = experiment_text(arguments)?;
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let experiment = experiment::parse("lab quick", &text)?;
    let plan =
        match crate::planning::plan::plan(&experiment, run::unix_seconds(), memory::total_bytes(), cores) {
            // Asked for by default and not to be had here: better half a comparison than none.
            Err(why) if arguments.engines == ["outcrop", "rocksdb@11.8.1"] && why.starts_with("the base") => {
                eprintln!("going on without rocksdb@11.8.1: {why}");
                let alone = QuickArguments { engines: vec!["outcrop".to_string()], ..arguments.clone() };
                return run(&alone);
            }
            planned => planned?,
        };
    let record = arguments.output.join("record.sqlite");
    let start = Start::New { file: "quick.toml".to_string(), text, plan: Box::new(plan) };
    let id = run::carry_out(&record, &arguments.data, Duration::from_secs(1), run::ProgressForm::Text, start)
        .map_err(|error| error.to_string())?;
    let store = Store::open_existing(&record)?;
    let page = site::write(&store, id, &arguments.output, site::Form::Full)?;
    let results = Results::load(&store, id)?;
    let base = results.experiment.plan.base;
    for (name, text) in
        [("compare.txt", show::compare(&results, base, "ops_sec")), ("summary.txt", show::summary(&results))]
    {
        let path = arguments.output.join(name);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if arguments.json {
        println!("{}", show::compare_json(&results, base, "ops_sec"));
        return Ok(());
    }
    if arguments.classic {
        print!("{}", show::summary(&results));
    } else {
        print!("{}", show::first_page(&results, base, BELOW));
    }
    let output = &arguments.output;
    println!("\nreport: {} (one file), {}", output.join("report.html").display(), page.display());
    println!("texts:  {}, {}", output.join("compare.txt").display(), output.join("summary.txt").display());
    println!("tables: {}", output.join("csv/summary.tsv").display());
    Ok(())
}

/// The experiment that the flags mean, as its file would say it.
fn experiment_text(arguments: &QuickArguments) -> Result<String, String> {
    let base = arguments.engines.last().ok_or("no engine is left to measure")?;
    let (mut targets, mut names): (String, Vec<&str>) = Default::default();
    let mut twin = !arguments.no_twin;
    let mut named_twice = false;
    for engine in &arguments.engines {
        if arguments.engines.iter().filter(|other| *other == engine).count() > 1 {
            if engine != base {
                return Err(format!("{engine} is named twice; only the base, which is named last, can be"));
            }
            if named_twice {
                continue;
            }
            (named_twice, twin) = (true, true);
        }
        let (name, keys) = if engine == "outcrop" {
            ("outcrop", "engine = \"outcrop\"".to_string())
        } else if let Some((name, path)) = engine.split_once('=') {
            (name, format!("engine = {}\nlibrary = {}", quoted(name), quoted(path)))
        } else if let Some((name, version)) = engine.split_once('@') {
            (engine.as_str(), format!("engine = {}\nversions = [{}]", quoted(name), quoted(version)))
        } else {
            return Err(format!("unknown engine {engine}; use outcrop, rocksdb@VERSION or NAME=LIBRARY"));
        };
        names.push(name);
        let _ = write!(targets, "\n[[target]]\n{keys}\n");
    }
    let optional =
        |name: &str, value: Option<u64>| value.map_or(String::new(), |value| format!("{name} = {value}\n"));
    Ok(format!(
        "title = {}\nbase = {}\n\n[workload]\nkind = {}\nseconds = {:?}\nthreads = {}\n{}\n[design]\nrounds = {}\n\
         aa = {twin}\nwarmup = false\nallow_oversubscription = true\n{}{targets}",
        quoted(&names.join(" and ")),
        quoted(base.split('=').next().unwrap_or(base)),
        quoted(arguments.workload.name()),
        arguments.seconds,
        arguments.threads,
        optional("keys", arguments.keys),
        arguments.rounds,
        optional("seed", arguments.seed),
    ))
}

/// Text as TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_string()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        quick: QuickArguments,
    }

    fn text(flags: &[&str]) -> Result<String, String> {
        experiment_text(&Flags::parse_from([&["quick"], flags].concat()).quick)
    }

    #[test]
    fn flags_become_an_experiment() {
        let alone = experiment::parse("quick", &text(&["--no-twin"]).unwrap()).unwrap();
        assert!(!alone.design.aa);
        let text = text(&["--engines=outcrop,mine=/a/\"b\".so", "--keys=5", "--workload=iodir"]).unwrap();
        let experiment = experiment::parse("quick", &text).unwrap();
        assert_eq!((experiment.base.as_deref(), experiment.workload.keys), (Some("mine"), Some(5)));
        assert_eq!(experiment.target[1].library.as_deref(), Some(std::path::Path::new("/a/\"b\".so")));
        assert!(experiment.design.aa, "the noise is shown");
    }

    #[test]
    fn the_base_named_twice_is_compared_with_itself() {
        let experiment = experiment::parse("quick", &text(&["--engines=outcrop,outcrop"]).unwrap()).unwrap();
        assert!(experiment.design.aa && experiment.target.len() == 1);
        assert!(text(&["--engines=rocksdb@1,rocksdb@1,outcrop"]).unwrap_err().contains("named twice"));
        assert!(text(&["--engines=nonsense"]).unwrap_err().contains("unknown engine"));
    }
}
