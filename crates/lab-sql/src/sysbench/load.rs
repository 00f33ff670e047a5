//! Tables and rows: `id`, `k`, `c`, `pad`, rows in the order of ids, the secondary index after them.

use super::client::GROUPS;
use super::table_name;
use crate::address::Product;
use crate::connection::Value;
use crate::pool::{Pool, Taken};
use crate::text::Random;
use outcrop_lab_load::steps::{Done, Operate};
use std::sync::atomic::{AtomicU32, Ordering};

/// Rows of one INSERT.
const BATCH: u64 = 500;

/// The state that the threads of a load share.
pub struct Common<'a> {
    /// The server.
    pub pool: &'a Pool,
    /// Tables.
    pub tables: u32,
    /// Rows of each.
    pub rows: u64,
    /// Engine of MySQL's tables; empty: the server's own choice.
    pub engine: &'a str,
    /// Seed of the rows of the first table; that of each other one is by its number, whichever thread fills it.
    pub seed: u64,
    /// The last table that a thread has taken.
    pub taken: &'a AtomicU32,
}

/// The statement that makes table `number`.
pub fn create_table(product: Product, number: u32, engine: &str) -> String {
    let (id, tail) = match product {
        Product::Postgres => ("SERIAL", String::new()),
        Product::MySql if engine.is_empty() => ("INTEGER NOT NULL AUTO_INCREMENT", String::new()),
        Product::MySql => ("INTEGER NOT NULL AUTO_INCREMENT", format!(" ENGINE={engine}")),
    };
    format!(
        "CREATE TABLE {} (id {id}, k INTEGER DEFAULT 0 NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, \
         pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)){tail}",
        table_name(number)
    )
}

/// A thread that loads one table after the other.
pub struct Loader<'a> {
    common: &'a Common<'a>,
    client: Result<Taken<'a>, String>,
    random: Random,
    /// The table under way, and the rows that it lacks.
    table: Option<(u32, u64)>,
    over: bool,
}

impl<'a> Loader<'a> {
    /// A thread with a connection of its own.
    pub fn new(common: &'a Common<'a>) -> Loader<'a> {
        let (client, random) = (common.pool.take(), Random::new(common.seed));
        Loader { common, client, random, table: None, over: false }
    }

    /// Makes the next table, if one is left.
    fn next_table(&mut self) -> Result<Option<(u32, u64)>, String> {
        let number = self.common.taken.fetch_add(1, Ordering::Relaxed) + 1;
        if number > self.common.tables {
            return Ok(None);
        }
        self.random = Random::new(self.common.seed.wrapping_add(u64::from(number)));
        let client = self.client.as_mut().map_err(|why| why.clone())?;
        let product = client.connection.product();
        client.connection.run(&format!("DROP TABLE IF EXISTS {}", table_name(number)))?;
        client.connection.run(&create_table(product, number, self.common.engine))?;
        Ok(Some((number, self.common.rows)))
    }

    /// Inserts so many rows at once.
    fn insert(&mut self, table: u32, rows: u64) -> Result<u64, String> {
        let client = self.client.as_mut().map_err(|why| why.clone())?;
        let sql = || {
            let values = vec!["(?,?,?)"; rows as usize].join(",");
            vec![format!("INSERT INTO {} (k, c, pad) VALUES {values}", table_name(table))]
        };
        client.prepare(&format!("load {table} {rows}"), sql)?;
        let mut texts = vec![[String::new(), String::new()]; rows as usize];
        let mut keys = vec![0; rows as usize];
        for (texts, key) in texts.iter_mut().zip(&mut keys) {
            *key = self.random.between(1, self.common.rows) as i64;
            texts.iter_mut().zip(GROUPS).for_each(|(text, groups)| self.random.digits(groups, text));
        }
        let mut values = Vec::with_capacity(3 * rows as usize);
        for (key, texts) in keys.iter().zip(&texts) {
            values.extend([Value::Int(*key), Value::Text(&texts[0]), Value::Text(&texts[1])]);
        }
        let (connection, prepared) = client.parts();
        connection.execute(&prepared[0], &values)?;
        Ok(texts.iter().flatten().map(|text| text.len() as u64).sum())
    }

    fn index(&mut self, table: u32) -> Result<(), String> {
        let client = self.client.as_mut().map_err(|why| why.clone())?;
        client.connection.run(&format!("CREATE INDEX k_{table} ON {}(k)", table_name(table)))
    }
}

impl Operate for Loader<'_> {
    fn operate(&mut self, _ops: u64) -> Result<Done, String> {
        if self.table.is_none() {
            self.table = self.next_table()?;
        }
        let Some((table, left)) = self.table else {
            self.over = true;
            return Ok(Done { ops: 0, found: 0, bytes: 0 });
        };
        let rows = left.min(BATCH);
        let bytes = self.insert(table, rows)?;
        self.table = Some((table, left - rows)).filter(|(_, left)| *left > 0);
        if self.table.is_none() {
            self.index(table)?;
        }
        Ok(Done { ops: rows, found: rows, bytes })
    }

    fn is_over(&self) -> bool {
        self.over
    }
}
