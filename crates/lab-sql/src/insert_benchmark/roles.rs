//! The work of one connection: inserts, deletes, or queries.

use super::rows;
use super::{Queries, table_name};
use crate::address::Product;
use crate::connection::Value;
use crate::pool::{Pool, Taken};
use crate::text::Random;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Inserts transactions of rows.
pub(super) struct Inserter<'a> {
    client: Taken<'a>,
    batch: u32,
    random: Random,
    numbers: Vec<i64>,
    texts: Vec<String>,
}

impl<'a> Inserter<'a> {
    pub fn new(pool: &'a Pool, number: u32, batch: u32, seed: u64) -> Result<Inserter<'a>, String> {
        let (mut client, table) = (pool.take()?, table_name(number));
        let product = client.connection.product();
        client.prepare(&format!("insert {table} {batch}"), || vec![rows::insert(product, &table, batch)])?;
        let texts = vec![String::new(); batch as usize];
        Ok(Inserter { client, batch, random: Random::new(seed), numbers: Vec::new(), texts })
    }

    /// Inserts one transaction; gives bytes of its rows.
    pub fn insert(&mut self) -> Result<u64, String> {
        // One time for the whole statement.
        let time = now();
        self.numbers.clear();
        for text in &mut self.texts {
            let each = [rows::CASH_REGISTERS, rows::CUSTOMERS, rows::PRODUCTS, rows::PRICES];
            self.numbers.extend(each.map(|bound| self.random.below(bound) as i64));
            rows::data(&mut self.random, text);
        }
        let mut values = Vec::with_capacity(6 * self.batch as usize);
        for (numbers, text) in self.numbers.chunks_exact(4).zip(&self.texts) {
            values.push(Value::Text(&time));
            values.extend(numbers.iter().map(|number| Value::Int(*number)));
            values.push(Value::Text(text));
        }
        let (connection, prepared) = self.client.parts();
        connection.execute(&prepared[0], &values)?;
        Ok(self.texts.iter().map(|text| text.len() as u64 + 24).sum())
    }

    /// Runs statements that change the table's schema.
    pub fn run(&mut self, sql: &[String]) -> Result<(), String> {
        sql.iter().try_for_each(|sql| self.client.connection.run(sql))
    }

    /// The product whose protocol the server speaks.
    pub fn product(&self) -> Product {
        self.client.connection.product()
    }
}

/// Deletes the oldest rows.
pub(super) struct Deleter<'a> {
    client: Taken<'a>,
    batch: u32,
    table: String,
    /// Keys below it are gone.
    cursor: i64,
    loops: u64,
    /// Time spent in finding the oldest row: at the left edge of the index lie the rows that were deleted.
    pub searching: Duration,
}

impl<'a> Deleter<'a> {
    /// Statements after which the cursor is read from the table again.
    const AGAIN: u64 = 1000;

    pub fn new(pool: &'a Pool, number: u32, batch: u32) -> Result<Deleter<'a>, String> {
        let (mut client, table) = (pool.take()?, table_name(number));
        let product = client.connection.product();
        client.prepare(&format!("delete {table} {batch}"), || vec![rows::delete(product, &table, batch)])?;
        Ok(Deleter { client, batch, table, cursor: 0, loops: 0, searching: Duration::ZERO })
    }

    /// Deletes one transaction's rows; gives how many there were.
    pub fn delete(&mut self) -> Result<u64, String> {
        if self.loops.is_multiple_of(Self::AGAIN) {
            let begun = std::time::Instant::now();
            let least = self.client.connection.value(&rows::edge(&self.table, "MIN"))?;
            self.searching += begun.elapsed();
            self.cursor = least.and_then(|least| least.parse().ok()).unwrap_or(self.cursor);
        }
        self.loops += 1;
        let (connection, prepared) = self.client.parts();
        let answer = connection.execute(&prepared[0], &[Value::Int(self.cursor)])?;
        self.cursor += i64::from(self.batch);
        Ok(answer.rows)
    }
}

/// Asks for rows.
pub(super) struct Querier<'a> {
    client: Taken<'a>,
    kind: Queries,
    table: String,
    random: Random,
    /// Keys that there are about now.
    keys: [i64; 2],
    asked: u64,
    /// Queries that had been asked when the greatest key was read.
    read: Option<u64>,
}

impl<'a> Querier<'a> {
    /// Queries after which the greatest key is read again.
    const AGAIN: u64 = 100;

    pub fn new(pool: &'a Pool, number: u32, kind: Queries, seed: u64) -> Result<Querier<'a>, String> {
        let (mut client, table) = (pool.take()?, table_name(number));
        let product = client.connection.product();
        client.prepare(&format!("query {table} {kind:?}"), || rows::queries(product, &table, kind))?;
        let least = client.connection.value(&rows::edge(&table, "MIN"))?;
        let least = least.and_then(|least| least.parse().ok()).unwrap_or(0);
        Ok(Querier {
            client,
            kind,
            table,
            random: Random::new(seed),
            keys: [least, least],
            asked: 0,
            read: None,
        })
    }

    /// Whether the greatest key is to be read again before the next query.
    pub fn is_due(&self) -> bool {
        self.kind == Queries::Point && self.asked.is_multiple_of(Self::AGAIN) && self.read != Some(self.asked)
    }

    /// Reads the greatest key: no part of a query, so that it is done before one is timed.
    pub fn read_edge(&mut self) -> Result<(), String> {
        let greatest = self.client.connection.value(&rows::edge(&self.table, "MAX"))?;
        self.keys[1] = greatest.and_then(|key| key.parse().ok()).unwrap_or(self.keys[1]);
        self.read = Some(self.asked);
        Ok(())
    }

    /// Asks once; gives rows and bytes of the answer.
    pub fn ask(&mut self) -> Result<(u64, u64), String> {
        let answer = match self.kind {
            Queries::Range => {
                let which = self.random.below(rows::FROM.len() as u64) as usize;
                let from = self.random.below(rows::FROM[which]) as i64;
                let (connection, prepared) = self.client.parts();
                connection.execute(&prepared[which], &[Value::Int(from)])?
            }
            Queries::Point => {
                let [least, greatest] = self.keys;
                let span = (greatest - least).max(1) as u64;
                let ids: Vec<Value<'_>> = (0..rows::ROWS_OF_QUERY)
                    .map(|_| Value::Int(least + self.random.below(span) as i64))
                    .collect();
                let (connection, prepared) = self.client.parts();
                connection.execute(&prepared[0], &ids)?
            }
        };
        self.asked += 1;
        Ok((answer.rows, answer.bytes))
    }

    /// Rows below this key are gone.
    pub fn move_up(&mut self, least: i64) {
        self.keys[0] = self.keys[0].max(least).min(self.keys[1]);
    }
}

impl Deleter<'_> {
    /// Keys below it are gone.
    pub fn cursor(&self) -> i64 {
        self.cursor
    }
}

/// The time to the second, in UTC.
fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    jiff::Timestamp::from_second(seconds as i64)
        .map_or_else(|_| String::new(), |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string())
}
