//! The binary `outcrop`: one file per verb, no logic.

mod in_process;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// An embedded key-value store that opens RocksDB databases, and the lab that measures it.
#[derive(Parser)]
#[command(name = "outcrop", version, about)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// The performance laboratory.
    #[command(subcommand)]
    Lab(Lab),
    /// One measured session, started by the lab.
    #[command(hide = true)]
    LabWorker {
        /// The session, as JSON.
        session: String,
    },
}

#[derive(Subcommand)]
enum Lab {
    /// Measures Outcrop beside RocksDB on the standard sequence and writes a report.
    Quick(outcrop_lab::quick::QuickArguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().verb {
        Verb::Lab(Lab::Quick(arguments)) => outcrop_lab::quick::run(&arguments),
        Verb::LabWorker { session } => outcrop_lab::worker::run(&session, in_process::functions()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("outcrop: {message}");
            ExitCode::FAILURE
        }
    }
}
