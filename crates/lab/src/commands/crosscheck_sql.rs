//! `outcrop lab crosscheck --server NAME@VERSION`: this client beside sysbench's own, on one and the same server and tables.
//!
//! ```text
//! once:        our load (tables as sysbench's scripts expect them)
//! each round:  point-query, read-only, read-write, update-index, insert; of each, in random order, sysbench and ours
//! judged:      statements per second within 3 %; a difference that is gone once each client's own processor time is taken off
//!              is a difference of what clients cost, and no fault
//! ```
//! sysbench's own scripts prepare all statements but the INSERT of `oltp_insert`, which they send as text: that test says what
//! preparing is worth, and is not judged.

use crate::analysis::judge::{self, Better, Question, Verdict, Word};
use crate::commands::crosscheck::{CrosscheckArguments, WITHIN};
use crate::report::text::{align, amount};
use crate::run::data_dir::DataDir;
use crate::run::{sysbench as runner, unix_seconds};
use crate::targets::servers::running::Server;
use crate::targets::servers::{Runner, ServerLocation, ServerSpec, catalogue};
use outcrop_lab_load::rng::Mt19937_64;
use outcrop_lab_load::{Step, StepResult};
use outcrop_lab_sql::{Load, Pool, Product, SqlStep, step, sysbench, upkeep};
use serde::Serialize;
use std::path::Path;

/// A test of both.
struct Test {
    ours: &'static str,
    /// Whether both do the same work, so that a difference is the client's.
    judged: bool,
}

const TESTS: [Test; 5] = [
    Test { ours: "point-query_range=100", judged: true },
    Test { ours: "read-only_range=100", judged: true },
    Test { ours: "read-write_range=100", judged: true },
    Test { ours: "update-index_range=100", judged: true },
    Test { ours: "insert_range=100", judged: false },
];

/// Seconds that either client runs unmeasured first, with the connection and the statements that it is measured with.
const RUN_IN: f64 = 1.0;

/// A test, compared.
#[derive(Clone, Debug, Serialize)]
struct Compared {
    /// Name of ours.
    test: &'static str,
    /// Statements per second of sysbench and of this client, round by round.
    rounds: Vec<(f64, f64)>,
    /// Microseconds of processor time that sysbench and this client took for a statement, round by round.
    client_us: Vec<(f64, f64)>,
    /// Ours over theirs.
    verdict: Option<Verdict>,
    /// The same of the time that is left of a statement without the client's own.
    without_clients: Option<Verdict>,
    /// Whether a difference is a fault.
    judged: bool,
}

impl Compared {
    /// Whether the two differ, and not by what they themselves cost.
    fn is_fault(&self) -> bool {
        let is_call = |verdict: Option<Verdict>| verdict.is_some_and(|verdict| verdict.word.is_call());
        self.judged && is_call(self.verdict) && is_call(self.without_clients)
    }
}

/// The rate of a client in a round, and its own part of it.
#[derive(Clone, Copy, Default)]
struct Measured {
    /// Statements per second.
    rate: f64,
    /// Seconds of its own processor time for a statement.
    own: f64,
}

impl Measured {
    fn of(result: &StepResult) -> Measured {
        let ops = result.ops as f64;
        let own = (result.usage.user_seconds + result.usage.system_seconds) / ops.max(1.0);
        Measured { rate: ops / result.seconds.max(1e-9), own }
    }

    /// Statements per second of a client that takes no time itself: one connection waits for the server in all of the rest.
    fn rate_of_rest(self) -> f64 {
        1.0 / (1.0 / self.rate - self.own).max(1e-9)
    }
}

/// Runs both clients on `name@version` and prints how they compare.
///
/// # Errors
/// If the server or a client fails, or the two differ.
pub fn run(arguments: &CrosscheckArguments, name: &str) -> Result<(), String> {
    let root = std::path::absolute(&arguments.data).map_err(|error| error.to_string())?;
    // Refused if it holds anything that is not the lab's; files that the lab makes in it are removed.
    let data = DataDir::take(&root)?;
    let compared = on_server(arguments, name, &data.session(0)?)?;
    drop(data);
    match arguments.json {
        true => println!("{}", serde_json::to_string_pretty(&compared).expect("plain data serialises")),
        false => print!("{}", text(&compared)),
    }
    let faults: Vec<String> = compared
        .iter()
        .filter(|row| row.is_fault())
        .map(|row| format!("{} differs by more than 3 %", row.test))
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
}

