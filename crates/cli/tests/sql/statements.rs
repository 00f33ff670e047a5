//! Statements of an event, counted by the server itself, held against the published description of each test.

use super::foreign::Foreign;
use super::servers;
use outcrop_lab_load::Step;
use outcrop_lab_sql::sysbench::TESTS;
use outcrop_lab_sql::{Connection, Load, Pool, Product, SqlStep, step};
use std::collections::BTreeMap;

/// Statements by their first words.
type Counts = BTreeMap<String, u64>;

/// The statements of an event of the test, by the published description. Written down here a second time, not taken
/// from the tests' table.
fn published(test: &str) -> Counts {
    let name = test.split("_range").next().unwrap().trim_end_matches(".pre");
    let name = name.trim_end_matches(".warmpre").trim_end_matches(".warm");
    let counts: &[(&str, u64)] = match name {
        "read-only" => &[("begin", 1), ("select", 14), ("commit", 1)],
        "read-only-simple" | "read-only-sum" | "read-only-order" | "read-only-distinct" => {
            &[("begin", 1), ("select", 11), ("commit", 1)]
        }
        "point-query" | "random-points" | "hot-points" | "scan" | "read-only-count" => &[("select", 1)],
        "points-covered-pk" | "points-notcovered-pk" | "points-covered-si" | "points-notcovered-si" => {
            &[("select", 1)]
        }
        "range-covered-pk" | "range-notcovered-pk" | "range-covered-si" | "range-notcovered-si" => {
            &[("select", 1)]
        }
        "update-index" | "update-nonindex" | "update-one" | "update-zipf" | "update-inlist" => {
            &[("update", 1)]
        }
        "delete" => &[("delete", 1)],
        "insert" => &[("insert", 1)],
        "write-only" => &[("begin", 1), ("update", 2), ("delete", 1), ("insert", 1), ("commit", 1)],
        "read-write" => {
            &[("begin", 1), ("select", 14), ("update", 2), ("delete", 1), ("insert", 1), ("commit", 1)]
        }
        other => panic!("{other} is not described"),
    };
    counts.iter().map(|(word, count)| (word.to_string(), *count)).collect()
}

const WORDS: [&str; 6] = ["begin", "commit", "select", "update", "insert", "delete"];

/// The server's counts until now: PostgreSQL has each execution in its log (its module for statistics counts a
/// prepared BEGIN once, from version 14 on), MySQL has counters.
fn counted(server: &Foreign, observer: &mut Connection) -> Counts {
    let mut counts: Counts = WORDS.into_iter().map(|word| (word.to_string(), 0)).collect();
    match observer.product() {
        Product::Postgres => {
            let log = std::fs::read_to_string(&server.log).unwrap();
            let executed =
                log.lines().filter_map(|line| line.split_once("LOG:  execute ")?.1.split_once(": "));
            for (_, sql) in executed {
                let word = sql.split_whitespace().next().unwrap().to_lowercase();
                *counts.get_mut(&word).unwrap_or_else(|| panic!("{sql} is none of the load")) += 1;
            }
        }
        Product::MySql => {
            for (word, count) in &mut counts {
                let row = observer.rows(&format!("SHOW GLOBAL STATUS LIKE 'Com_{word}'")).unwrap();
                *count = row[0][1].clone().unwrap().parse().unwrap();
            }
        }
    }
    counts
}

fn since(before: &Counts, after: &Counts) -> Counts {
    let grown = |(word, count): (&String, &u64)| (word.clone(), count - before.get(word).unwrap_or(&0));
    after.iter().map(grown).filter(|(_, count)| *count > 0).collect()
}

#[test]
fn every_server_counts_the_statements_that_are_published_for_every_test() {
    const ROWS: u64 = 2000;
    const EVENTS: u64 = 20;
    for server in servers() {
        let counting: &[&str] = match server.starts_with("postgres") {
            true => &["-c", "log_statement=all"],
            false => &[],
        };
        let foreign = Foreign::start(&server, counting);
        let address = match foreign.address.product {
            Product::Postgres => foreign.address.clone(),
            Product::MySql => {
                Connection::open(&foreign.address).unwrap().run("CREATE DATABASE counted").unwrap();
                foreign.address.with_database("counted")
            }
        };
        let mut observer = Connection::open(&address).unwrap();
        let pool = Pool::new(address);
        let mut threads = 0;
        let mut run = |name: &str, load: Load, ops: u64| {
            let sql = SqlStep { load, tables: 1, rows: ROWS, engine: String::new() };
            let step = Step::of_statements(name, 1, Some(ops), 0.0);
            step::run_slice(&pool, &step, &sql, None, &mut threads, &mut |_| ()).unwrap()
        };
        run("load", Load::SysbenchLoad, ROWS);
        for test in TESTS {
            let published = published(test.name);
            let each: u64 = if test.name.starts_with("scan") { ROWS } else { published.values().sum() };
            let before = counted(&foreign, &mut observer);
            let result = run(test.name, Load::Sysbench(test.name.to_string()), EVENTS * each);
            let counts = since(&before, &counted(&foreign, &mut observer));
            assert_eq!(result.ops, EVENTS * each, "{server} {}", test.name);
            let wanted: Counts = published.into_iter().map(|(word, count)| (word, count * EVENTS)).collect();
            assert_eq!(counts, wanted, "{server} {}", test.name);
        }
    }
}
