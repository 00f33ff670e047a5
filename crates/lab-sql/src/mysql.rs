//! MySQL and MariaDB, over the crate `mysql`.

use crate::address::Address;
use crate::connection::{Answer, Refused, Value};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Params, Statement};
use std::time::Duration;

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(30);

pub(crate) struct Client(Conn);

pub(crate) enum Prepared {
    Statement(Statement),
    /// A statement that the server runs as text only.
    Text(String),
}

impl Client {
    pub fn open(address: &Address) -> Result<Client, String> {
        let database = Some(&address.database).filter(|name| !name.is_empty());
        let options = OptsBuilder::new()
            .user(Some(&address.user))
            .pass(address.password.as_deref())
            .db_name(database)
            .ip_or_hostname(Some(&address.host))
            .tcp_port(address.port)
            .socket(address.socket.as_ref().map(|socket| socket.display().to_string()))
            .prefer_socket(address.socket.is_some())
            // Every thread keeps its own statements: none is ever pushed out.
            .stmt_cache_size(0)
            .tcp_connect_timeout(Some(CONNECT));
        Conn::new(options).map(Client).map_err(|error| error.to_string())
    }

    pub fn prepare(&mut self, sql: &str) -> Result<Prepared, String> {
        // The protocol of prepared statements has no BEGIN; COMMIT goes the same way, as both are one pair.
        if matches!(sql, "BEGIN" | "COMMIT") {
            return Ok(Prepared::Text(sql.to_string()));
        }
        self.0.prep(sql).map(Prepared::Statement).map_err(|error| error.to_string())
    }

    pub fn close(&mut self, prepared: Prepared) -> Result<(), String> {
        match prepared {
            Prepared::Statement(statement) => self.0.close(statement).map_err(|error| error.to_string()),
            Prepared::Text(_) => Ok(()),
        }
    }

    pub fn execute(&mut self, prepared: &Prepared, values: &[Value<'_>]) -> Result<Answer, Refused> {
        let statement = match prepared {
            Prepared::Text(sql) => {
                return self.0.query_drop(sql).map(|()| Answer::default()).map_err(refused);
            }
            Prepared::Statement(statement) => statement,
        };
        let value = |value: &Value<'_>| match value {
            Value::Int(number) => mysql::Value::Int(*number),
            Value::Text(text) => mysql::Value::Bytes(text.as_bytes().to_vec()),
        };
        let parameters = match values {
            [] => Params::Empty,
            values => Params::Positional(values.iter().map(value).collect()),
        };
        let mut result = self.0.exec_iter(statement, parameters).map_err(refused)?;
        let mut answer = Answer::default();
        let returns_rows = !result.columns().as_ref().is_empty();
        // Once the answer has been read, it says 0.
        let affected = result.affected_rows();
        for row in result.by_ref() {
            let row = row.map_err(refused)?;
            answer.rows += 1;
            answer.bytes += (0..row.len()).map(|column| row.as_ref(column).map_or(0, size)).sum::<u64>();
        }
        if !returns_rows {
            answer.rows = affected;
        }
        Ok(answer)
    }

    pub fn run(&mut self, sql: &str) -> Result<(), String> {
        self.0.query_drop(sql).map_err(|error| error.to_string())
    }

    pub fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, String> {
        let rows: Vec<mysql::Row> = self.0.query(sql).map_err(|error| error.to_string())?;
        let cell = |value: mysql::Value| match value {
            mysql::Value::NULL => None,
            mysql::Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            other => Some(other.as_sql(true)),
        };
        Ok(rows.into_iter().map(|row| row.unwrap().into_iter().map(cell).collect()).collect())
    }
}

/// Deadlocks, waits for locks that were too long, and rows that somebody else changed or inserted first.
fn refused(error: mysql::Error) -> Refused {
    const CONFLICTS: [u16; 4] = [1213, 1205, 1020, 1062];
    let conflict = matches!(&error, mysql::Error::MySqlError(said) if CONFLICTS.contains(&said.code));
    Refused { text: error.to_string(), conflict }
}

/// Bytes of a value as the protocol carries it.
fn size(value: &mysql::Value) -> u64 {
    match value {
        mysql::Value::NULL => 0,
        mysql::Value::Bytes(bytes) => bytes.len() as u64,
        mysql::Value::Float(_) => 4,
        _ => 8,
    }
}
