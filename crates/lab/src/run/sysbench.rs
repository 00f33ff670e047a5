//! sysbench's own program as the client of a step: its stock scripts, where they do what a test does.
//!
//! ```text
//! test -> script and flags -> sysbench .. --report-interval=1 --histogram run -> its lines -> StepResult
//! ```
//! The program measures whole steps: it connects and prepares before its clock begins, and its time is in whole seconds.
//! A step that runs in does so by a checkpoint, at which the program forgets what it counted: with the connections and the
//! statements that are measured afterwards, as the lab's own client does.
//! Its scripts prepare all statements but the INSERT of `oltp_insert`, which they send as text.

use super::killed::KilledOnDrop;
use crate::targets::servers::tree;
use outcrop_lab_load::process::ProcessUsage;
use outcrop_lab_load::{Progress, Step, StepResult};
use outcrop_lab_sql::sysbench::tests::{Ranges, Shape, Test};
use outcrop_lab_sql::{Address, Product, SqlStep};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

/// Name of the program.
pub const PROGRAM: &str = "sysbench";

/// The stock script that does what `test` does, and its flags beside those of size; `None` where there is none.
pub fn script(test: &Test) -> Option<(&'static str, Vec<String>)> {
    let plain = |script| Some((script, Vec::new()));
    let ranged = |script| Some((script, vec![format!("--range_size={}", test.range)]));
    match test.shape {
        Shape::Point => plain("oltp_point_select"),
        Shape::ReadOnly(ranges) => {
            let kinds = [
                (Ranges::Simple, "simple_ranges"),
                (Ranges::Sum, "sum_ranges"),
                (Ranges::Order, "order_ranges"),
                (Ranges::Distinct, "distinct_ranges"),
            ];
            let without = kinds.iter().filter(|(kind, _)| ranges != Ranges::All && ranges != *kind);
            let mut flags = vec![format!("--range_size={}", test.range)];
            flags.extend(without.map(|(_, flag)| format!("--{flag}=0")));
            Some(("oltp_read_only", flags))
        }
        Shape::UpdateIndex => plain("oltp_update_index"),
        Shape::UpdateNonindex => plain("oltp_update_non_index"),
        Shape::UpdateOne => Some(("oltp_update_non_index", vec!["--table_size=1".to_string()])),
        Shape::UpdateZipf => Some(("oltp_update_non_index", vec!["--rand-type=zipfian".to_string()])),
        Shape::Delete => plain("oltp_delete"),
        Shape::Insert => plain("oltp_insert"),
        Shape::WriteOnly => plain("oltp_write_only"),
        Shape::ReadWrite => ranged("oltp_read_write"),
        // The stock script of random points searches another column; the others are the published runs' own.
        Shape::RandomPoints
        | Shape::HotPoints
        | Shape::Points { .. }
        | Shape::Range { .. }
        | Shape::Scan
        | Shape::Count
        | Shape::UpdateInlist => None,
    }
}

/// Does `test` with `program` as `step` and `sql` say, after `run_in` unmeasured seconds, of which it takes whole ones.
/// `begin` is called when the measured time begins.
///
/// # Errors
/// If it cannot be run, fails, or prints no result, and what `begin` says.
pub fn run(
    program: &Path,
    test: &Test,
    (step, sql): (&Step, &SqlStep),
    run_in: f64,
    address: &Address,
    begin: &mut dyn FnMut() -> Result<(), String>,
    observe: &mut dyn FnMut(Progress),
) -> Result<StepResult, String> {
    let (script, own) =
        script(test).ok_or_else(|| format!("sysbench has no script that does what {} does", test.name))?;
    let run_in = run_in.ceil().max(0.0) as u64;
    let before = ProcessUsage::of_children();
    let mut command = Command::new(program);
    command.arg(script).args(connection(address)).args([
        format!("--tables={}", sql.tables),
        format!("--table-size={}", sql.rows),
        format!("--threads={}", step.threads),
        "--events=0".to_string(),
        format!("--time={}", run_in + seconds(step)),
        "--rand-type=uniform".to_string(),
        // It keeps 31 bits, and takes 0 for "by the clock".
        format!("--rand-seed={}", (step.seed & 0x7fff_ffff).max(1)),
        "--report-interval=1".to_string(),
        "--histogram".to_string(),
    ]);
    command.args((run_in > 0).then(|| format!("--report-checkpoints={run_in}")));
    // The later of two equal flags counts.
    command.args(own).arg("run").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| missing(program, &error.to_string()))?;
    let mut child = KilledOnDrop(child);
    // A full pipe would stop the program.
    let mut err = child.stderr.take().expect("it is piped");
    let complaints = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = err.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let mut unmeasured = ProcessUsage::default();
    if run_in == 0 {
        begin()?;
    }
    let mut said = Said { run_in, ..Said::default() };
    for line in BufReader::new(child.stdout.take().expect("it is piped")).lines() {
        let line = line.map_err(|error| format!("{}: {error}", program.display()))?;
        if said.line(&line) {
            unmeasured = tree::usage_of(child.id());
            begin()?;
        }
        observe(Progress {
            ops: said.per_second.iter().sum(),
            seconds: said.per_second.len() as f64,
            threads: Vec::new(),
            beside: None,
        });
    }
    let complaints = complaints.join().expect("reading does not panic");
    let status = child.wait().map_err(|error| format!("{}: {error}", program.display()))?;
    if !status.success() {
        return Err(format!("sysbench {script} failed: {}", said.complaint(&complaints)));
    }
    let mut result = said
        .result(step.threads)
        .ok_or_else(|| format!("sysbench {script} printed no result: {}", said.complaint(&complaints)))?;
    result.usage = ProcessUsage::of_children().since(&before).since(&unmeasured);
    result.note = (test.shape == Shape::Insert).then(|| "sysbench sends this INSERT as text".to_string());
    Ok(result)
}

