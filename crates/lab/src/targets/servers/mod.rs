//! SQL servers: fetched, unpacked, initialised, started for a session and stopped with it.
//!
//! ```text
//! catalogue.rs (name@version -> program files, checksum locked) -> unpack.rs
//! config.rs (a file of settings, scaled and checked) -> running.rs: directory, start, ready, stop
//!     postgres.rs, mysql.rs: the words of each          tree.rs: processes, stopped, continued, counted
//!     patience.rs: how long one is waited for           secret.rs: its password, if it listens on a port
//!     leftovers.rs: shared memory of killed ones, removed    group.rs: a control group, for its processor time
//! session -> guard.rs (a process of the lab) -> server -> its own children
//! ```
//! Invariants: a server never runs as root. It listens on a socket in a directory that is closed to other users, or with a
//! password on the loopback device. It ends with its session
//! however that ends: the guard sees the session's end of a pipe closed, and kills all that is left.
//! Next: `running.rs`.

pub mod catalogue;
pub mod config;
mod group;
pub mod guard;
pub mod leftovers;
mod mysql;
mod npm;
mod patience;
mod postgres;
pub mod running;
mod secret;
pub mod tree;
mod unpack;

use outcrop_lab_sql::{Address, Product};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A server as a target has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerSpec {
    /// `postgres`, `mysql` or `mariadb`.
    pub name: String,
    /// The product whose protocol and settings it uses.
    pub product: Product,
    /// Version, if the experiment says one.
    pub version: Option<String>,
    /// Where it is.
    pub place: ServerLocation,
    /// The program that is its client.
    #[serde(default)]
    pub runner: Runner,
}

/// The client of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Runner {
    /// The lab itself.
    #[default]
    Lab,
    /// sysbench's program, where its stock scripts do what a test does.
    Sysbench,
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ServerLocation {
    /// Started by the lab from these files.
    Own {
        /// Directory with `bin`.
        basedir: PathBuf,
        /// Text of its settings.
        config: String,
        /// Port of the loopback device; without one it listens on a socket.
        port: Option<u16>,
    },
    /// Somebody else's: only asked. The password is `$OUTCROP_SQL_PASSWORD`, and in no record.
    Remote(Address),
}

/// The program of a server of `product` whose files are in `basedir`.
pub fn program_of(product: Product, basedir: &Path) -> PathBuf {
    match product {
        Product::Postgres => basedir.join("bin/postgres"),
        Product::MySql => mysql::program(basedir),
    }
}

/// Variable of the environment that has the password of servers that are not the lab's own.
pub const PASSWORD: &str = "OUTCROP_SQL_PASSWORD";
