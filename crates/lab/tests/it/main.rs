//! Integration tests of the laboratory.

mod archive;
mod classic;
mod db_bench;
mod formats;
mod imported;
mod stalls;
mod sysbench;
mod torn;
