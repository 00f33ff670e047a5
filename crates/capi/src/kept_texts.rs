//! The same setting as a number for C's getters and as the text that OPTIONS files and strings of options have.
//!
//! ```text
//! setter --> Settings --to_engine--> options that the engine keeps and writes to the OPTIONS file
//! string or OPTIONS file --> options of the engine --from_engine--> Settings --> getter
//! ```

use crate::options::rocksdb_options_t;
use crate::settings::{KeptTexts, Settings};
use outcrop::options::DbOptions;
use outcrop::{BlockBasedTableOptions, ColumnFamilyOptions};
use outcrop_options::kept::{CF_KEPT, DB_KEPT, TABLE_KEPT};
use outcrop_options::rows::{CF_ROWS, DB_ROWS, OptionValue};

/// Words whose numbers in the header are not their places.
const TEMPERATURES: &[(&str, u64)] =
    &[("kUnknown", 0), ("kHot", 4), ("kWarm", 8), ("kCool", 10), ("kCold", 12), ("kIce", 16)];
const LOG_LEVELS: &[(&str, u64)] = &[
    ("DEBUG_LEVEL", 0),
    ("INFO_LEVEL", 1),
    ("WARN_LEVEL", 2),
    ("ERROR_LEVEL", 3),
    ("FATAL_LEVEL", 4),
    ("HEADER_LEVEL", 5),
];
const CACHE_TIERS: &[(&str, u64)] =
    &[("kVolatileTier", 0), ("kVolatileCompressedTier", 1), ("kNonVolatileBlockTier", 2)];
const SEARCHES: &[(&str, u64)] = &[("kBinary", 0), ("kInterpolation", 1), ("kAuto", 2)];
const PINNING: &[(&str, u64)] = &[("kFallback", 0), ("kNone", 1), ("kFlushedAndSimilar", 2), ("kAll", 3)];

/// The words of an option that C gives by number.
fn words(name: &str) -> Option<&'static [(&'static str, u64)]> {
    match name {
        "info_log_level" => Some(LOG_LEVELS),
        "lowest_used_cache_tier" => Some(CACHE_TIERS),
        "index_block_search_type" => Some(SEARCHES),
        _ if name.ends_with("_pinning_tier") => Some(PINNING),
        _ if name.ends_with("_temperature") => Some(TEMPERATURES),
        _ => None,
    }
}

/// Fields of the engine's options that C's setters only keep. The rest of them have rows of their own.
const FIELDS: &[&str] = &["arena_block_size", "enable_blob_direct_write", "blob_direct_write_partitions"];

/// A number of C's as text.
fn as_text(name: &str, text: &str) -> Option<String> {
    match (words(name), text.parse::<u64>()) {
        (Some(words), Ok(number)) => {
            words.iter().find(|(_, known)| *known == number).map(|(word, _)| (*word).to_string())
        }
        (Some(_), Err(_)) => None,
        (None, _) => Some(text.to_string()),
    }
}

/// Puts what was set for tables into the options that the engine keeps.
pub(crate) fn table_to_engine(settings: &Settings, table: &mut BlockBasedTableOptions) {
    for (name, text) in settings.texts() {
        let Some(text) = as_text(name, text) else { continue };
        match name.strip_suffix("_tier").filter(|name| name.ends_with("_pinning")) {
            Some(field) => {
                let _ = table.kept.set(TABLE_KEPT, "metadata_cache_options", &format!("{field}={text};"));
            }
            // A number that RocksDB has no word for stays with its getter.
            None => {
                let _ = table.kept.set(TABLE_KEPT, name, &text);
            }
        }
    }
}

/// Puts fields of settings into options in braces: of a compaction style.
pub(crate) fn fields_to_engine(settings: &Settings, options: &mut impl OptionValue) {
    for (name, text) in settings.texts() {
        // Those it does not know are C's alone.
        let _ = options.update(&format!("{name}={text};"));
    }
}

impl rocksdb_options_t {
    /// The database's options, with what C's setters only keep.
    pub(crate) fn database(&self) -> DbOptions {
        let mut db = self.db.clone();
        for (name, text) in self.kept_texts() {
            let _ = db.kept.set(DB_KEPT, name, &text);
            if FIELDS.contains(&name) {
                let _ = outcrop_options::rows::set(DB_ROWS, &mut db, name, &text);
            }
        }
        db
    }

    /// The column family's options, with what C's setters only keep.
    pub(crate) fn family(&self) -> ColumnFamilyOptions {
        let mut cf = self.cf.clone();
        for (name, text) in self.kept_texts() {
            let _ = cf.kept.set(CF_KEPT, name, &text);
            if FIELDS.contains(&name) {
                let _ = outcrop_options::rows::set(CF_ROWS, &mut cf, name, &text);
            }
            match name {
                "parallel_threads" | "use_zstd_dict_trainer" => {
                    let _ = cf.compression_opts.update(&format!("{name}={text};"));
                }
                _ => {}
            }
        }
        cf
    }

