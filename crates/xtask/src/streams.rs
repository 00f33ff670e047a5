//! The two programs that RocksDB's largest group of users runs it in, Kafka Streams and Flink, as they are, on our library.
//!
//! ```text
//! cargo xtask streams kafka-tests [--only X]   the tests that Kafka Streams publishes of its stores
//! cargo xtask streams flink-tests [--only X]   those of Flink's state backend
//! cargo xtask streams flink-job                a job whose task managers and process are killed, restored by the other library
//! cargo xtask streams kafka-app                three instances on three brokers, one killed: exact counts, restored state
//! cargo xtask streams stream-state [--runs N] [--lines N]
//!                                              how fast one instance counts and restores, on both libraries in turn
//! ```
//! Maven's own client fetches what pom.xml of each names; the JVM finds our library on `java.library.path`. The library is the
//! debug build, unless `OUTCROP_PROGRAMS` names a directory that has another: measure a release build.

mod flink_job;
mod kafka_app;
mod project;
mod side;
mod tests;

use tests::Which;

/// See the module.
///
/// # Errors
/// What differs from RocksDB, or could not be fetched.
pub fn run(arguments: &[&str]) -> Result<(), String> {
    match arguments {
        ["kafka-tests"] => tests::run(&tests::KAFKA, Which::All),
        ["kafka-tests", "--only", class] => tests::run(&tests::KAFKA, Which::Named(class)),
        ["flink-tests"] => tests::run(&tests::FLINK, Which::All),
        ["flink-tests", "--only", class] => tests::run(&tests::FLINK, Which::Named(class)),
        ["flink-job"] => flink_job::run(),
        ["kafka-app"] => kafka_app::drill(),
        ["stream-state", rest @ ..] => stream_state(rest),
        _ => Err(format!("usage: cargo xtask {USAGE}")),
    }
}

/// How to call it.
pub const USAGE: &str = "streams kafka-tests [--only CLASS] | flink-tests [--only CLASS] | flink-job | kafka-app | stream-state [--runs N] [--lines N]";

fn stream_state(arguments: &[&str]) -> Result<(), String> {
    let (mut runs, mut lines) = (3, 20_000);
    for pair in arguments.chunks(2) {
        let number = |text: &&str| text.parse::<u32>().ok().filter(|number| *number > 0);
        match (pair[0], pair.get(1).and_then(number)) {
            ("--runs", Some(number)) => runs = number,
            ("--lines", Some(number)) => lines = number,
            _ => return Err(format!("usage: cargo xtask {USAGE}")),
        }
    }
    kafka_app::measure(runs as usize, lines)
}

/// The part for each change: a few classes of tests of each.
///
/// # Errors
/// As for [`run`].
pub fn short() -> Result<(), String> {
    tests::run(&tests::KAFKA, Which::Few)?;
    tests::run(&tests::FLINK, Which::Few)
}
