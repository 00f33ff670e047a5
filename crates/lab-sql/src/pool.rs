//! Connections that outlive steps: a thread takes one, and gives it back when its part of a step is over.
//!
//! Targets take turns several times a second; connecting and preparing anew at each turn would be measured.

use crate::address::{Address, Product};
use crate::connection::{Connection, Prepared};
use std::ops::{Deref, DerefMut};
use std::sync::Mutex;

/// A connection with a number and the statements it has prepared.
pub struct Client {
    /// Its number, from 0: no two in use at once have the same.
    pub number: usize,
    /// The connection.
    pub connection: Connection,
    /// The purpose of the statements, and the statements in the order they were prepared.
    prepared: (String, Vec<Prepared>),
}

impl Client {
    /// Prepares the statements that `sql` gives, unless those at hand are for the same `purpose`.
    ///
    /// # Errors
    /// The server's words.
    pub fn prepare(&mut self, purpose: &str, sql: impl FnOnce() -> Vec<String>) -> Result<(), String> {
        if self.prepared.0 == purpose {
            return Ok(());
        }
        let (_, old) = std::mem::take(&mut self.prepared);
        old.into_iter().try_for_each(|statement| self.connection.close(statement))?;
        let statements = sql().iter().map(|sql| self.connection.prepare(sql)).collect::<Result<_, _>>()?;
        self.prepared = (purpose.to_string(), statements);
        Ok(())
    }

    /// The connection, and its statements.
    pub fn parts(&mut self) -> (&mut Connection, &[Prepared]) {
        (&mut self.connection, &self.prepared.1)
    }
}

/// The connections of a session to one server.
pub struct Pool {
    address: Address,
    idle: Mutex<Vec<Client>>,
    /// Numbers that were given out.
    numbers: Mutex<usize>,
}

impl Pool {
    /// No connections yet, to the server at `address`.
    pub fn new(address: Address) -> Pool {
        Pool { address, idle: Mutex::new(Vec::new()), numbers: Mutex::new(0) }
    }

    /// The server.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// A connection: the idle one with the lowest number, or a new one.
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub fn take(&self) -> Result<Taken<'_>, String> {
        let idle = {
            let mut idle = self.idle.lock().expect("nobody panics with it");
            let lowest = (0..idle.len()).min_by_key(|at| idle[*at].number);
            lowest.map(|at| idle.swap_remove(at))
        };
        let client = match idle {
            Some(client) => client,
            None => {
                let connection = Connection::open(&self.address)?;
                let mut numbers = self.numbers.lock().expect("nobody panics with it");
                *numbers += 1;
                Client { number: *numbers - 1, connection, prepared: (String::new(), Vec::new()) }
            }
        };
        Ok(Taken { pool: self, client: Some(client) })
    }

    /// Has idle connections report what they have counted so far: PostgreSQL's do it once a second, from version 15 on when they are
    /// asked to. Of other servers, whose counters are always up to date, nothing is asked.
    ///
    /// # Errors
    /// The server's words.
    pub fn report_statistics(&self) -> Result<(), String> {
        if self.address.product != Product::Postgres {
            return Ok(());
        }
        let mut idle = self.idle.lock().expect("nobody panics with it");
        for client in idle.iter_mut() {
            let known = "SELECT count(*) FROM pg_proc WHERE proname = 'pg_stat_force_next_flush'";
            if client.connection.value(known)?.as_deref() != Some("1") {
                break;
            }
            client.connection.value("SELECT pg_stat_force_next_flush()")?;
        }
        Ok(())
    }

    /// Closes idle connections: a server that is stopped waits for them, and tables in use cannot be dropped.
    pub fn close(&self) {
        self.idle.lock().expect("nobody panics with it").clear();
        *self.numbers.lock().expect("nobody panics with it") = 0;
    }
}

/// A connection that goes back to its pool.
pub struct Taken<'a> {
    pool: &'a Pool,
    client: Option<Client>,
}

impl Deref for Taken<'_> {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.client.as_ref().expect("taken until dropped")
    }
}

impl DerefMut for Taken<'_> {
    fn deref_mut(&mut self) -> &mut Client {
        self.client.as_mut().expect("taken until dropped")
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let client = self.client.take().expect("taken until dropped");
        self.pool.idle.lock().expect("nobody panics with it").push(client);
    }
}
