//! Quarantine: compactions leave damaged tables alone, so that the rest of the database works on.
//!
//! ```text
//! compaction fails: Corruption, or a file is gone -> each input is read to its end -> the damaged ones into quarantine
//!                                  none is damaged -> the values it has in blob files -> those with damaged ones, too
//! scrubber finds damage in a table (scrub/step.rs) -----------------------------------------/
//! quarantine: no picker takes them -> delete_files_in_ranges, a dropped column family, resume: out of it again
//! ```
//! Only without `paranoid_checks`: with them, damage stops writes, as in RocksDB.
//!
//! Invariant: a table in quarantine is in `CfState::busy` too. Not stored: the next opening finds damage anew. Reads do not look here: they
//! fail where the damage is.

pub mod find;
pub mod held;
