//! A thread of a test: a connection that does one event after the other.
//!
//! An event that meets another one (a deadlock, a row that somebody else inserted first) is rolled back and done again
//! with other rows, as sysbench does; such events are counted apart.

use super::script::{Chosen, Draw, Line, script};
use super::tests::{Shape, Test};
use crate::connection::Value;
use crate::pool::{Pool, Taken};
use crate::text::{Random, Zipf};
use outcrop_lab_load::steps::{Done, Operate};
use std::sync::atomic::{AtomicU64, Ordering};

/// The state that the threads of a test share.
pub struct Common<'a> {
    /// The server.
    pub pool: &'a Pool,
    /// The test.
    pub test: &'a Test,
    /// Tables.
    pub tables: u32,
    /// Rows of each.
    pub rows: u64,
    /// Events that were rolled back since they met others.
    pub met: &'a AtomicU64,
}

/// One thread.
pub struct Worker<'a> {
    common: &'a Common<'a>,
    client: Result<Taken<'a>, String>,
    /// The statements of each table.
    scripts: Vec<Vec<Line>>,
    draws: Draws,
}

impl<'a> Worker<'a> {
    /// A connection with everything prepared; a failure of that is reported at the first event.
    pub fn new(common: &'a Common<'a>, seed: u64) -> Worker<'a> {
        let scripts: Vec<Vec<Line>> = (1..=common.tables).map(|table| script(common.test, table)).collect();
        let statements = || scripts.iter().flatten().map(|line| line.sql.clone()).collect();
        let client = common.pool.take().and_then(|mut client| {
            client.prepare(common.test.name, statements)?;
            Ok(client)
        });
        let draws = Draws::new(common.rows, seed);
        Worker { common, client, scripts, draws }
    }

    /// Statements, rows and bytes of an event.
    fn event(&mut self) -> Result<[u64; 3], String> {
        let client = self.client.as_mut().map_err(|why| why.clone())?;
        let tables = self.scripts.len();
        // A scanning client keeps its table.
        let own = (self.common.test.shape == Shape::Scan).then_some(client.number % tables);
        let (connection, prepared) = client.parts();
        let (mut sums, mut table) = ([0; 3], own.unwrap_or(0));
        let lines = self.scripts[0].len();
        for number in 0..lines {
            let line = &self.scripts[table][number];
            if own.is_none() && begins_a_group(line.draw) {
                table = self.draws.random.below(tables as u64) as usize;
            }
            for _ in 0..line.times {
                self.draws.draw(line.draw);
                let answer = connection.execute(&prepared[table * lines + number], &self.draws.values())?;
                sums = [sums[0] + 1, sums[1] + answer.rows, sums[2] + answer.bytes];
            }
        }
        Ok(sums)
    }
}

/// Whether a table is drawn for a statement: sysbench draws one for the statements of a kind, and inserts the row that it has deleted
/// where it was. `BEGIN` and `COMMIT` are on no table.
///
/// Source: sysbench `src/lua/oltp_common.lua`, `execute_*`.
fn begins_a_group(draw: Draw) -> bool {
    !matches!(draw, Draw::Nothing | Draw::RowOfId)
}

impl Operate for Worker<'_> {
    fn operate(&mut self, _ops: u64) -> Result<Done, String> {
        /// Times in a row that an event may meet others before something else must be wrong.
        const TRIES: usize = 1000;
        for _ in 0..TRIES {
            match self.event() {
                Ok([statements, found, bytes]) => {
                    // The rate of a scan is that of the rows it goes over.
                    let ops =
                        if self.common.test.shape == Shape::Scan { self.common.rows } else { statements };
                    return Ok(Done { ops, found, bytes });
                }
                Err(why) => self.roll_back(why)?,
            }
        }
        Err(format!("an event met others {TRIES} times in a row"))
    }
}

impl Worker<'_> {
    /// Ends the transaction of an event that met another one; any other error is handed back.
    fn roll_back(&mut self, why: String) -> Result<(), String> {
        match &mut self.client {
            Ok(client) if client.connection.was_conflict() => {
                self.common.met.fetch_add(1, Ordering::Relaxed);
                client.connection.run("ROLLBACK")
            }
            _ => Err(why),
        }
    }
}

