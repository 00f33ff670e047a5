//! The ping-pong harness as a program; `cargo xtask pingpong` builds it and knows the libraries.

use clap::{Args, Parser, Subcommand};
use outcrop_pingpong::campaign::{self, Campaign};
use outcrop_pingpong::case::Case;
use outcrop_pingpong::compatibility::{self, Compatibility, Trying};
use outcrop_pingpong::known::Known;
use outcrop_pingpong::run::{Pool, play};
use outcrop_pingpong::scratch::Scratch;
use outcrop_pingpong::tools::{self, Looking};
use outcrop_pingpong::{calls, expiry, extremes, fixtures, kills, power, stress, timestamps, worker};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

#[derive(Parser)]
#[command(about = "Outcrop and real RocksDB versions take turns on one database directory")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Plays random cases; exit status 1 if one fails, or if fewer are played than wanted.
    Run {
        #[command(flatten)]
        engines: EngineArgs,
        /// How long, in seconds; with --cases, the time in which they must be over.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Seed of the first case; drawn and printed if it is not given.
        #[arg(long)]
        seed: Option<u64>,
        /// So many cases, of seeds from 1 on, come first: the same each time.
        #[arg(long, default_value_t = 0)]
        fixed: u64,
        /// So many cases, instead of as many as fit into the time.
        #[arg(long)]
        cases: Option<u64>,
        /// So many swaps there must be.
        #[arg(long, default_value_t = 0)]
        swaps: u64,
        /// Cases at the same time.
        #[arg(long, default_value_t = 2)]
        jobs: usize,
        /// Ends after so many failures.
        #[arg(long, default_value_t = 1)]
        failures: usize,
        /// Time to shrink a failing case, in seconds.
        #[arg(long, default_value_t = 60)]
        shrink_seconds: u64,
        /// Where failing cases are written.
        #[arg(long, default_value = "pingpong-failures")]
        out: PathBuf,
    },
    /// Plays the case of a file; exit status 1 if it fails.
    Replay {
        #[command(flatten)]
        engines: EngineArgs,
        /// The file.
        file: PathBuf,
        /// How often.
        #[arg(long, default_value_t = 1)]
        times: u32,
        /// Leave the databases here.
        #[arg(long)]
        keep: Option<PathBuf>,
    },
    /// Makes small databases of every engine given, one per feature, with the rows they hold.
    Fixtures {
        #[command(flatten)]
        engines: EngineArgs,
        /// Where.
        #[arg(long)]
        out: PathBuf,
    },
    /// Finds out feature by feature who reads whose files, and writes the table of it.
    Compatibility {
        #[command(flatten)]
        engines: EngineArgs,
        /// The binary `outcrop`.
        #[arg(long)]
        outcrop: PathBuf,
        /// The document.
        #[arg(long)]
        document: PathBuf,
        /// The file of what trials showed of the versions.
        #[arg(long)]
        known: PathBuf,
        /// Write nothing, but fail if the document is another. Takes the file as it is.
        #[arg(long)]
        check: bool,
    },
    /// Lets RocksDB's own `ldb` and `sst_dump` look at Outcrop's databases.
    Tools {
        /// Outcrop's shared library.
        #[arg(long)]
        library: PathBuf,
        /// The binary `outcrop`.
        #[arg(long)]
        outcrop: PathBuf,
        /// The version of the tools.
        #[arg(long)]
        version: String,
    },
    /// Gives every option extreme values, on Outcrop and on one RocksDB; exit status 1 if they differ, or Outcrop hangs.
    Options {
        #[command(flatten)]
        engines: EngineArgs,
        /// How long random cases are drawn, in seconds.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// So many random cases, instead of as many as fit into the time.
        #[arg(long)]
        cases: Option<u64>,
        /// Seed of the first random case; drawn and printed if it is not given.
        #[arg(long)]
        seed: Option<u64>,
        /// No cases but random ones.
        #[arg(long)]
        random_only: bool,
        /// One case of these settings, `name=value`, and no other.
        #[arg(long = "set")]
        settings: Vec<String>,
    },
    /// Does the same calls on Outcrop and on one RocksDB; exit status 1 if what they say differs by a letter.
    Calls {
        #[command(flatten)]
        engines: EngineArgs,
        /// How long cases are drawn, in seconds.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// So many cases, instead of as many as fit into the time.
        #[arg(long)]
        cases: Option<u64>,
        /// Seed of the first case; drawn and printed if it is not given.
        #[arg(long)]
        seed: Option<u64>,
        /// So many cases, of seeds from 1 on, come first: the same each time.
        #[arg(long, default_value_t = 0)]
        fixed: u64,
        /// Prints each call before it is made.
        #[arg(long)]
        trace: bool,
    },
    /// Hands databases with user-defined timestamps over; exit status 1 if a version is not as it must be.
    Timestamps {
        #[command(flatten)]
        engines: EngineArgs,
        /// How long cases are drawn, in seconds.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// So many cases, instead of as many as fit into the time.
        #[arg(long)]
        cases: Option<u64>,
        /// Seed of the first case; drawn and printed if it is not given.
        #[arg(long)]
        seed: Option<u64>,
        /// So many cases, of seeds from 1 on, come first: the same each time.
        #[arg(long, default_value_t = 0)]
        fixed: u64,
    },
    /// Hands databases whose values expire over; exit status 1 if a row is not there or not gone as it must be.
    Expiry {
        #[command(flatten)]
        engines: EngineArgs,
        /// How long, in seconds.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// So many databases, all at the same time, instead of as many as fit into the time.
        #[arg(long)]
        cases: Option<u64>,
        /// Seed of the first database; drawn and printed if it is not given.
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Kills writers, and opens what they leave by Outcrop and by one RocksDB; exit status 1 if something is lost.
    Kills {
        #[command(flatten)]
        engines: EngineArgs,
        /// Where databases are, and what is left of one that fails.
        #[arg(long)]
        dir: PathBuf,
        /// How long, in seconds.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// So many directories, instead of as many as fit into the time.
        #[arg(long)]
        histories: Option<u64>,
        /// Seed of the first directory; drawn and printed if it is not given.
        #[arg(long)]
        seed: Option<u64>,
        /// Kills of each directory.
        #[arg(long, default_value_t = 12)]
        cycles: u64,
    },
    /// Cuts off the power of real file systems, and opens what they leave by Outcrop and by one RocksDB; exit status 1 if something is
    /// lost. Mounts, so it belongs in a mount namespace of its own.
    BlockCrashes {
        #[command(flatten)]
        engines: EngineArgs,
        /// Where the disk of a state that fails is kept.
        #[arg(long)]
        dir: PathBuf,
        /// How long, in seconds.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// So many histories, instead of as many as fit into the time.
        #[arg(long)]
        histories: Option<u64>,
        /// Seed of the first history; drawn and printed if it is not given.
        #[arg(long)]
        seed: Option<u64>,
        /// States of each cycle of a history; 0: two of every prefix of the disk's log.
        #[arg(long, default_value_t = 16)]
        states: u64,
        /// Plants a fault, which has to be found: the disk ignores the last flushes before the power goes.
        #[arg(long)]
        ignore_flushes: bool,
    },
    /// Lets many threads do everything at once to databases of Outcrop, and of one RocksDB as a control; exit status 1 if a read
    /// shows two moments, something fails or grows.
    Stress {
        #[command(flatten)]
        engines: EngineArgs,
        /// How long, in seconds.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// So many processes, instead of as many as fit into the time.
        #[arg(long)]
        processes: Option<u64>,
        /// The first seed; drawn and printed if it is not given.
        #[arg(long)]
        seed: Option<u64>,
    },
    /// The process of one seed of the stress.
    #[command(hide = true)]
    StressWorker {
        /// Its shared library.
        #[arg(long)]
        library: PathBuf,
        /// An empty directory.
        #[arg(long)]
        dir: PathBuf,
        /// The seed.
        #[arg(long)]
        seed: u64,
        /// Openings.
        #[arg(long)]
        cycles: u64,
    },
    /// The process that writes on a file system whose disk is recorded.
    #[command(hide = true)]
    PowerWriter {
        /// Its shared library.
        #[arg(long)]
        library: PathBuf,
        /// The file system.
        #[arg(long)]
        dir: PathBuf,
        /// The file that says what was done.
        #[arg(long)]
        marks: PathBuf,
    },
    /// The process that writes until it is killed.
    #[command(hide = true)]
    KillWriter {
        /// Its shared library.
        #[arg(long)]
        library: PathBuf,
        /// The database.
        #[arg(long)]
        dir: PathBuf,
    },
    /// The child process of one engine that is given options.
    #[command(hide = true)]
    OptionsWorker {
        /// Its shared library.
        #[arg(long)]
        library: PathBuf,
    },
    /// The child process of one engine.
    #[command(hide = true)]
    Worker {
        /// Its shared library.
        #[arg(long)]
        library: PathBuf,
    },
}

