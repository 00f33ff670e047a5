//! The server's own reports beside the load: how far its redo log is, and how it would execute the load's statements.
//!
//! ```text
//! Inside: a connection of its own      redo_bytes: position of the WAL, or bytes of the redo log
//!                                      waits: what the load's connections do at this moment
//!                                      plans: EXPLAIN of each statement with literals that are always the same
//! ```
//! The load runs prepared statements, for which a server may choose a plan without looking at parameters (PostgreSQL from the sixth
//! execution on, where that costs no more): what is explained is how it would execute the same with literals.
//! Plans are kept without what differs from one parameter to the next: literals become `?`, estimates are left out. Two texts
//! that differ are two ways to execute a statement.

use crate::address::{Address, Product};
use crate::connection::{Connection, Value};
use crate::insert_benchmark::{Phase, rows as insert_rows, table_name};
#[cfg(doc)]
use crate::pool::Pool;
use crate::step::{Load, SqlStep};
use crate::sysbench::{self, client};
use crate::upkeep::DATABASE;
use outcrop_lab_load::steps::StatementPlan;

/// Looks at a server from beside the load.
pub struct Inside {
    connection: Connection,
}

impl Inside {
    /// Connects.
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub fn open(address: &Address) -> Result<Inside, String> {
        Ok(Inside { connection: Connection::open(address)? })
    }

    /// Bytes that were ever put into the redo log of `engine`'s tables, whose empty name is the server's own choice; only differences
    /// mean anything. The log of statements for copies of a server, MySQL's binlog, is not in it. `None` where the server does not
    /// say.
    ///
    /// # Errors
    /// The server's words.
    pub fn redo_bytes(&mut self, engine: &str) -> Result<Option<u64>, String> {
        let text = match self.connection.product() {
            Product::Postgres => {
                self.connection.value("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")?
            }
            Product::MySql => self.log_counter(engine, |log| log.bytes)?,
        };
        Ok(text.and_then(|text| text.split('.').next()?.parse().ok()))
    }

    /// Times that the log of [`Inside::redo_bytes`] was ever brought to its device; only differences mean anything. A server that
    /// writes its log synchronously syncs it by each write. PostgreSQL says so in time from version 15 on, if
    /// [`Pool::report_statistics`] asked it to: connections of 14 at work report late, and cannot be asked. `None` where the server does not say.
    ///
    /// # Errors
    /// The server's words.
    pub fn log_syncs(&mut self, engine: &str) -> Result<Option<u64>, String> {
        let text = match self.connection.product() {
            Product::Postgres => match log_syncs_query(self.version_number()?) {
                Some(query) => self.connection.value(&query)?,
                None => None,
            },
            Product::MySql => self.log_counter(engine, |log| log.syncs)?,
        };
        Ok(text.and_then(|text| text.parse().ok()))
    }

    /// PostgreSQL's version as a number: 180001 is 18.1.
    fn version_number(&mut self) -> Result<u32, String> {
        let text = self.connection.value("SHOW server_version_num")?;
        Ok(text.and_then(|text| text.parse().ok()).unwrap_or(0))
    }

    /// A counter of MySQL's about the log of `engine`'s tables.
    fn log_counter(
        &mut self,
        engine: &str,
        of: fn(&LogCounters) -> &'static str,
    ) -> Result<Option<String>, String> {
        let usual = match engine {
            "" => self.connection.value("SELECT @@default_storage_engine")?.unwrap_or_default(),
            named => named.to_string(),
        };
        let Some(counters) = log_counters(&usual) else { return Ok(None) };
        let rows = self.connection.rows(&format!("SHOW GLOBAL STATUS LIKE '{}'", of(&counters)))?;
        Ok(rows.into_iter().next().and_then(|row| row.into_iter().nth(1)).flatten())
    }

    /// Bytes of the connection's database: its tables and indexes with what is free in them. `None` where only files say so.
    ///
    /// # Errors
    /// The server's words.
    pub fn database_bytes(&mut self) -> Result<Option<u64>, String> {
        let text = match self.connection.product() {
            Product::Postgres => self.connection.value("SELECT pg_database_size(current_database())")?,
            Product::MySql => None,
        };
        Ok(text.and_then(|text| text.parse().ok()))
    }

    /// The current state of each of the load's connections that is at work: `running`, or the name of what it waits
    /// for.
    ///
    /// # Errors
    /// The server's words.
    pub fn waits(&mut self) -> Result<Vec<String>, String> {
        let mut rows = match self.connection.product() {
            Product::Postgres => self.connection.rows(
                "SELECT wait_event_type || ':' || wait_event FROM pg_stat_activity WHERE state = 'active' AND pid <> \
                 pg_backend_pid() AND backend_type = 'client backend' AND datname = current_database()",
            )?,
            Product::MySql => {
                let mut rows = self.connection.rows("SHOW PROCESSLIST")?;
                // Database, command and statement: who is at work on the lab's tables, and not this look itself.
                let text = |row: &[Option<String>], at: usize| row.get(at).cloned().flatten().unwrap_or_default();
                rows.retain(|row| is_of_load(&[text(row, 3), text(row, 4), text(row, 7)]));
                rows.iter_mut().for_each(|row| *row = vec![Some(text(row, 6)).filter(|state| !state.is_empty())]);
                rows
            }
        };
        Ok(rows
            .drain(..)
            .map(|row| row.into_iter().next().flatten().unwrap_or("running".to_string()))
            .collect())
    }

