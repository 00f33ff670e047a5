//! Measures calls through RocksJava, on our library and on RocksDB's own: JMH on the same jar, in forks that take turns.
//!
//! Each round runs every benchmark once in a JVM of each library, in the other order than the round before. A ratio is of one
//! round, so that what the machine does to both is in neither; the table has the median of the rounds and the least and the most.

use crate::cargo;
use crate::java::place::Place;
use crate::programs;
use crate::sources::make_dir;
use outcrop_lab::targets::maven;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = include_str!("Bench.java");
const JAR: &str = "org.rocksdb:rocksdbjni:11.8.1";
const TOOLS: [&str; 4] = [
    "org.openjdk.jmh:jmh-core:1.37",
    "org.openjdk.jmh:jmh-generator-annprocess:1.37",
    "net.sf.jopt-simple:jopt-simple:5.0.4",
    "org.apache.commons:commons-math3:3.6.1",
];
const ROUNDS: usize = 3;
/// Seconds to warm up and to measure, in as many iterations.
const WARM_UP: &str = "2";
const MEASURED: &str = "3";

/// Nanoseconds for a call, by benchmark.
type Times = BTreeMap<String, f64>;

/// Prints the table, and writes `bench.json` below the target directory.
///
/// # Errors
/// What could not be fetched, compiled or run.
pub fn run() -> Result<(), String> {
    let dir = programs::target_dir().join("java-bench");
    let class_path = compile(&dir)?;
    cargo(&["build", "--quiet", "--release", "-p", "outcrop-jni-api"], None)?;
    let library = programs::target_dir().join("release").join(super::LIBRARY);
    let ours = dir.join("outcrop");
    make_dir(&ours)?;
    std::fs::copy(&library, ours.join(super::LIBRARY))
        .map_err(|error| format!("{}: {error}", library.display()))?;
    let theirs = dir.join("rocksdb");
    make_dir(&theirs)?;
    let mut rounds: Vec<[Times; 2]> = Vec::new();
    for round in 0..ROUNDS {
        let mut times = [Times::new(), Times::new()];
        for turn in 0..2 {
            let side = (round + turn) % 2;
            times[side] = fork(&dir, &class_path, [&ours, &theirs][side])?;
        }
        eprintln!("round {} of {ROUNDS}", round + 1);
        rounds.push(times);
    }
    let rows = rows(&rounds);
    print!("{}", table(&rows));
    let json = dir.join("bench.json");
    std::fs::write(&json, in_json(&rows)).map_err(|error| format!("{}: {error}", json.display()))?;
    println!("\n{}", json.display());
    Ok(())
}

