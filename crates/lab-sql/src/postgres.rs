//! PostgreSQL, over the crate `postgres`.

use crate::address::Address;
use crate::connection::{Answer, Refused, Value};
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::private::BytesMut;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use postgres::{Config, NoTls, SimpleQueryMessage, Statement};
use std::error::Error;
use std::time::Duration;

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(30);

pub(crate) struct Client(postgres::Client);

pub(crate) struct Prepared {
    statement: Statement,
    returns_rows: bool,
}

impl Client {
    pub fn open(address: &Address) -> Result<Client, String> {
        let mut config = Config::new();
        match &address.socket {
            Some(directory) => config.host_path(directory),
            None => config.host(&address.host),
        };
        config.port(address.port).user(&address.user).dbname(&address.database);
        config.application_name("outcrop-lab").connect_timeout(CONNECT);
        if let Some(password) = &address.password {
            config.password(password);
        }
        config.connect(NoTls).map(Client).map_err(|error| words(&error))
    }

    pub fn prepare(&mut self, sql: &str) -> Result<Prepared, String> {
        let statement = self.0.prepare(sql).map_err(|error| words(&error))?;
        let returns_rows = !statement.columns().is_empty();
        Ok(Prepared { statement, returns_rows })
    }

    pub fn execute(&mut self, prepared: &Prepared, values: &[Value<'_>]) -> Result<Answer, Refused> {
        let parameters = values.iter().map(|value| value as &(dyn ToSql + Sync));
        let mut rows = self.0.query_raw(&prepared.statement, parameters).map_err(refused)?;
        let mut answer = Answer::default();
        while let Some(row) = rows.next().map_err(refused)? {
            answer.rows += 1;
            answer.bytes += row.raw_size_bytes() as u64;
        }
        if !prepared.returns_rows {
            answer.rows = rows.rows_affected().unwrap_or(0);
        }
        Ok(answer)
    }

    pub fn run(&mut self, sql: &str) -> Result<(), String> {
        self.0.batch_execute(sql).map_err(|error| words(&error))
    }

    pub fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, String> {
        let messages = self.0.simple_query(sql).map_err(|error| words(&error))?;
        let row = |message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|column| row.get(column).map(str::to_string)).collect())
            }
            _ => None,
        };
        Ok(messages.into_iter().filter_map(row).collect())
    }
}

/// Deadlocks, rows that somebody else inserted first, and snapshots that are too old, as sysbench sees it.
fn refused(error: postgres::Error) -> Refused {
    use postgres::error::SqlState;
    let conflicts =
        [SqlState::T_R_DEADLOCK_DETECTED, SqlState::UNIQUE_VIOLATION, SqlState::T_R_SERIALIZATION_FAILURE];
    let conflict = error.code().is_some_and(|code| conflicts.contains(code));
    Refused { text: words(&error), conflict }
}

/// The server's words, or the chain of causes: the crate's own text only names the kind of error.
fn words(error: &postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return said.to_string();
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

impl ToSql for Value<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match (self, kind) {
            (Value::Int(number), &Type::INT2) => i16::try_from(*number)?.to_sql(kind, out),
            (Value::Int(number), &Type::INT4) => i32::try_from(*number)?.to_sql(kind, out),
            (Value::Int(number), _) => number.to_sql(kind, out),
            (Value::Text(text), _) => text.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        <i16 as ToSql>::accepts(kind)
            || <i32 as ToSql>::accepts(kind)
            || <i64 as ToSql>::accepts(kind)
            || <&str as ToSql>::accepts(kind)
    }

    to_sql_checked!();
}