#[derive(Args)]
struct EngineArgs {
    /// An engine: NAME=PATH of a shared library with RocksDB's C API. The one under test is called `outcrop`.
    #[arg(long = "library", value_name = "NAME=PATH", required = true, value_parser = name_and_path)]
    libraries: Vec<(String, PathBuf)>,
}

fn name_and_path(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) = text.split_once('=').ok_or("not NAME=PATH")?;
    Ok((name.to_string(), PathBuf::from(path)))
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().verb {
        Verb::Worker { library } => worker::serve(&library).map(|()| true),
        Verb::OptionsWorker { library } => extremes::serve(&library).map(|()| true),
        Verb::KillWriter { library, dir } => kills::serve(&library, &dir).map(|()| true),
        Verb::StressWorker { library, dir, seed, cycles } => {
            stress::serve(&library, &dir, seed, cycles).map(|()| true)
        }
        Verb::Stress { engines, seconds, processes, seed } => program().and_then(|program| {
            let seed = seed.unwrap_or_else(fresh_seed);
            eprintln!("stress: from seed {seed} on");
            stress::run(&stress::Campaign {
                program,
                libraries: engines.libraries.into_iter().collect(),
                scratch: std::env::temp_dir(),
                seed,
                processes,
                time: Duration::from_secs(seconds),
            })
        }),
        Verb::PowerWriter { library, dir, marks } => power::serve(&library, &dir, &marks).map(|()| true),
        Verb::BlockCrashes { engines, dir, seconds, histories, seed, states, ignore_flushes } => program()
            .and_then(|program| {
                let seed = seed.unwrap_or_else(fresh_seed);
                eprintln!("block-crashes: from seed {seed} on");
                power::run(&power::Campaign {
                    program,
                    libraries: engines.libraries.into_iter().collect(),
                    dir,
                    scratch: std::env::temp_dir(),
                    seed,
                    histories,
                    time: Duration::from_secs(seconds),
                    states,
                    ignore_flushes,
                })
            }),
        Verb::Kills { engines, dir, seconds, histories, seed, cycles } => program().and_then(|program| {
            let seed = seed.unwrap_or_else(fresh_seed);
            eprintln!("kills: from seed {seed} on");
            kills::run(&kills::Campaign {
                program,
                libraries: engines.libraries.into_iter().collect(),
                dir,
                seed,
                histories,
                time: Duration::from_secs(seconds),
                cycles,
            })
        }),
        Verb::Options { engines, seconds, cases, seed, random_only, settings } => {
            program().and_then(|program| {
                let seed = seed.unwrap_or_else(fresh_seed);
                eprintln!("options: random cases from seed {seed} on");
                extremes::run(&extremes::Campaign {
                    program,
                    libraries: engines.libraries.into_iter().collect(),
                    scratch: std::env::temp_dir(),
                    seed,
                    cases,
                    time: Duration::from_secs(seconds),
                    singles: !random_only,
                    only: settings,
                })
            })
        }
        Verb::Calls { engines, seconds, cases, seed, fixed, trace } => {
            let seed = seed.unwrap_or_else(fresh_seed);
            eprintln!("calls: cases from seed {seed} on");
            calls::run(&calls::Campaign {
                libraries: engines.libraries.into_iter().collect(),
                scratch: std::env::temp_dir(),
                seed,
                cases,
                time: Duration::from_secs(seconds),
                fixed,
                trace,
            })
        }
        Verb::Timestamps { engines, seconds, cases, seed, fixed } => program().and_then(|program| {
            let seed = seed.unwrap_or_else(fresh_seed);
            eprintln!("timestamps: cases from seed {seed} on");
            timestamps::run(&timestamps::Campaign {
                program,
                libraries: engines.libraries.into_iter().collect(),
                scratch: std::env::temp_dir(),
                seed,
                cases,
                time: Duration::from_secs(seconds),
                fixed,
            })
        }),
        Verb::Expiry { engines, seconds, cases, seed } => program().and_then(|program| {
            let seed = seed.unwrap_or_else(fresh_seed);
            eprintln!("expiry: cases from seed {seed} on");
            expiry::run(&expiry::Campaign {
                program,
                libraries: engines.libraries.into_iter().collect(),
                scratch: std::env::temp_dir(),
                seed,
                cases,
                time: Duration::from_secs(seconds),
            })
        }),
        Verb::Replay { engines, file, times, keep } => replay(engines, &file, times, keep.as_deref()),
        Verb::Compatibility { engines, outcrop, document, known, check } => program().and_then(|program| {
            let libraries = engines.libraries.into_iter().collect();
            compatible(&Trying { program, libraries, outcrop }, &document, &known, check)
        }),
        Verb::Tools { library, outcrop, version } => program().and_then(|program| {
            let looked_at = tools::run(&Looking { program, library, outcrop, version: version.clone() })?;
            eprintln!(
                "tools: RocksDB {version}'s ldb and sst_dump find {looked_at} databases of Outcrop in order"
            );
            Ok(looked_at > 0)
        }),
        Verb::Fixtures { engines, out } => program().and_then(|program| {
            let made = fixtures::make(&program, &engines.libraries.into_iter().collect(), &out)?;
            eprintln!("{made} databases in {}", out.display());
            Ok(true)
        }),
        Verb::Run { engines, seconds, seed, fixed, cases, swaps, jobs, failures, shrink_seconds, out } => {
            program().and_then(|program| {
                campaign::run(&Campaign {
                    program,
                    libraries: engines.libraries.into_iter().collect(),
                    scratch: std::env::temp_dir(),
                    out,
                    fixed,
                    seed: seed.unwrap_or_else(fresh_seed),
                    time: Duration::from_secs(seconds),
                    cases,
                    swaps,
                    jobs: jobs.max(1),
                    failures,
                    shrinking: Duration::from_secs(shrink_seconds),
                })
            })
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("pingpong: {message}");
            ExitCode::from(2)
        }
    }
}

