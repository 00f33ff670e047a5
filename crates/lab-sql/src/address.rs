//! Where a server listens, and who asks.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// The products whose protocols the lab speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Product {
    /// PostgreSQL.
    Postgres,
    /// MySQL, and MariaDB.
    MySql,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The product whose protocol the server speaks.
    pub product: Product,
    /// Directory of the socket (PostgreSQL), or the socket (MySQL); without one `host` and `port` are used.
    pub socket: Option<PathBuf>,
    /// Name or address of the host.
    pub host: String,
    /// Port; with a socket of PostgreSQL a part of its name.
    pub port: u16,
    /// User.
    pub user: String,
    /// Password, if there is one.
    pub password: Option<String>,
    /// Database.
    pub database: String,
}

impl Address {
    /// The same server, with another database.
    #[must_use]
    pub fn with_database(&self, database: &str) -> Address {
        Address { database: database.to_string(), ..self.clone() }
    }
}

/// Never the password: addresses are printed in messages.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.socket {
            Some(socket) => write!(f, "{}@{}/{}", self.user, socket.display(), self.database),
            None => write!(f, "{}@{}:{}/{}", self.user, self.host, self.port, self.database),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {self}", self.product)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_printed() {
        let address = Address {
            product: Product::Postgres,
            socket: None,
            host: "h".into(),
            port: 1,
            user: "u".into(),
            password: Some("secret".into()),
            database: "d".into(),
        };
        assert_eq!(address.to_string(), "u@h:1/d");
        assert!(!format!("{address:?}").contains("secret"));
    }
}
