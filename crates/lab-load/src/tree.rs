//! The shape of a database's tree, and what changes it: chosen tables into the next level, options of an open database,
//! waiting for background work.
//!
//! ```text
//! tables(): L0 7 8   L5 3 4   L6 1 2      compact_files(7 8, 5)      L5 9 10 11   L6 1 2
//! ```
//! Every function is one that libraries may lack: RocksDB's C API chooses tables from 11.x on, LevelDB's has none of them.
//! Next: `steps/upkeep.rs`, which does the best that a library offers.

use crate::Database;
use crate::database::take_error;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::ptr::{null, null_mut};
use std::time::Duration;

/// Why a call did nothing.
#[derive(Debug, PartialEq, Eq)]
pub enum Unable {
    /// The library does not have it, by its functions or by its own word.
    NotOffered,
    /// The engine's message.
    Failed(String),
}

/// Names of live tables by level, as the engine gives them.
pub type Tables = BTreeMap<i32, Vec<CString>>;

/// How many tables each level has, for people.
pub fn shape(tables: &Tables) -> String {
    let levels: Vec<String> =
        tables.iter().map(|(level, names)| format!("L{level} {}", names.len())).collect();
    if levels.is_empty() { "no tables".to_string() } else { levels.join(", ") }
}

#[allow(unsafe_code, reason = "each call is one C function with live objects")]
impl Database {
    /// All live tables; nothing if the library does not list them.
    pub fn tables(&self) -> Option<Tables> {
        let api = &self.api;
        let (list, count) = (api.rocksdb_livefiles?, api.rocksdb_livefiles_count?);
        let (name, level) = (api.rocksdb_livefiles_name?, api.rocksdb_livefiles_level?);
        let destroy = api.rocksdb_livefiles_destroy?;
        let mut tables = Tables::new();
        // SAFETY: live objects; names are NUL-terminated and live as long as the list, which is destroyed once.
        unsafe {
            let files = list(self.db.0);
            for index in 0..count(files) {
                let name = CStr::from_ptr(name(files, index)).to_owned();
                tables.entry(level(files, index)).or_default().push(name);
            }
            destroy(files);
        }
        Some(tables)
    }

    /// Compacts the tables `names` into `level`, in the level's codec and the configured size of tables.
    ///
    /// # Errors
    /// The engine's message; it may also be that a table is already gone or being compacted.
    pub fn compact_files(&self, names: &[CString], level: i32) -> Result<(), Unable> {
        /// RocksDB's `kDisableCompressionOption`: what the level is configured with.
        const AS_CONFIGURED: i32 = 0xff;
        let api = &self.api;
        let (Some(create), Some(destroy), Some(set_codec), Some(set_size), Some(compact)) = (
            api.rocksdb_compaction_options_create,
            api.rocksdb_compaction_options_destroy,
            api.rocksdb_compaction_options_set_compression,
            api.rocksdb_compaction_options_set_output_file_size_limit,
            api.rocksdb_compact_files,
        ) else {
            return Err(Unable::NotOffered);
        };
        let names: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
        let mut error = null_mut();
        // SAFETY: live objects and NUL-terminated names; null is nowhere to put names of outputs and facts of the job.
        unsafe {
            let options = create();
            set_codec(options, AS_CONFIGURED);
            set_size(options, self.target_file_size);
            let (outputs, outputs_len, facts) = (null_mut(), null_mut(), null_mut());
            compact(
                self.db.0,
                options,
                names.as_ptr(),
                names.len(),
                level,
                0,
                outputs,
                outputs_len,
                facts,
                &raw mut error,
            );
            destroy(options);
        }
        take_error(api, error).map_err(unable)
    }

    /// Marks everything above the last level to be compacted into the level below, in the background.
    ///
    /// # Errors
    /// The engine's message.
    pub fn suggest_compact_range(&self) -> Result<(), Unable> {
        let suggest = self.api.rocksdb_suggest_compact_range.ok_or(Unable::NotOffered)?;
        let mut error = null_mut();
        // SAFETY: a live object; null bounds are unbounded.
        unsafe { suggest(self.db.0, null(), 0, null(), 0, &raw mut error) };
        take_error(&self.api, error).map_err(unable)
    }

    /// Changes options of the open database, given as names and values.
    ///
    /// # Errors
    /// The engine's message.
    pub fn set_options(&self, options: &[(&str, String)]) -> Result<(), Unable> {
        let set = self.api.rocksdb_set_options.ok_or(Unable::NotOffered)?;
        let text =
            |text: &str| CString::new(text).map_err(|_| Unable::Failed("an option has a NUL byte".into()));
        let names = options.iter().map(|(name, _)| text(name)).collect::<Result<Vec<_>, _>>()?;
        let values = options.iter().map(|(_, value)| text(value)).collect::<Result<Vec<_>, _>>()?;
        let starts = |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).collect::<Vec<_>>();
        let (name_starts, value_starts) = (starts(&names), starts(&values));
        let mut error = null_mut();
        // SAFETY: a live object and as many NUL-terminated texts as it is told.
        unsafe {
            let count = options.len() as i32;
            set(self.db.0, count, name_starts.as_ptr(), value_starts.as_ptr(), &raw mut error);
        }
        take_error(&self.api, error).map_err(unable)
    }

    /// Waits, at most so long, until no flush and no compaction runs or is scheduled.
    ///
    /// # Errors
    /// The engine's message, of a background job that failed or of the time being over.
    pub fn wait_for_compact(&self, at_most: Duration) -> Result<(), Unable> {
        let api = &self.api;
        let (Some(create), Some(destroy), Some(set_timeout), Some(wait)) = (
            api.rocksdb_wait_for_compact_options_create,
            api.rocksdb_wait_for_compact_options_destroy,
            api.rocksdb_wait_for_compact_options_set_timeout,
            api.rocksdb_wait_for_compact,
        ) else {
            return Err(Unable::NotOffered);
        };
        let mut error = null_mut();
        // SAFETY: live objects; the options are destroyed once.
        unsafe {
            let options = create();
            set_timeout(options, at_most.as_micros() as u64);
            wait(self.db.0, options, &raw mut error);
            destroy(options);
        }
        take_error(api, error).map_err(unable)
    }
}

fn unable(message: String) -> Unable {
    if message.starts_with("Not implemented") { Unable::NotOffered } else { Unable::Failed(message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_from_a_failure_and_a_shape_is_words() {
        assert_eq!(unable("Not implemented: rocksdb_compact_files".into()), Unable::NotOffered);
        assert_eq!(unable("IO error: x".into()), Unable::Failed("IO error: x".into()));
        let mut tables = Tables::new();
        assert_eq!(shape(&tables), "no tables");
        tables.insert(5, vec![CString::default(); 3]);
        tables.insert(0, vec![CString::default()]);
        assert_eq!(shape(&tables), "L0 1, L5 3");
    }
}
