//! Results for people: `show` on a terminal, `site` as pages, `classic` in the form of published posts, `summary_line` as
//! RocksDB's benchmark scripts print it; `status_line` while something runs.

pub mod classic;
mod groups;
mod insert_benchmark;
mod insert_metrics;
pub mod show;
pub mod site;
pub(crate) mod status_line;
pub mod summary_line;
pub mod text;