    /// How the server would execute the statements of `step` now: those that search; none of loads.
    ///
    /// # Errors
    /// The server's words.
    pub fn plans(&mut self, step: &SqlStep) -> Result<Vec<StatementPlan>, String> {
        let product = self.connection.product();
        let plan = |(statement, literal): (String, String)| {
            let lines: Vec<String> = match product {
                Product::Postgres => {
                    let rows = self.connection.rows(&format!("EXPLAIN (COSTS OFF) {literal}"))?;
                    rows.into_iter().map(postgres_line).collect()
                }
                Product::MySql => {
                    self.connection.rows(&format!("EXPLAIN {literal}"))?.into_iter().map(mysql_line).collect()
                }
            };
            Ok(StatementPlan { statement, plan: lines.join("; ") })
        };
        statements(product, step).into_iter().map(plan).collect()
    }
}

/// Whether a connection of MySQL with this database, command and statement is one of the load's at work.
fn is_of_load([database, command, statement]: &[String; 3]) -> bool {
    database == DATABASE && matches!(command.as_str(), "Query" | "Execute") && statement != "SHOW PROCESSLIST"
}

/// Names of counters about the log of an engine of MySQL.
struct LogCounters {
    bytes: &'static str,
    syncs: &'static str,
}

fn log_counters(engine: &str) -> Option<LogCounters> {
    match engine.to_ascii_lowercase().as_str() {
        "innodb" => Some(LogCounters { bytes: "Innodb_os_log_written", syncs: "Innodb_os_log_fsyncs" }),
        "rocksdb" => Some(LogCounters { bytes: "Rocksdb_wal_bytes", syncs: "Rocksdb_wal_synced" }),
        _ => None,
    }
}

/// The query for the syncs of the WAL of a PostgreSQL of this version; nothing before 14.
fn log_syncs_query(version: u32) -> Option<String> {
    let (writes, syncs, place) = match version {
        180_000.. => ("sum(writes)", "sum(fsyncs)", "pg_stat_io WHERE object = 'wal' AND context = 'normal'"),
        150_000.. => ("wal_write", "wal_sync", "pg_stat_wal"),
        _ => return None,
    };
    // With open_sync and open_datasync a write returns once the device has it.
    Some(format!(
        "SELECT CASE WHEN current_setting('wal_sync_method') LIKE 'open%' THEN {writes} ELSE {syncs} END FROM {place}"
    ))
}

/// Statements of a step that search, as reports show them and with literals for parameters.
fn statements(product: Product, step: &SqlStep) -> Vec<(String, String)> {
    let table = table_name(1);
    let number = |sql: String| {
        let literal = with_literals(&sql, &vec![Value::Int(1); sql.matches('?').count()]);
        (shown(&sql), literal)
    };
    match &step.load {
        Load::Sysbench(name) => {
            let searches =
                |sql: &str| ["SELECT", "UPDATE", "DELETE"].iter().any(|word| sql.starts_with(word));
            let example = |sql: &str, values: &[Value<'_>]| {
                searches(sql).then(|| (shown(sql), with_literals(sql, values)))
            };
            let lines = sysbench::find(name).map(|test| client::examples(test, step.rows, example));
            lines.unwrap_or_default().into_iter().flatten().collect()
        }
        Load::Insert(insert) => match insert.phase {
            Phase::Query(kind, _) => {
                insert_rows::queries(product, &table, kind).into_iter().map(number).collect()
            }
            Phase::Churn => vec![number(insert_rows::delete(product, &table, insert.batch))],
            Phase::Fill | Phase::Index => Vec::new(),
        },
        Load::SysbenchLoad | Load::Postwrite(_) => Vec::new(),
    }
}