    fn kept_texts(&self) -> Vec<(&'static str, String)> {
        let numbers = self.settings.texts().filter_map(|(name, text)| Some((name, as_text(name, text)?)));
        let texts = self.texts.iter().map(|(name, text)| (*name, text.to_string_lossy().into_owned()));
        numbers.chain(texts).collect()
    }

    /// Lets the getters show what a string or an OPTIONS file said.
    pub(crate) fn take_texts(&mut self) {
        let defaults = DB_KEPT.iter().chain(CF_KEPT).map(|row| (row.name, row.default.to_string()));
        let set = self.db.kept.iter().chain(self.cf.kept.iter()).map(|(name, text)| (name, text.to_string()));
        let fields = FIELDS.iter().filter_map(|name| {
            let of_db = DB_ROWS.iter().find(|row| row.name == *name).map(|row| (row.get)(&self.db));
            let of_cf = CF_ROWS.iter().find(|row| row.name == *name).map(|row| (row.get)(&self.cf));
            Some((*name, of_db.or(of_cf)?))
        });
        let opts = &self.cf.compression_opts;
        let compression = [
            ("parallel_threads", opts.parallel_threads.to_string()),
            ("use_zstd_dict_trainer", opts.use_zstd_dict_trainer.to_string()),
        ];
        let all: Vec<(&str, String)> = defaults.chain(set).chain(fields).chain(compression).collect();
        for (name, text) in all {
            if let Some((_, slot)) = self.texts.iter_mut().find(|(known, _)| **known == name) {
                *slot = std::ffi::CString::new(text.clone()).unwrap_or_default();
            }
            let number = words(name).and_then(|words| words.iter().find(|(word, _)| *word == text));
            let text = number.map_or(text.clone(), |(_, number)| number.to_string());
            if self.keep_text(name, &text) == Some(false) {
                let flag = u8::from(text == "true").to_string();
                // Flags are numbers in some functions of the header; a text that fits into none stays with the engine.
                if !matches!(text.as_str(), "true" | "false") || self.keep_text(name, &flag) == Some(false) {
                    self.settings.forget(name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop::ErrorKind;
    use outcrop::options::CompactionStyle;
    use outcrop_options::validate;

    fn refusal(settings: &[(&str, &str)], change: fn(&mut rocksdb_options_t)) -> Option<ErrorKind> {
        let mut options = rocksdb_options_t::default();
        change(&mut options);
        for (name, value) in settings {
            assert_eq!(options.keep_text(name, value), Some(true), "{name}");
        }
        let (db, cf) = (options.database(), options.family());
        let checked = validate::db(&db).and_then(|()| validate::column_family(&cf, &db));
        checked.err().map(|error| error.kind())
    }

    /// The rules are in `options/src/validate.rs`; here is shown that what C's setters only keep comes to them.
    #[test]
    fn what_rocksdb_opens_with_is_taken_and_the_rest_refused_in_its_class() {
        let (invalid, missing) = (Some(ErrorKind::InvalidArgument), Some(ErrorKind::NotSupported));
        let pipelined = ("enable_pipelined_write", "true");
        let unordered = ("unordered_write", "true");
        let serial = ("allow_concurrent_memtable_write", "false");
        let in_place = ("inplace_update_support", "true");
        assert_eq!(refusal(&[pipelined], |_| {}), None);
        assert_eq!(refusal(&[pipelined], |o| o.db.atomic_flush = true), invalid);
        assert_eq!(refusal(&[unordered], |_| {}), None);
        assert_eq!(refusal(&[unordered, serial], |_| {}), invalid);
        assert_eq!(refusal(&[unordered, pipelined], |_| {}), invalid);
        assert_eq!(refusal(&[unordered], |o| o.cf.max_successive_merges = 1), invalid);
        assert_eq!(refusal(&[in_place], |_| {}), invalid);
        assert_eq!(refusal(&[in_place, serial], |_| {}), None);
        let direct = |o: &mut rocksdb_options_t| o.db.use_direct_io_for_flush_and_compaction = true;
        assert_eq!(refusal(&[("allow_mmap_writes", "1")], direct), missing);
        assert_eq!(refusal(&[("block_protection_bytes_per_key", "3")], |_| {}), missing);
        let fifo = |o: &mut rocksdb_options_t| {
            o.cf.compaction_style = CompactionStyle::Fifo;
            o.db.max_open_files = 100;
        };
        assert_eq!(refusal(&[], fifo), missing);
    }

    #[test]
    fn names_and_values_that_are_none_are_told_apart() {
        let mut options = rocksdb_options_t::default();
        assert_eq!(options.keep_text("no_such_option", "1"), None);
        assert_eq!(options.keep_text("unordered_write", "maybe"), Some(false));
        assert_eq!(options.keep_text("best_efforts_recovery", "true"), Some(true));
        assert_eq!(options.settings.check().unwrap_err().kind(), ErrorKind::NotSupported);
    }
}
