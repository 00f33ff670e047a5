//! The binary `outcrop`: one file per verb, no logic.

mod checkcompat;
mod in_process;
mod inspect;
mod ldb;
mod pipes;
mod sst_dump;
mod wal_dir;

use clap::{Parser, Subcommand};
use outcrop_lab::commands::Lab;
use std::process::ExitCode;

/// An embedded key-value store that opens RocksDB databases, and the lab that measures it.
#[derive(Parser)]
#[command(name = "outcrop", version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// The performance laboratory.
    #[command(subcommand)]
    Lab(Lab),
    /// RocksDB's benchmark tool, by its flags; also when this program is called db_bench.
    #[command(name = "db_bench", disable_help_flag = true)]
    DbBench {
        /// Flags of db_bench; --help lists them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },
    /// Looks into a database and changes single keys, by the verbs of RocksDB's ldb.
    Ldb(Box<ldb::LdbArguments>),
    /// Looks into table files, by the flags of RocksDB's sst_dump.
    #[command(name = "sst_dump")]
    SstDump(sst_dump::SstDumpArguments),
    /// One session of an experiment, started by the lab.
    #[command(hide = true)]
    LabSession {
        /// The assignment, as JSON.
        assignment: String,
    },
    /// A server of a session, guarded: started by the session.
    #[command(hide = true)]
    LabServer {
        /// The command to start, as JSON.
        guarded: String,
    },
}

fn main() -> ExitCode {
    let mut words = std::env::args();
    let called_as = words.next().unwrap_or_default();
    if called_as.rsplit('/').next() == Some("db_bench") {
        return finish(outcrop_lab_load::db_bench::run(&words.collect::<Vec<_>>(), in_process::functions()));
    }
    let verb = match Arguments::try_parse() {
        Ok(arguments) => arguments.verb,
        Err(error) => match ldb::advice_for(std::env::args()).filter(|_| error.use_stderr()) {
            Some(advice) => return finish(Err(advice)),
            None => error.exit(),
        },
    };
    if only_looks(&verb) {
        pipes::end_with_the_reader();
    }
    finish(match verb {
        Verb::DbBench { flags } => outcrop_lab_load::db_bench::run(&flags, in_process::functions()),
        Verb::Ldb(arguments) => match ldb::run(&arguments) {
            Ok(code) => return code,
            Err(message) => Err(message),
        },
        Verb::SstDump(arguments) => sst_dump::run(&arguments),
        Verb::Lab(verb) => match outcrop_lab::commands::run(&verb) {
            Ok(code) => return code,
            Err(message) => Err(message),
        },
        Verb::LabSession { assignment } => outcrop_lab::run::child::run(&assignment, in_process::functions()),
        Verb::LabServer { guarded } => outcrop_lab::targets::servers::guard::run(&guarded),
    })
}

/// False if there is something to end or to remove after what it prints: processes, databases.
fn only_looks(verb: &Verb) -> bool {
    match verb {
        Verb::DbBench { .. } | Verb::LabSession { .. } | Verb::LabServer { .. } => false,
        Verb::Lab(Lab::Run { .. } | Lab::Quick(_) | Lab::Profile { .. } | Lab::Fio { .. }) => false,
        Verb::Lab(Lab::Crosscheck(_)) => false,
        Verb::Lab(_) | Verb::Ldb(_) | Verb::SstDump(_) => true,
    }
}

/// Success, or the message on standard error.
fn finish(outcome: Result<(), String>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("outcrop: {message}");
            ExitCode::FAILURE
        }
    }
}
