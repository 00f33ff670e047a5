//! Tests of the whole engine, on file systems in memory and on disk.

mod basic;
mod crash;
mod foreign;
mod harness;
mod kill;
mod model;
