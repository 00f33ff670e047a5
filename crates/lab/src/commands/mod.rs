//! The verbs of `outcrop lab`.
//!
//! Exit codes: 0 done, and for `compare` nothing got worse; 1 error; 2 a regression; 3 something is unknown.

pub mod crosscheck;
mod crosscheck_sql;
pub mod fio;
pub mod quick;
pub mod servers;

use crate::analysis::noise::NoiseModel;
use crate::analysis::results::Results;
use crate::analysis::view::View;
use crate::import::Output;
use crate::planning::scale;
use crate::report::{classic, show, site};
use crate::store::Store;
use crate::targets::{adapters, build, engines};
use crate::{host, import, run};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where the record is, for every verb that reads or writes it.
#[derive(Clone, Debug, clap::Args)]
pub struct StorePath {
    /// File of the record.
    #[arg(long = "store", default_value = "outcrop-lab.sqlite")]
    pub path: PathBuf,
}

/// A verb.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Lab {
    /// Measures Outcrop beside RocksDB on the standard sequence and writes a report.
    Quick(quick::QuickArguments),
    /// Runs an experiment and records everything.
    Run {
        /// The record.
        #[command(flatten)]
        store: StorePath,
        /// The experiment to run, and the place for its data.
        #[command(flatten)]
        arguments: run::RunArguments,
    },
    /// Shows what an experiment would run, how long, and what it could see.
    Plan {
        /// The record, for what is known of this machine's noise; there need be none.
        #[command(flatten)]
        store: StorePath,
        /// The experiment's file.
        file: PathBuf,
        /// Another size than the file says.
        #[command(flatten)]
        scale: scale::Scale,
        /// Print the plan as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Lists recorded experiments.
    List {
        /// The record.
        #[command(flatten)]
        store: StorePath,
        /// Print them as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Shows one experiment: targets, sessions, host, remarks.
    Show {
        /// The record.
        #[command(flatten)]
        store: StorePath,
        /// Number of the experiment.
        id: i64,
        /// Print it as JSON, with every measurement.
        #[arg(long)]
        json: bool,
    },
    /// Prints what a target's engine wrote into its log during a session.
    Log {
        /// The record.
        #[command(flatten)]
        store: StorePath,
        /// Number of the experiment.
        id: i64,
        /// Name of the target.
        target: String,
        /// Number of the block, from 1 [default: the last that has a log].
        #[arg(long)]
        block: Option<i64>,
    },
    /// Compares the targets of an experiment; exits with 2 on a regression, 3 if something is unknown.
    Compare {
        /// The record.
        #[command(flatten)]
        store: StorePath,
        /// Number of the experiment.
        id: i64,
        /// Target to divide by [default: the experiment's].
        #[arg(long)]
        base: Option<String>,
        /// Which targets.
        #[command(flatten)]
        view: View,
        /// The metric to compare.
        #[arg(long, default_value = "ops_sec")]
        metric: String,
        /// Print the table as JSON.
        #[arg(long)]
        json: bool,
        /// Print the same ratios in the form and colours of the posts, without verdicts; exits with 0.
        #[arg(long, conflicts_with = "json")]
        classic: bool,
    },
    /// Says which costs moved with the speed of a step.
    Explain {
        /// The record.
        #[command(flatten)]
        store: StorePath,
        /// Number of the experiment.
        id: i64,
        /// Name of the step.
        step: String,
        /// Name of the target.
        target: String,
        /// Target to compare with [default: the experiment's base].
        #[arg(long)]
        base: Option<String>,
        /// Print it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Samples where processor time goes, in a short run of an experiment's steps; explain and report then show it.
    Profile {
        /// The record.
        #[command(flatten)]
        store: StorePath,
        /// The experiment to sample.
        #[command(flatten)]
        arguments: run::profile::ProfileArguments,
    },
    /// Writes a static site of an experiment.
    Report {
        /// The record.
        #[command(flatten)]
        store: StorePath,
        /// Number of the experiment.
        id: i64,
        /// Directory to write to.
        #[arg(short, long)]
        output: PathBuf,
        /// Which targets.
        #[command(flatten)]
        view: View,
        /// One page in the form of the posts: their ratios, colours and costs.
        #[arg(long)]
        classic: bool,
        /// Numbers of imported experiments, with commas between: a page of theirs beside one's own where the step is the same.
        #[arg(long, value_delimiter = ',', conflicts_with = "classic")]
        beside: Vec<i64>,
    },
    /// Shows how this machine is set up for measuring.
    Host {
        /// Where databases would be.
        #[arg(long, default_value = ".")]
        data: PathBuf,
        /// Print it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Measures what the device gives to bare random reads, and how close an experiment came.
    Fio {
        /// The record.
        #[command(flatten)]
        store: StorePath,
        /// The file to read.
        #[command(flatten)]
        arguments: fio::FioArguments,
    },
    /// Compares this load generator with RocksDB's db_bench on one library.
    Crosscheck(crosscheck::CrosscheckArguments),
    /// Reads published result files, naming every repair; keeps them in the record if asked to.
    Import {
        /// The record.
        #[command(flatten)]
        store: StorePath,
        /// The files to read, and the use to make of them.
        #[command(flatten)]
        arguments: import::ImportArguments,
    },
    /// Lists or fetches engines.
    #[command(subcommand)]
    Engines(Engines),
    /// Lists or fetches SQL servers.
    #[command(subcommand)]
    Servers(servers::Servers),
}

/// Commands for engines.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Engines {
    /// Lists the catalogue: what is here, and what each library can do.
    List {
        /// Print it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Fetches engines, each NAME@VERSION, any release of RocksDB that Maven has; all of the catalogue if none is named.
    Fetch {
        /// Engines.
        names: Vec<String>,
    },
    /// Makes an engine's library from sources, with a compiler and flags of your choice; prints its path.
    Build(build::BuildArguments),
    /// Compiles the adapter for an engine that has an API of its own; the result is given by library = "PATH".
    Adapt(adapters::AdaptArguments),
}

/// Does what a verb says.
///
/// # Errors
/// One sentence that says what to do.
pub fn run(verb: &Lab) -> Result<ExitCode, String> {
    match verb {
        Lab::Quick(arguments) => quick::run(arguments)?,
        Lab::Run { store, arguments } => {
            let id = run::run(&store.path, arguments)?;
            let results = Results::load(&Store::open_existing(&store.path)?, id)?;
            print!("{}", show::compare(&results, results.experiment.plan.base, "ops_sec"));
            println!("\noutcrop lab report {id} -o DIRECTORY  writes the pages");
        }
        Lab::Plan { store, file, scale, json } => {
            let (plan, _) = run::plan_file(file, scale)?;
            let noise = noise_here(&store.path)?;
            print_or_json(*json, &plan, || show::plan(&plan, &noise));
        }
        Lab::List { store, json } => list(store, *json)?,
        Lab::Show { store, id, json } => {
            let results = load(store, *id)?;
            let all = (&results.experiment, &results.sessions, &results.measured, &results.events);
            print_or_json(*json, &all, || show::show(&results));
        }
        Lab::Log { store, id, target, block } => {
            let db = Store::open_existing(&store.path)?;
            let results = Results::load(&db, *id)?;
            print!("{}", show::engine_log(&db, &results, results.target(target)?, *block)?);
        }
        Lab::Compare { store, id, base, view, metric, json, classic } => {
            let form = if *json {
                Form::Json
            } else if *classic {
                Form::Classic
            } else {
                Form::Text
            };
            return compare(store, *id, base.as_deref(), view, metric, form);
        }
        Lab::Explain { store, id, step, target, base, json } => {
            let results = load(store, *id)?;
            let step = results.step(step)?;
            let target = results.target(target)?;
            let base = base_of(&results, base.as_deref())?;
            if *json {
                println!("{}", show::explain_json(&results, step, target, base));
            } else {
                print!("{}", show::explain(&results, step, target, base));
            }
        }
        Lab::Profile { store, arguments } => run::profile::run(&store.path, arguments)?,
        Lab::Report { store, id, output, view, classic, beside } => {
            let db = Store::open_existing(&store.path)?;
            let form = if *classic { site::Form::Classic } else { site::Form::Full };
            let page = if view.is_all() && beside.is_empty() {
                site::write(&db, *id, output, form)?
            } else if view.is_all() {
                site::write_beside(&db, *id, output, form, beside)?
            } else {
                let results = Results::load(&db, *id)?;
                let base = results.experiment.plan.base;
                site::write_view(&db, &view.of(results, base)?, output, form, beside)?
            };
            println!("{}", page.display());
        }
        Lab::Host { data, json } => {
            let host = host::Host::read(data);
            print_or_json(*json, &host, || host.text());
        }
        Lab::Import { store, arguments } => import::run_command(&store.path, arguments)?,
        Lab::Crosscheck(arguments) => crosscheck::run(arguments)?,
        Lab::Fio { store, arguments } => fio::run(&store.path, arguments)?,
        Lab::Servers(verb) => servers::run(verb)?,
        Lab::Engines(Engines::List { json }) => {
            let listed = engines::list();
            print_or_json(*json, &listed, || engines::text(&listed));
        }
        Lab::Engines(Engines::Build(arguments)) => {
            let made = build::run(arguments)?;
            eprintln!("{}", made.recipe.words());
            println!("{}", made.library.display());
        }
        Lab::Engines(Engines::Adapt(arguments)) => println!("{}", adapters::build(arguments)?.display()),
        Lab::Engines(Engines::Fetch { names }) => {
            engines::fetch(names)?.iter().for_each(|(name, path)| println!("{name}  {}", path.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print_or_json<T: serde::Serialize>(json: bool, value: &T, text: impl FnOnce() -> String) {
    if json {
        println!("{}", serde_json::to_string_pretty(value).expect("plain data serialises"));
    } else {
        print!("{}", text());
    }
}

fn load(store: &StorePath, id: i64) -> Result<Results, String> {
    Ok(Results::load(&Store::open_existing(&store.path)?, id)?)
}

/// The noise of this machine by the record at `path`; none without a record.
fn noise_here(path: &Path) -> Result<NoiseModel, String> {
    if !path.exists() {
        return Ok(NoiseModel::default());
    }
    let machine = host::Facts::read(&host::facts::Root::default(), Path::new("."));
    Ok(NoiseModel::load(&Store::open(path)?, &machine.id, None)?)
}

fn base_of(results: &Results, name: Option<&str>) -> Result<usize, String> {
    name.map_or(Ok(results.experiment.plan.base), |name| results.target(name))
}

fn list(store: &StorePath, json: bool) -> Result<(), String> {
    let db = Store::open_existing(&store.path)?;
    if !json {
        print!("{}", show::list(&db)?);
        return Ok(());
    }
    let experiments: Result<Vec<_>, _> = db.experiments()?.into_iter().map(|id| db.experiment(id)).collect();
    println!("{}", serde_json::to_string_pretty(&experiments?).expect("plain data serialises"));
    Ok(())
}

/// How a comparison is printed.
enum Form {
    Text,
    Json,
    Classic,
}

fn compare(
    store: &StorePath,
    id: i64,
    base: Option<&str>,
    view: &View,
    metric: &str,
    form: Form,
) -> Result<ExitCode, String> {
    if crate::probe::derive::metric(metric).is_none() {
        let known: Vec<&str> = crate::probe::derive::METRICS.iter().map(|row| row.name).collect();
        return Err(format!("there is no metric {metric}; there are {}", known.join(", ")));
    }
    let results = load(store, id)?;
    let named = base_of(&results, base)?;
    let results = view.of(results, named)?;
    // It may have another number in the view.
    let base = base_of(&results, base)?;
    match form {
        Form::Json => println!("{}", show::compare_json(&results, base, metric)),
        Form::Text => print!("{}", show::compare(&results, base, metric)),
        Form::Classic => {
            let colours = std::io::stdout().is_terminal();
            print!("{}", classic::relative(&results, base, metric, Output::Text, colours)?);
            return Ok(ExitCode::SUCCESS);
        }
    }
    Ok(ExitCode::from(show::exit_code(&results, base, metric)))
}
