//! A Kafka Streams application on a cluster of Kafka's own on loopback, on our library and on the jar's: `kafka/Instance.java`
//! is the application, `kafka/Drill.java` starts, kills and checks it.

use super::project;
use super::side::Side;
use crate::java::place::Place;
use crate::java::runs::check_library;
use crate::sources::make_dir;
use crate::{java, programs};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

const SOURCES: [(&str, &str); 2] = [
    ("Instance.java", include_str!("kafka/Instance.java")),
    ("Drill.java", include_str!("kafka/Drill.java")),
];
/// When a run counts as hanging. It takes a minute or two on an idle machine with two processors.
const LIMIT_SECONDS: u32 = 900;

/// Three brokers and three instances, one of which is killed; on each library.
///
/// # Errors
/// What differs from what must come out, and where the logs are.
pub fn drill() -> Result<(), String> {
    let app = App::build()?;
    for side in [Side::Outcrop, Side::RocksDb] {
        let result = app.run(side, "drill", 1000, 300)?;
        println!(
            "kafka-app on {}: {} words counted once each, {} records joined, {} tasks taken over by their standbys, {} records restored",
            side.name(),
            result["counted"],
            result["joined"],
            result["taken_over"],
            result["restored"]
        );
    }
    Ok(())
}

/// One broker and one instance: how fast it counts, and restores its state; on each library in turn, `runs` times each. Prints
/// all figures as JSON, and a table of their medians.
///
/// # Errors
/// As for [`drill`].
pub fn measure(runs: usize, lines: u32) -> Result<(), String> {
    let app = App::build()?;
    let mut results = Vec::new();
    for run in 0..runs {
        // The order changes: what one leaves behind is not always the other's.
        let sides = [Side::Outcrop, Side::RocksDb];
        for side in [sides[run % 2], sides[(run + 1) % 2]] {
            let mut result = app.run(side, "measure", lines, 20_000)?;
            result["side"] = json!(side.name());
            eprintln!("xtask: {result}");
            results.push(result);
        }
    }
    let median = |side: Side, field: &str| {
        let own = results.iter().filter(|result| result["side"] == side.name());
        let mut values: Vec<f64> = own.filter_map(|result| result[field].as_f64()).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!("{}", json!({ "lines": lines, "runs": results }));
    println!("\n| median of {runs} | Outcrop | RocksDB | Outcrop : RocksDB |\n|---|---|---|---|");
    for (name, field) in
        [("counts per second", "counts_per_second"), ("records restored per second", "restored_per_second")]
    {
        let (ours, theirs) = (median(Side::Outcrop, field), median(Side::RocksDb, field));
        println!("| {name} | {ours:.0} | {theirs:.0} | {:.2} |", ours / theirs);
    }
    Ok(())
}

/// The compiled application.
struct App {
    dir: std::path::PathBuf,
    class_path: String,
}

impl App {
    fn build() -> Result<App, String> {
        let dir = programs::target_dir().join("streams/kafka-app");
        let class_path = project::build(&dir, include_str!("kafka/app.xml"), &SOURCES, &[])?;
        let natives = dir.join("natives");
        make_dir(&natives)?;
        let library = programs::built(java::LIBRARY)?;
        std::fs::copy(&library, natives.join(java::LIBRARY))
            .map_err(|error| format!("{}: {error}", library.display()))?;
        Ok(App { dir, class_path })
    }

    /// The result of a run, whose files go unless it fails.
    fn run(&self, side: Side, what: &str, lines: u32, words: u32) -> Result<Value, String> {
        let place = Place::make(&format!("kafka-{}", side.name()), &self.dir)?;
        let result = self.run_in(place.path(), side, what, lines, words);
        if result.is_err() {
            place.keep();
        }
        result
    }

    fn run_in(&self, place: &Path, side: Side, what: &str, lines: u32, words: u32) -> Result<Value, String> {
        let natives = self.dir.join("natives");
        // Always said: by itself a JVM takes the path of cargo's programs.
        let nothing = place.join("no-natives");
        make_dir(&nothing)?;
        let log = place.join("drill.log");
        let file = std::fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let output = Command::new("timeout")
            .args(["--signal=KILL", &LIMIT_SECONDS.to_string(), "java", "-Xmx1g", "-XX:+UseSerialGC"])
            .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
            .args(["-cp", &self.class_path, "Drill", what])
            .arg(place)
            .arg(side.natives(&natives).unwrap_or(&nothing))
            .args([lines.to_string(), words.to_string()])
            .stderr(file)
            .output()
            .map_err(|error| format!("timeout: {error}"))?;
        let failed = |why: String| {
            format!("kafka-app on {}: {why}; its files are in {}", side.name(), place.display())
        };
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let result = said
            .lines()
            .find_map(|line| line.strip_prefix("@result "))
            .filter(|_| output.status.success())
            .ok_or_else(|| failed(last_words(&log)))?;
        let result: Value = serde_json::from_str(result).map_err(|error| failed(error.to_string()))?;
        let mapped = result["library"].as_str().unwrap_or_default();
        check_library(mapped, side.natives(&natives)).map_err(failed)?;
        Ok(result)
    }
}

/// The exception that the drill ended with, or that it was killed.
fn last_words(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let exception = text.lines().rev().find(|line| line.contains("Exception: ") && !line.starts_with('\t'));
    exception.map_or_else(|| format!("no result within {LIMIT_SECONDS} s"), ToString::to_string)
}