/// The results of `each` for every statement of `test`, with parameters that are always the same.
pub(crate) fn examples<T>(test: &Test, rows: u64, mut each: impl FnMut(&str, &[Value<'_>]) -> T) -> Vec<T> {
    let mut draws = Draws::new(rows, 1);
    let lines = script(test, 1).into_iter();
    let example = |line: Line| {
        draws.draw(line.draw);
        each(&line.sql, &draws.values())
    };
    lines.map(example).collect()
}

/// Parameters, drawn into memory that is used again.
struct Draws {
    random: Random,
    rows: u64,
    zipf: Zipf,
    /// The id that was drawn last.
    id: i64,
    numbers: Vec<i64>,
    texts: [String; 2],
    order: Order,
}

/// How numbers and texts make up parameters.
#[derive(Clone, Copy)]
enum Order {
    Numbers,
    /// The first text, then the numbers.
    TextNumbers,
    /// The numbers, then both texts.
    NumbersTexts,
}

/// Groups of eleven digits in `c` and in `pad`.
pub(super) const GROUPS: [usize; 2] = [10, 5];

impl Draws {
    fn new(rows: u64, seed: u64) -> Draws {
        let zipf = Zipf::new(rows, Zipf::USUAL);
        let random = Random::new(seed);
        Draws {
            random,
            rows,
            zipf,
            id: 1,
            numbers: Vec::new(),
            texts: Default::default(),
            order: Order::Numbers,
        }
    }

    fn uniform(&mut self) -> i64 {
        self.random.between(1, self.rows) as i64
    }

    fn draw(&mut self, what: Draw) {
        self.numbers.clear();
        self.order = Order::Numbers;
        match what {
            Draw::Nothing => {}
            Draw::Id => {
                self.id = self.uniform();
                self.numbers.push(self.id);
            }
            Draw::Many(count) => self.many(count),
            Draw::Hot(count) => {
                let first = (self.rows / 2 + 1) as i64;
                self.numbers.extend(first..first + i64::from(count));
            }
            Draw::Range(distance) => {
                let first = self.uniform();
                self.numbers.extend([first, first + i64::from(distance)]);
            }
            Draw::TextAndId(chosen) => {
                let id = match chosen {
                    Chosen::Uniform => self.uniform(),
                    Chosen::Zipf => self.zipf.draw(&mut self.random) as i64,
                    Chosen::First => 1,
                };
                self.numbers.push(id);
                self.text(0, Order::TextNumbers);
            }
            Draw::TextAndMany(count) => {
                self.many(count);
                self.text(0, Order::TextNumbers);
            }
            Draw::RowOfId => {
                let key = self.uniform();
                self.numbers.extend([self.id, key]);
                self.both_texts();
            }
            Draw::Row => {
                let key = self.uniform();
                self.numbers.push(key);
                self.both_texts();
            }
        }
    }

    fn many(&mut self, count: u32) {
        for _ in 0..count {
            let id = self.uniform();
            self.numbers.push(id);
        }
    }

    fn text(&mut self, which: usize, order: Order) {
        self.random.digits(GROUPS[which], &mut self.texts[which]);
        self.order = order;
    }

    fn both_texts(&mut self) {
        self.text(0, Order::NumbersTexts);
        self.text(1, Order::NumbersTexts);
    }

    fn values(&self) -> Vec<Value<'_>> {
        let numbers = self.numbers.iter().map(|number| Value::Int(*number));
        let text = |which: usize| Value::Text(self.texts[which].as_str());
        match self.order {
            Order::Numbers => numbers.collect(),
            Order::TextNumbers => std::iter::once(text(0)).chain(numbers).collect(),
            Order::NumbersTexts => numbers.chain([text(0), text(1)]).collect(),
        }
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn parameters_are_those_that_statements_ask_for() {
        let mut draws = Draws::new(1000, 3);
        draws.draw(Draw::Hot(3));
        assert_eq!(draws.values(), [Value::Int(501), Value::Int(502), Value::Int(503)]);
        draws.draw(Draw::Range(99));
        let range = draws.numbers.clone();
        assert!((1..=1000).contains(&range[0]) && range[1] == range[0] + 99);
        draws.draw(Draw::Id);
        let id = draws.id;
        draws.draw(Draw::TextAndId(Chosen::First));
        assert!(matches!(draws.values()[..], [Value::Text(c), Value::Int(1)] if c.len() == 119));
        draws.draw(Draw::RowOfId);
        let values = draws.values();
        assert_eq!(values[0], Value::Int(id), "the row that was deleted is inserted");
        assert!(
            matches!(values[2..], [Value::Text(c), Value::Text(pad)] if (c.len(), pad.len()) == (119, 59))
        );
        draws.draw(Draw::TextAndMany(100));
        assert_eq!(draws.values().len(), 101);
        draws.draw(Draw::Nothing);
        assert!(draws.values().is_empty());
    }

    #[test]
    fn each_group_of_statements_draws_its_table_and_a_deleted_row_returns_to_its_own() {
        let groups = |name: &str| {
            let lines = script(super::super::find(name).unwrap(), 1);
            lines.iter().filter(|line| begins_a_group(line.draw)).count()
        };
        // Point queries, and four kinds of ranges.
        assert_eq!(groups("read-only_range=100"), 5);
        // Two updates; the row that is deleted is inserted again.
        assert_eq!(groups("write-only"), 3);
        assert_eq!(groups("read-write_range=10"), 8);
        assert_eq!((groups("point-query"), groups("insert")), (1, 1));
        let lines = script(super::super::find("write-only").unwrap(), 1);
        let at = lines.iter().position(|line| line.sql.starts_with("DELETE")).unwrap();
        assert!(begins_a_group(lines[at].draw) && !begins_a_group(lines[at + 1].draw));
    }

    #[test]
    fn threads_with_equal_seeds_ask_for_equal_rows() {
        let ids = |seed| {
            let mut draws = Draws::new(1_000_000, seed);
            draws.draw(Draw::Many(20));
            draws.numbers
        };
        assert_eq!(ids(5), ids(5));
        assert_ne!(ids(5), ids(6));
        assert!(ids(5).iter().all(|id| (1..=1_000_000).contains(id)));
    }
}