fn program() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))
}

/// Makes the document and the file of the versions, or compares the document with the one that is there.
fn compatible(trying: &Trying, document: &Path, known: &Path, check: bool) -> Result<bool, String> {
    let named = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let versions = if check { Known::of_program()? } else { compatibility::of_versions(trying)? };
    let made = compatibility::run(trying, versions.engines(&trying.libraries)?.as_ref())?;
    if check {
        let committed = std::fs::read_to_string(document).map_err(|error| named(document, error))?;
        let difference = compatibility::first_difference(&committed, &made.text);
        if let Some(lines) = &difference {
            eprintln!("{} is not what trials give; cargo xtask compatibility\n{lines}", document.display());
        }
        return Ok(found_nothing(&made) && difference.is_none());
    }
    std::fs::write(known, versions.print()).map_err(|error| named(known, error))?;
    std::fs::write(document, &made.text).map_err(|error| named(document, error))?;
    Ok(found_nothing(&made))
}

fn found_nothing(made: &Compatibility) -> bool {
    for finding in &made.findings {
        eprintln!("compatibility: {finding}");
    }
    made.findings.is_empty()
}

/// Different each time, small enough to type.
fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    now.as_micros() as u64 % 1_000_000_000
}

fn replay(engines: EngineArgs, file: &Path, times: u32, keep: Option<&Path>) -> Result<bool, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let case = Case::parse(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    let libraries: BTreeMap<String, PathBuf> = engines.libraries.into_iter().collect();
    let mut pool = Pool::new(&program()?, &libraries);
    let scratch = Scratch::new(&std::env::temp_dir(), "replay")?;
    let dir = keep.map_or_else(|| scratch.path().join("replay"), Path::to_path_buf);
    for round in 1..=times {
        let _ = std::fs::remove_dir_all(&dir);
        match play(&case, &mut pool, &dir) {
            Ok(tally) => eprintln!("round {round}: passes, {} swaps", tally.swaps),
            Err(failure) => {
                eprintln!("round {round}: {failure}");
                return Ok(false);
            }
        }
    }
    Ok(true)
}