fn on_server(arguments: &CrosscheckArguments, name: &str, dir: &Path) -> Result<Vec<Compared>, String> {
    let (product, version) = name.split_once('@').ok_or_else(|| format!("{name}: write NAME@VERSION"))?;
    let locked = catalogue::find(product, version)?;
    let basedir = catalogue::obtain(&locked).map_err(|error| error.to_string())?.home;
    let spec = ServerSpec {
        name: product.to_string(),
        product: if product == "postgres" { Product::Postgres } else { Product::MySql },
        version: Some(locked.archive.version.clone()),
        place: ServerLocation::Own { basedir, config: String::new(), port: None },
        runner: Runner::Lab,
    };
    let server = Server::start(&spec, dir, &mut || Ok(()))?;
    let clients = Clients { arguments, pool: Pool::new(server.address().clone()) };
    let compared = clients.compare();
    clients.pool.close();
    server.stop(&mut || Ok(()))?;
    compared
}

struct Clients<'a> {
    arguments: &'a CrosscheckArguments,
    pool: Pool,
}

impl Clients<'_> {
    fn compare(&self) -> Result<Vec<Compared>, String> {
        eprintln!("loading {} rows", self.arguments.keys);
        self.ours(Load::SysbenchLoad, "load", 1)?;
        upkeep::rest(self.pool.address(), 0.0)?;
        let mut rng = Mt19937_64::new(unix_seconds());
        let mut pairs = vec![Vec::new(); TESTS.len()];
        for round in 0..self.arguments.rounds {
            for (test, pairs) in TESTS.iter().zip(&mut pairs) {
                eprintln!("round {} of {}: {}", round + 1, self.arguments.rounds, test.ours);
                let seed = rng.next_u64() >> 33;
                let mut measured = [Measured::default(); 2];
                let first = usize::from(rng.next_u64() & 1 == 1);
                for which in [first, 1 - first] {
                    measured[which] = match which {
                        0 => self.theirs(test, seed)?,
                        _ => self.ours(Load::Sysbench(test.ours.to_string()), test.ours, seed)?,
                    };
                }
                pairs.push((measured[0], measured[1]));
            }
        }
        Ok(judged(pairs))
    }

    /// This client.
    fn ours(&self, load: Load, name: &str, seed: u64) -> Result<Measured, String> {
        let sql = SqlStep { load, tables: 1, rows: self.arguments.keys, engine: String::new() };
        let seconds = f64::from(self.arguments.seconds);
        let mut step = Step::of_statements(name, 1, sql.is_load().then_some(u64::MAX), seconds);
        (step.seed, step.num) = (seed, sql.rows);
        if !sql.is_load() {
            let run_in = Step { seconds: RUN_IN, seed: seed ^ 1, ..step.clone() };
            step::run_slice(&self.pool, &run_in, &sql, None, &mut 0, &mut |_| ())?;
        }
        let result = step::run_slice(&self.pool, &step, &sql, None, &mut 0, &mut |_| ())?;
        Ok(Measured::of(&result))
    }

    /// sysbench.
    fn theirs(&self, test: &Test, seed: u64) -> Result<Measured, String> {
        let named = sysbench::find(test.ours).ok_or_else(|| format!("there is no test {}", test.ours))?;
        let load = Load::Sysbench(test.ours.to_string());
        let sql = SqlStep { load, tables: 1, rows: self.arguments.keys, engine: String::new() };
        let mut step = Step::of_statements(test.ours, 1, None, f64::from(self.arguments.seconds));
        step.seed = seed;
        let (program, address) = (&self.arguments.sysbench, self.pool.address());
        let begin = &mut || Ok(());
        let result = runner::run(program, named, (&step, &sql), RUN_IN, address, begin, &mut |_| ())?;
        Ok(Measured::of(&result))
    }
}

