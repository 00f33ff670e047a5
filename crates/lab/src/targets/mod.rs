//! The engines and servers that are measured: by name and version, with their libraries, and what those say
//! of themselves.
//!
//! `maven` fetches a library, `own_lock` keeps the checksums of those that the shipped lock files lack, `adapters` compiles what stands between an engine and RocksDB's C API, `engines` resolves a
//! target of an experiment to a library with its capabilities, `builds` reads from a library how it was compiled; `servers` does for SQL servers what the others do for libraries, and runs them.

pub mod adapters;
pub mod build;
pub mod builds;
pub mod engines;
pub mod maven;
mod own_lock;
pub mod servers;