/// `sql` with `values` in place of its question marks. Texts of the lab are digits and lines: they need no quoting.
fn with_literals(sql: &str, values: &[Value<'_>]) -> String {
    let mut text = String::with_capacity(sql.len() * 2);
    for (number, part) in sql.split('?').enumerate() {
        if let Some(value) = number.checked_sub(1).and_then(|number| values.get(number)) {
            match value {
                Value::Int(value) => text.push_str(&value.to_string()),
                Value::Text(value) => text.push_str(&format!("'{value}'")),
            }
        }
        text.push_str(part);
    }
    text
}

/// A statement without the length of its lists.
fn shown(sql: &str) -> String {
    let mut text = sql.to_string();
    while text.contains("?,?") {
        text = text.replace("?,?", "?");
    }
    text
}

/// A line of PostgreSQL's plan, indented as it is.
fn postgres_line(row: Vec<Option<String>>) -> String {
    without_literals(&row.into_iter().next().flatten().unwrap_or_default())
}

/// Texts, numbers and lists as `?`; numbers that are part of a name stay.
fn without_literals(line: &str) -> String {
    let mut kept = String::with_capacity(line.len());
    let mut rest = line.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '\'' => {
                while rest.next_if(|next| *next != '\'').is_some() {}
                rest.next();
                kept.push('?');
            }
            digit if digit.is_ascii_digit() && !kept.ends_with(|c: char| c.is_alphanumeric() || c == '_') => {
                while rest.next_if(char::is_ascii_digit).is_some() {}
                kept.push('?');
            }
            other => kept.push(other),
        }
    }
    kept.trim_end().to_string()
}

/// A row of MySQL's plan: how the table is read, by which index, and what is done beside it. Older versions lack two columns.
fn mysql_line(row: Vec<Option<String>>) -> String {
    let columns: &[usize] = if row.len() >= 12 { &[1, 2, 4, 6, 11] } else { &[1, 2, 3, 5, 9] };
    let cell = |at: &usize| row.get(*at).cloned().flatten();
    columns.iter().filter_map(cell).filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_become_literals_and_lists_lose_their_length() {
        assert_eq!(with_literals("a=? AND b=?", &[Value::Int(7), Value::Text("1-2")]), "a=7 AND b='1-2'");
        assert_eq!(shown("id IN (?,?,?,?,?)"), "id IN (?)");
        assert_eq!(shown("BETWEEN ? AND ?"), "BETWEEN ? AND ?");
    }

    #[test]
    fn plans_keep_names_and_lose_literals() {
        let line = "  Index Cond: (id = ANY ('{1,22,333}'::integer[])) on sbtest1 k_1 >= 500 ";
        assert_eq!(without_literals(line), "  Index Cond: (id = ANY (?::integer[])) on sbtest1 k_1 >= ?");
        assert_eq!(without_literals("an open 'text"), "an open ?");
    }

    #[test]
    fn the_redo_log_is_that_of_the_tables_engine() {
        let bytes = |engine: &str| log_counters(engine).map(|log| log.bytes);
        assert_eq!(bytes("InnoDB"), Some("Innodb_os_log_written"));
        assert_eq!(bytes("ROCKSDB"), Some("Rocksdb_wal_bytes"));
        assert_eq!(bytes("MyISAM"), None);
    }

    #[test]
    fn each_version_is_asked_where_it_counts_syncs() {
        assert!(
            log_syncs_query(180_001)
                .unwrap()
                .contains("sum(fsyncs) END FROM pg_stat_io WHERE object = 'wal'")
        );
        assert!(log_syncs_query(150_014).unwrap().ends_with("wal_sync END FROM pg_stat_wal"));
        assert_eq!(log_syncs_query(140_019), None, "it reports late");
    }

    #[test]
    fn connections_of_others_are_not_the_load_s() {
        let row = |database: &str, command: &str, statement: &str| {
            is_of_load(&[database, command, statement].map(str::to_string))
        };
        assert!(row("outcrop_lab", "Execute", "SELECT c FROM sbtest1 WHERE id=?"));
        assert!(!row("shop", "Execute", "SELECT c FROM sbtest1 WHERE id=?"));
        assert!(!row("outcrop_lab", "Sleep", "") && !row("outcrop_lab", "Query", "SHOW PROCESSLIST"));
    }

    #[test]
    fn both_shapes_of_mysqls_plans_are_read() {
        let row = |text: &str| {
            text.split('|').map(|cell| (cell != "NULL").then(|| cell.to_string())).collect::<Vec<_>>()
        };
        let new = row("1|SIMPLE|sbtest1|NULL|range|PRIMARY|PRIMARY|4|NULL|100|100.00|Using where");
        let old = row("1|SIMPLE|sbtest1|range|PRIMARY|PRIMARY|4|NULL|100|Using where");
        assert_eq!(mysql_line(new), "SIMPLE sbtest1 range PRIMARY Using where");
        assert_eq!(mysql_line(old), "SIMPLE sbtest1 range PRIMARY Using where");
    }

    #[test]
    fn every_test_has_an_example_for_each_statement_that_searches() {
        for test in sysbench::TESTS {
            let load = Load::Sysbench(test.name.to_string());
            let step = SqlStep { load, tables: 1, rows: 1000, engine: String::new() };
            let found = statements(Product::Postgres, &step);
            assert!(found.iter().all(|(_, literal)| !literal.contains('?')), "{found:?}");
            assert_eq!(found.is_empty(), test.name.starts_with("insert"), "{}", test.name);
        }
    }
}