fn judged(pairs: Vec<Vec<(Measured, Measured)>>) -> Vec<Compared> {
    let verdicts = |rate: fn(Measured) -> f64| -> Vec<Option<Verdict>> {
        let questions: Vec<Question> = TESTS
            .iter()
            .zip(&pairs)
            .map(|(test, pairs)| Question {
                name: (test.ours.to_string(), "ours".to_string()),
                pairs: pairs.iter().map(|(theirs, ours)| (rate(*ours), rate(*theirs))).collect(),
                control: false,
                doubt: None,
                delta: WITHIN,
                noise: None,
            })
            .collect();
        judge::judge("ops_sec", Better::Higher, &questions)
    };
    let both = verdicts(|measured| measured.rate).into_iter().zip(verdicts(Measured::rate_of_rest));
    let rows = TESTS.iter().zip(&pairs).zip(both);
    rows.map(|((test, pairs), (verdict, without_clients))| Compared {
        test: test.ours,
        rounds: pairs.iter().map(|(theirs, ours)| (theirs.rate, ours.rate)).collect(),
        client_us: pairs.iter().map(|(theirs, ours)| (theirs.own * 1e6, ours.own * 1e6)).collect(),
        verdict,
        without_clients,
        judged: test.judged,
    })
    .collect()
}

fn text(compared: &[Compared]) -> String {
    let mut rows = vec![
        ["test", "sysbench", "outcrop", "ratio", "95 % interval", "client us", "rest", ""]
            .map(String::from)
            .to_vec(),
    ];
    for row in compared {
        let median = |pairs: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| {
            let mut values: Vec<f64> = pairs.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            crate::report::summary_line::median(&values)
        };
        let rate = |of: fn(&(f64, f64)) -> f64| median(&row.rounds, of).map_or("NA".to_string(), amount);
        let own = |of: fn(&(f64, f64)) -> f64| {
            median(&row.client_us, of).map_or("NA".to_string(), |own| format!("{own:.1}"))
        };
        let ratio = |verdict: Option<Verdict>| {
            verdict.map_or("NA".to_string(), |verdict| format!("{:.3}", verdict.ratio))
        };
        let ends = row.verdict.and_then(|verdict| verdict.low.zip(verdict.high));
        let word = match row.verdict.map(|verdict| verdict.word) {
            _ if !row.judged => "text",
            Some(Word::Same) => "same",
            Some(Word::Unknown) | None => "unknown",
            Some(_) if row.is_fault() => "differs",
            Some(_) => "client",
        };
        rows.push(vec![
            row.test.trim_end_matches("_range=100").to_string(),
            rate(|pair| pair.0),
            rate(|pair| pair.1),
            ratio(row.verdict),
            ends.map_or("?".to_string(), |(low, high)| format!("{low:.3}..{high:.3}")),
            format!("{} {}", own(|pair| pair.0), own(|pair| pair.1)),
            ratio(row.without_clients),
            word.to_string(),
        ]);
    }
    align(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_holds_something_else_is_refused_and_left_as_it_is() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("server")).unwrap();
        std::fs::write(temp.path().join("server/precious"), "data").unwrap();
        let arguments = CrosscheckArguments {
            db_bench: "db_bench".into(),
            library: "librocksdb.so".into(),
            server: None,
            sysbench: "sysbench".into(),
            keys: 1,
            seconds: 1,
            rounds: 1,
            data: temp.path().to_path_buf(),
            json: false,
        };
        let error = run(&arguments, "postgres@1.x").unwrap_err();
        assert!(error.contains("not empty and not the lab's"), "{error}");
        assert_eq!(std::fs::read_to_string(temp.path().join("server/precious")).unwrap(), "data");
    }

    /// Rounds in which ours has `share` of their rate, and clients take so many microseconds for a statement themselves.
    fn rows(share: f64, own: (f64, f64)) -> Vec<Compared> {
        let rounds = (0..6).map(|round| 10_000.0 + 100.0 * f64::from(round));
        let pair = |rate: f64| {
            (Measured { rate, own: own.0 / 1e6 }, Measured { rate: rate * share, own: own.1 / 1e6 })
        };
        judged(vec![rounds.map(pair).collect::<Vec<_>>(); TESTS.len()])
    }

    #[test]
    fn a_client_that_is_slower_is_called_and_the_one_that_does_other_work_is_not() {
        let calls = |share| rows(share, (5.0, 5.0)).iter().filter(|row| row.is_fault()).count();
        assert_eq!((calls(1.001), calls(0.9)), (0, 4));
        assert!(text(&rows(1.0, (5.0, 5.0))).contains("same"));
    }

    #[test]
    fn a_difference_that_is_the_clients_own_time_is_told_and_is_no_fault() {
        // A tenth more statements, since each takes 9 us less of the client's own 20 us.
        let rows = rows(1.1, (20.0, 11.0));
        assert!(rows.iter().all(|row| !row.is_fault()));
        let text = text(&rows);
        assert!(text.contains("  client\n") && text.contains("20.0 11.0"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