/// The whole seconds that sysbench gives a step.
pub fn seconds(step: &Step) -> u64 {
    (step.seconds.round() as u64).max(1)
}

/// The message about a program that cannot be run.
pub fn missing(program: &Path, why: &str) -> String {
    format!("cannot run {} ({why}); on Debian: apt-get install sysbench", program.display())
}

/// sysbench's flags for a server.
fn connection(address: &Address) -> Vec<String> {
    let prefix = if address.product == Product::Postgres { "pgsql" } else { "mysql" };
    let mut flags = vec![
        format!("--db-driver={prefix}"),
        format!("--{prefix}-user={}", address.user),
        format!("--{prefix}-db={}", address.database),
    ];
    match (&address.socket, address.product) {
        // The directory of the socket is PostgreSQL's host.
        (Some(dir), Product::Postgres) => {
            flags.extend([
                format!("--pgsql-host={}", dir.display()),
                format!("--pgsql-port={}", address.port),
            ]);
        }
        (Some(socket), Product::MySql) => flags.push(format!("--mysql-socket={}", socket.display())),
        (None, _) => {
            flags.extend([
                format!("--{prefix}-host={}", address.host),
                format!("--{prefix}-port={}", address.port),
            ]);
        }
    }
    flags
}

/// The program's figures, as far as it has printed them.
#[derive(Default)]
struct Said {
    /// Seconds that are not measured.
    run_in: u64,
    /// Statements in each second.
    per_second: Vec<u64>,
    /// Nanoseconds of events, and how many there were.
    events: Vec<(u64, u64)>,
    /// How many, and how many a second.
    statements: Option<(u64, f64)>,
    longest_ms: f64,
    /// The line that says why it failed.
    fatal: Option<String>,
}

impl Said {
    /// Takes a line; whether the measured time begins with it.
    fn line(&mut self, line: &str) -> bool {
        let line = line.trim();
        if line.contains("FATAL") {
            self.fatal.get_or_insert_with(|| line.to_string());
        } else if let Some(report) = line.strip_prefix('[') {
            // The program prints and forgets its counts until here, but for the time.
            if report.ends_with("Checkpoint report:") {
                return true;
            }
            let second = after(report, "").map_or(0, |second| second as u64);
            if let Some(rate) = after(report, "qps:").filter(|_| second > self.run_in) {
                self.per_second.push(rate.round() as u64);
            }
        } else if let Some((value, count)) = bucket(line) {
            self.events.push((value, count));
        } else if let Some(total) = line.strip_prefix("queries:") {
            let total = total.replace('(', " ");
            let mut words = total.split_whitespace();
            let count = words.next().and_then(|word| word.parse().ok());
            self.statements = count.zip(words.next().and_then(|word| word.parse().ok()));
        } else if let Some(most) = line.strip_prefix("max:") {
            self.longest_ms = most.trim().parse().unwrap_or(0.0);
        }
        false
    }

    /// Why it failed.
    fn complaint(&self, stderr: &str) -> String {
        let other = || stderr.lines().find(|line| !line.trim().is_empty()).map(str::to_string);
        self.fatal.clone().or_else(other).unwrap_or_else(|| "no message".to_string())
    }

    fn result(&self, threads: u32) -> Option<StepResult> {
        // The time that the program prints begins before what is not measured; its rates do not.
        let (ops, rate) = self.statements.filter(|(_, rate)| *rate > 0.0)?;
        let seconds = ops as f64 / rate;
        let mut result = StepResult::of_events(ops, seconds, threads, &self.events);
        result.per_second.clone_from(&self.per_second);
        result.longest_gap_ms = self.longest_ms;
        Some(result)
    }
}

/// The number after a word of a line.
fn after(line: &str, word: &str) -> Option<f64> {
    let number = line.split_once(word)?.1.split_whitespace().next()?;
    number.trim_end_matches('s').parse().ok()
}

