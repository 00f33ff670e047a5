//! The C API as its users see it: from a C program, and beside RocksDB's own library.

mod api_list;
mod arguments;
mod backups;
mod boundary;
mod c_program;
mod compatibility;
mod db_options;
mod faults;
mod library;
mod limits;
mod listeners;
mod logging;
mod memory;
mod one_moment;
mod option_names;
mod properties;
mod refusals;
mod settings;
mod snapshots;
mod statistics;
mod tailing;
mod transactions;
mod updates;
mod wal_archive;
mod writebatch_wi;
