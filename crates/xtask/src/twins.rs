//! Live experiments of a library against itself, for the test that counts false calls: `crates/lab/tests/fixtures/aa/live.tsv`.
//!
//! ```text
//! cargo xtask twins [--experiments N] [--seconds S] [--keys N] [--data DIR]
//!     N times: outcrop lab run (the base and its A/A twin, by steps and in slices, balanced)  ->  six pairs of each step
//! ```
//! It needs a machine on which nothing else works, and takes two to three minutes for each experiment at the usual size. `--data` is
//! where the databases are: in memory (`/dev/shm/..`), where the disk is shared with other machines. The result of a
//! busy machine does not become the fixture: pairs of a step that scatter so much would hide false calls.

use crate::programs;
use crate::{cargo, root};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The steps: a load, reads in slices, reads beside a writer, writes.
const STEPS: [&str; 4] = ["fillseq", "readrandom", "readwhilewriting", "overwrite"];
/// Blocks of an experiment.
const ROUNDS: usize = 6;
/// Scatter of the pairs of a step, as root mean square of their log ratios, from which on the machine was not quiet.
const QUIET: f64 = 0.1;

/// The size of the recording.
struct Size {
    experiments: usize,
    seconds: f64,
    keys: u64,
    /// Where the databases are, unless beside the record.
    data: Option<PathBuf>,
}

/// Throughput of the base and its twin in one block of a step.
struct Pair {
    experiment: usize,
    step: String,
    block: i64,
    base: f64,
    twin: f64,
}

/// See the module.
pub fn run(arguments: &[&str]) -> Result<(), String> {
    let mut size = Size { experiments: 20, seconds: 3.0, keys: 500_000, data: None };
    for pair in arguments.chunks(2) {
        let [flag, value] = pair else { return Err(format!("{} takes a value", pair[0])) };
        if *flag == "--data" {
            let path = std::path::absolute(value).map_err(|error| format!("--data {value}: {error}"))?;
            size.data = Some(path);
            continue;
        }
        let number: f64 = value.parse().map_err(|_| format!("{flag} {value}: not a number"))?;
        match *flag {
            "--experiments" => size.experiments = number as usize,
            "--seconds" => size.seconds = number,
            "--keys" => size.keys = number as u64,
            _ => {
                return Err(format!(
                    "unknown flag {flag}; there are --experiments, --seconds, --keys, --data"
                ));
            }
        }
    }
    cargo(&["build", "--quiet", "--release", "-p", "outcrop-cli"], None)?;
    let target = programs::target_dir();
    let (dir, program) = (target.join("twins"), target.join("release/outcrop"));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut pairs = Vec::new();
    for experiment in 0..size.experiments {
        pairs.extend(one(&dir, &program, &size, experiment)?);
        eprintln!("experiment {} of {}", experiment + 1, size.experiments);
    }
    let write = |path: &Path| {
        std::fs::write(path, table(&pairs, &size)).map_err(|error| format!("{}: {error}", path.display()))
    };
    // An hour of measuring is worth a look, whatever becomes of it.
    let all = dir.join("live.tsv");
    write(&all)?;
    let mut loud = Vec::new();
    for (step, rms) in scatter(&pairs) {
        println!("{step}: pairs scatter by {:.1} %", rms * 100.0);
        if rms >= QUIET {
            loud.push(step);
        }
    }
    if !loud.is_empty() {
        let (loud, all) = (loud.join(", "), all.display());
        return Err(format!("the machine was not quiet, the fixture stays: {loud}; the pairs are in {all}"));
    }
    write(&root().join("crates/lab/tests/fixtures/aa/live.tsv"))
}