/// A line of the histogram, such as `0.029 |****   23`: nanoseconds, and how many.
fn bucket(line: &str) -> Option<(u64, u64)> {
    let (value, rest) = line.split_once('|')?;
    let millis: f64 = value.trim().parse().ok()?;
    let count = rest.trim_start_matches('*').trim().parse().ok()?;
    Some(((millis * 1e6).round() as u64, count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_lab_sql::sysbench::find;

    #[test]
    fn tests_have_the_script_that_does_the_same_or_none() {
        let of = |name: &str| script(find(name).unwrap()).map(|(script, flags)| (script, flags.join(" ")));
        assert_eq!(of("point-query"), Some(("oltp_point_select", String::new())));
        assert_eq!(
            of("read-only-sum"),
            Some((
                "oltp_read_only",
                "--range_size=1000 --simple_ranges=0 --order_ranges=0 --distinct_ranges=0".to_string()
            ))
        );
        assert_eq!(of("read-write_range=10"), Some(("oltp_read_write", "--range_size=10".to_string())));
        assert_eq!(of("update-one").unwrap().1, "--table_size=1");
        for name in ["scan", "hot-points", "read-only-count", "update-inlist", "range-covered-pk"] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    #[test]
    fn what_the_program_prints_becomes_a_result() {
        let printed = "[ 1s ] thds: 1 tps: 10.00 qps: 200.50 (r/w/o: 1/2/3) lat (ms,95%): 0.65 err/s: 0.00 reconn/s: 0.00\n\
             [ 2s ] thds: 1 tps: 11.00 qps: 220.00 (r/w/o: 1/2/3) lat (ms,95%): 0.65 err/s: 0.00 reconn/s: 0.00\n\
             Latency histogram (values are in milliseconds)\n       value  ------------- distribution ------------- count\n\
             \x20      1.000 |****************************************  15\n       2.000 |  6\n\
             SQL statistics:\n    queries performed:\n        read:                            1\n        total:                           420\n\
             \x20   transactions:                        21     (10.45 per sec.)\n    queries:                             420    (209.95 per sec.)\n\
             General statistics:\n    total time:                          2.0004s\n\
             Latency (ms):\n         max:                                   12.50\n";
        let mut said = Said::default();
        assert!(!printed.lines().any(|line| said.line(line)), "nothing was run in");
        let result = said.result(1).unwrap();
        assert_eq!((result.ops, result.per_second.clone()), (420, vec![201, 220]));
        assert!((result.seconds - 2.0).abs() < 0.001, "{}", result.seconds);
        assert_eq!((result.samples.len(), result.longest_gap_ms), (21, 12.5));
        assert!((result.percentiles[0] - 1000.0).abs() < 2.0 && (result.percentiles[1] - 2000.0).abs() < 4.0);
        // With a second that is not measured: its statements are printed at the checkpoint, its rate after it.
        let at = printed.find("[ 2s ]").unwrap();
        let checkpoint = "[ 1s ] Checkpoint report:\n";
        let unmeasured = "queries:    999    (999.00 per sec.)\n max:   99.0\n";
        let parts = [checkpoint, &printed[..at], unmeasured, &printed[at..]].concat();
        let mut said = Said { run_in: 1, ..Said::default() };
        assert_eq!(parts.lines().filter(|line| said.line(line)).count(), 1);
        let measured = said.result(1).unwrap();
        assert_eq!((measured.ops, measured.per_second, measured.longest_gap_ms), (420, vec![220], 12.5));
        let mut said = Said::default();
        said.line("FATAL: Connection to database failed");
        assert!(said.result(1).is_none() && said.complaint("x").contains("Connection"));
    }

    #[test]
    fn a_program_that_complains_a_lot_is_read_to_its_end() {
        use std::os::unix::fs::PermissionsExt;
        let temp = tempfile::tempdir().unwrap();
        let program = temp.path().join("sysbench");
        // More than a pipe holds, before anything is said on standard output.
        let script = "#!/bin/sh\nhead -c 1000000 /dev/zero | tr '\\0' x >&2\necho '    queries: 30 (10.00 per sec.)'\n";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let test = find("point-query").unwrap();
        let load = outcrop_lab_sql::Load::Sysbench(test.name.to_string());
        let sql = SqlStep { load, tables: 1, rows: 10, engine: String::new() };
        let step = Step::of_statements(test.name, 1, None, 1.0);
        let mut begun = 0;
        let begin = &mut || {
            begun += 1;
            Ok(())
        };
        let result = run(&program, test, (&step, &sql), 0.0, &socket(), begin, &mut |_| ()).unwrap();
        assert_eq!((result.ops, result.seconds, begun), (30, 3.0, 1));
    }

    fn socket() -> Address {
        Address {
            product: Product::Postgres,
            socket: Some("/s".into()),
            host: "h".into(),
            port: 5432,
            user: "u".into(),
            password: None,
            database: "d".into(),
        }
    }

    #[test]
    fn sockets_are_given_in_each_products_way() {
        let mut address = socket();
        assert!(connection(&address).contains(&"--pgsql-host=/s".to_string()));
        address.product = Product::MySql;
        assert!(connection(&address).contains(&"--mysql-socket=/s".to_string()));
    }
}