/// Compiles the benchmarks, with what JMH makes of them; gives the class path.
fn compile(dir: &Path) -> Result<String, String> {
    let classes = dir.join("classes");
    let _ = std::fs::remove_dir_all(&classes);
    make_dir(&classes)?;
    let source = dir.join("Bench.java");
    std::fs::write(&source, PROGRAM).map_err(|error| format!("{}: {error}", source.display()))?;
    let mut path = vec![classes.clone(), maven::fetch(JAR).map_err(|error| error.to_string())?];
    for tool in TOOLS {
        path.push(maven::fetch(tool).map_err(|error| error.to_string())?);
    }
    let path: Vec<String> = path.iter().map(|entry| entry.display().to_string()).collect();
    let path = path.join(":");
    let output = Command::new("javac")
        .args(["-nowarn", "-cp", &path, "-d"])
        .args([&classes, &source])
        .output()
        .map_err(|error| format!("javac: {error}: a JDK is needed"))?;
    match output.status.success() {
        true => Ok(path),
        false => Err(format!("javac: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// One JVM, whose libraries are in `library` first.
fn fork(dir: &Path, class_path: &str, library: &Path) -> Result<Times, String> {
    let results = dir.join("results.csv");
    let temporary = Place::make("bench", dir)?;
    let output = Command::new("java")
        .arg("-Xmx512m")
        .arg(format!("-Djava.library.path={}", library.display()))
        .arg(format!("-Djava.io.tmpdir={}", temporary.path().display()))
        .args(["-cp", class_path, "org.openjdk.jmh.Main", "-f", "0", "-w", "1", "-r", "1"])
        .args(["-wi", WARM_UP, "-i", MEASURED, "-rf", "csv", "-rff"])
        .arg(&results)
        .output()
        .map_err(|error| format!("java: {error}"))?;
    if !output.status.success() {
        return Err(format!("java: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let text =
        std::fs::read_to_string(&results).map_err(|error| format!("{}: {error}", results.display()))?;
    times(&text)
}

/// The scores of JMH's CSV: `"outcrop.Bench.getArray","avgt",1,3,412.5,...`.
fn times(csv: &str) -> Result<Times, String> {
    let mut times = Times::new();
    for line in csv.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').map(|cell| cell.trim_matches('"')).collect();
        let (Some(name), Some(score)) = (cells.first(), cells.get(4).and_then(|score| score.parse().ok()))
        else {
            return Err(format!("JMH: {line}"));
        };
        times.insert(name.trim_start_matches("outcrop.Bench.").to_string(), score);
    }
    if times.is_empty() { Err("JMH measured nothing".into()) } else { Ok(times) }
}

/// A benchmark: medians in nanoseconds on ours and on RocksDB, and RocksDB's time over ours: median, least and most.
struct Row {
    name: String,
    nanos: [f64; 2],
    ratio: [f64; 3],
}

fn rows(rounds: &[[Times; 2]]) -> Vec<Row> {
    let names = rounds.iter().flat_map(|[ours, _]| ours.keys()).collect::<std::collections::BTreeSet<_>>();
    names
        .into_iter()
        .map(|name| {
            let of = |side: usize| -> Vec<f64> {
                rounds.iter().filter_map(|round| round[side].get(name).copied()).collect()
            };
            let (ours, theirs) = (of(0), of(1));
            let ratios: Vec<f64> = theirs.iter().zip(&ours).map(|(theirs, ours)| theirs / ours).collect();
            let [least, middle, most] = spread(ratios);
            Row {
                name: name.clone(),
                nanos: [spread(ours)[1], spread(theirs)[1]],
                ratio: [middle, least, most],
            }
        })
        .collect()
}

/// The least, the median and the most.
fn spread(mut numbers: Vec<f64>) -> [f64; 3] {
    numbers.sort_by(f64::total_cmp);
    match numbers.as_slice() {
        [] => [f64::NAN; 3],
        [least, ..] => [*least, numbers[numbers.len() / 2], numbers[numbers.len() - 1]],
    }
}

fn table(rows: &[Row]) -> String {
    let mut text =
        "| call | Outcrop, ns | RocksDB, ns | times as fast | least to most |\n|---|---|---|---|---|\n"
            .to_string();
    for Row { name, nanos, ratio } in rows {
        let _ = writeln!(
            text,
            "| `{name}` | {:.0} | {:.0} | {:.2} | {:.2} to {:.2} |",
            nanos[0], nanos[1], ratio[0], ratio[1], ratio[2]
        );
    }
    text
}

fn in_json(rows: &[Row]) -> String {
    let row = |Row { name, nanos, ratio }: &Row| {
        format!(
            "  {{\"call\": \"{name}\", \"outcrop_ns\": {:.1}, \"rocksdb_ns\": {:.1}, \"ratio\": {:.3}, \"least\": {:.3}, \"most\": {:.3}}}",
            nanos[0], nanos[1], ratio[0], ratio[1], ratio[2]
        )
    };
    format!("[\n{}\n]\n", rows.iter().map(row).collect::<Vec<_>>().join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_of_one_round() {
        let csv = |get: f64| {
            format!(
                "\"Benchmark\",\"Mode\",\"Threads\",\"Samples\",\"Score\"\n\"outcrop.Bench.get\",\"avgt\",1,3,{get}\n"
            )
        };
        let round = |ours: f64, theirs: f64| [times(&csv(ours)).unwrap(), times(&csv(theirs)).unwrap()];
        // A round in which the machine was ten times as slow changes no ratio.
        let rows = rows(&[round(100.0, 200.0), round(1000.0, 1500.0), round(110.0, 330.0)]);
        assert_eq!(rows[0].ratio, [2.0, 1.5, 3.0]);
        assert_eq!(rows[0].nanos, [110.0, 330.0]);
        assert!(table(&rows).contains("| `get` | 110 | 330 | 2.00 | 1.50 to 3.00 |"));
        assert!(times("\"Benchmark\"\n").is_err());
    }
}