/// One experiment and its pairs.
fn one(dir: &Path, program: &Path, size: &Size, number: usize) -> Result<Vec<Pair>, String> {
    let (file, store) = (dir.join("twins.toml"), dir.join("record.sqlite"));
    let data = size.data.clone().unwrap_or_else(|| dir.join("data"));
    let _ = std::fs::remove_file(&store);
    std::fs::write(&file, experiment(size, number))
        .map_err(|error| format!("{}: {error}", file.display()))?;
    let lab = |words: &[&str]| {
        let output =
            Command::new(program).arg("lab").args(words).arg("--store").arg(&store).current_dir(dir).output();
        let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
        match output.status.success() || words[0] == "compare" {
            true => Ok(output.stdout),
            false => Err(format!("lab {}: {}", words[0], String::from_utf8_lossy(&output.stderr))),
        }
    };
    lab(&["run", &file.to_string_lossy(), "--data", &data.to_string_lossy()])?;
    let shown: serde_json::Value = serde_json::from_slice(&lab(&["show", "1", "--json"])?)
        .map_err(|error| format!("lab show: {error}"))?;
    let rows: Vec<&serde_json::Value> = shown[2].as_array().into_iter().flatten().collect();
    let speed = |row: &serde_json::Value| row["metrics"]["ops_sec"].as_f64().filter(|speed| *speed > 0.0);
    let mut pairs = Vec::new();
    for base in rows.iter().filter(|row| row["target"] == 0) {
        let is_twin = |row: &&&serde_json::Value| {
            row["target"] == 1 && row["block"] == base["block"] && row["name"] == base["name"]
        };
        let twin = rows.iter().find(is_twin).and_then(|row| speed(row));
        let (Some(base_speed), Some(twin)) = (speed(base), twin) else {
            return Err(format!("a pair of {} has no throughput", base["name"]));
        };
        pairs.push(Pair {
            experiment: number,
            step: base["name"].as_str().unwrap_or_default().to_string(),
            block: base["block"].as_i64().unwrap_or_default(),
            base: base_speed,
            twin,
        });
    }
    match pairs.len() == STEPS.len() * ROUNDS {
        true => Ok(pairs),
        false => Err(format!("{} pairs, and {} were asked for", pairs.len(), STEPS.len() * ROUNDS)),
    }
}

/// The experiment: one target and its twin.
fn experiment(size: &Size, number: usize) -> String {
    let steps = STEPS.map(|step| format!("'{step}'")).join(", ");
    format!(
        "title = 'Twins'\nsteps = [{steps}]\n[workload]\nkind = 'byrx'\nkeys = {}\nseconds = {:?}\nthreads = 1\n[design]\n\
         rounds = {ROUNDS}\nseed = {}\naa = true\nwarmup = false\nallow_oversubscription = true\n[[target]]\nengine = 'outcrop'\n",
        size.keys,
        size.seconds,
        number + 1
    )
}

/// Root mean square of the log ratios of each step.
fn scatter(pairs: &[Pair]) -> BTreeMap<&str, f64> {
    let mut logs = BTreeMap::<&str, Vec<f64>>::new();
    for pair in pairs {
        logs.entry(&pair.step).or_default().push((pair.twin / pair.base).ln());
    }
    let rms = |logs: Vec<f64>| (logs.iter().map(|log| log * log).sum::<f64>() / logs.len() as f64).sqrt();
    logs.into_iter().map(|(step, logs)| (step, rms(logs))).collect()
}

/// The fixture: how it was made, the names of the columns, a line for each pair.
fn table(pairs: &[Pair], size: &Size) -> String {
    let mut text = format!(
        "# cargo xtask twins --experiments {} --seconds {:?} --keys {}\nexperiment\tstep\tblock\tbase\ttwin\n",
        size.experiments, size.seconds, size.keys
    );
    for Pair { experiment, step, block, base, twin } in pairs {
        let _ = writeln!(text, "{experiment}\t{step}\t{block}\t{base:.1}\t{twin:.1}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_scatter_about_equality_and_not_about_their_mean() {
        let pair = |step: &str, base: f64, twin: f64| Pair {
            experiment: 0,
            step: step.to_string(),
            block: 0,
            base,
            twin,
        };
        let pairs = [pair("a", 100.0, 110.0), pair("a", 100.0, 110.0), pair("b", 5.0, 5.0)];
        let found = scatter(&pairs);
        assert!((found["a"] - 1.1_f64.ln()).abs() < 1e-12 && found["b"] == 0.0, "{found:?}");
        let size = Size { experiments: 1, seconds: 1.0, keys: 9, data: None };
        assert_eq!(
            table(&pairs[2..], &size),
            "# cargo xtask twins --experiments 1 --seconds 1.0 --keys 9\nexperiment\tstep\tblock\tbase\ttwin\n\
             0\tb\t0\t5.0\t5.0\n"
        );
        assert!(
            experiment(&size, 4).contains("seconds = 1.0\n") && experiment(&size, 4).contains("seed = 5\n")
        );
    }
}
