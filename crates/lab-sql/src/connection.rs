//! A connection with its prepared statements, one for both products.
//!
//! Statements are written with `?` for parameters; PostgreSQL gets `$1`, `$2`.

use crate::address::{Address, Product};
use crate::{mysql, postgres};

/// A parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A whole number, sent in the width of the column.
    Int(i64),
    /// Text.
    Text(&'a str),
}

/// The size of a statement's result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Rows it returned, or changed if it returns none.
    pub rows: u64,
    /// Bytes of the rows it returned.
    pub bytes: u64,
}

/// Why a statement was refused.
pub(crate) struct Refused {
    pub text: String,
    /// It met another transaction: rolled back and done again it may pass.
    pub conflict: bool,
}

impl Refused {
    /// Something that trying again does not mend.
    pub fn of(text: String) -> Refused {
        Refused { text, conflict: false }
    }
}

/// A statement that one connection has prepared.
pub struct Prepared(Kind);

enum Kind {
    Postgres(postgres::Prepared),
    MySql(mysql::Prepared),
}

enum Client {
    Postgres(Box<postgres::Client>),
    MySql(mysql::Client),
}

/// A connection to a server.
pub struct Connection {
    client: Client,
    /// The last statement met another transaction.
    conflict: bool,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// The server's or the system's words, with the address and never the password.
    pub fn open(address: &Address) -> Result<Connection, String> {
        let client = match address.product {
            Product::Postgres => {
                postgres::Client::open(address).map(|client| Client::Postgres(Box::new(client)))
            }
            Product::MySql => mysql::Client::open(address).map(Client::MySql),
        };
        let client = client.map_err(|why| format!("cannot connect to {address}: {why}"))?;
        Ok(Connection { client, conflict: false })
    }

    /// The product whose protocol the server speaks.
    pub fn product(&self) -> Product {
        match self.client {
            Client::Postgres(_) => Product::Postgres,
            Client::MySql(_) => Product::MySql,
        }
    }

    /// Prepares `sql`, with `?` for each parameter.
    ///
    /// # Errors
    /// The server's words, with the statement.
    pub fn prepare(&mut self, sql: &str) -> Result<Prepared, String> {
        let prepared = match &mut self.client {
            Client::Postgres(client) => client.prepare(&numbered(sql)).map(Kind::Postgres),
            Client::MySql(client) => client.prepare(sql).map(Kind::MySql),
        };
        prepared.map(Prepared).map_err(|why| format!("{}: {why}", shortened(sql)))
    }

    /// Has the server forget a statement.
    ///
    /// # Errors
    /// The connection's words.
    pub fn close(&mut self, prepared: Prepared) -> Result<(), String> {
        match (&mut self.client, prepared.0) {
            (Client::Postgres(client), Kind::Postgres(statement)) => client.close(&statement),
            (Client::MySql(client), Kind::MySql(statement)) => client.close(statement),
            _ => Err("a statement belongs to the connection that prepared it".to_string()),
        }
    }

    /// Runs a prepared statement and reads all its rows.
    ///
    /// # Errors
    /// The server's words. A statement of another connection is refused.
    pub fn execute(&mut self, prepared: &Prepared, values: &[Value<'_>]) -> Result<Answer, String> {
        let done = match (&mut self.client, &prepared.0) {
            (Client::Postgres(client), Kind::Postgres(statement)) => client.execute(statement, values),
            (Client::MySql(client), Kind::MySql(statement)) => client.execute(statement, values),
            _ => return Err("a statement belongs to the connection that prepared it".to_string()),
        };
        done.map_err(|refused| {
            self.conflict = refused.conflict;
            refused.text
        })
    }

    /// Whether the statement that failed last met another transaction: rolled back and done again it may pass.
    pub fn was_conflict(&self) -> bool {
        self.conflict
    }

    /// Runs statements as text, separated by semicolons for PostgreSQL: for schemas and upkeep.
    ///
    /// # Errors
    /// The server's words, with the statement.
    pub fn run(&mut self, sql: &str) -> Result<(), String> {
        let done = match &mut self.client {
            Client::Postgres(client) => client.run(sql),
            Client::MySql(client) => client.run(sql),
        };
        done.map_err(|why| format!("{}: {why}", shortened(sql)))
    }

    /// The rows of a statement, columns as text.
    ///
    /// # Errors
    /// The server's words, with the statement.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, String> {
        let rows = match &mut self.client {
            Client::Postgres(client) => client.rows(sql),
            Client::MySql(client) => client.rows(sql),
        };
        rows.map_err(|why| format!("{}: {why}", shortened(sql)))
    }

    /// The first column of the first row, if there is one.
    ///
    /// # Errors
    /// As [`Connection::rows`].
    pub fn value(&mut self, sql: &str) -> Result<Option<String>, String> {
        Ok(self.rows(sql)?.into_iter().next().and_then(|row| row.into_iter().next()).flatten())
    }
}

/// `?` as `$1`, `$2` and so on; there are no question marks in literals of the lab's statements.
fn numbered(sql: &str) -> String {
    let mut text = String::with_capacity(sql.len() + 16);
    for (number, part) in sql.split('?').enumerate() {
        if number > 0 {
            text.push_str(&format!("${number}"));
        }
        text.push_str(part);
    }
    text
}

/// A statement as messages show it: those with a thousand parameters only begin.
fn shortened(sql: &str) -> String {
    const MOST: usize = 80;
    match sql.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &sql[..end]),
        None => sql.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered_in_order() {
        assert_eq!(numbered("a = ? AND b IN (?,?)"), "a = $1 AND b IN ($2,$3)");
        assert_eq!(numbered("BEGIN"), "BEGIN");
        assert_eq!(shortened(&"x".repeat(200)).len(), 83);
    }
}
