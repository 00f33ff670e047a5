//! Options as RocksDB writes them to LOG: `Options.name: value`, flags and enumerations as numbers.
//!
//! Source: RocksDB `options/db_options.cc`, `options/cf_options.cc`, `table/block_based/block_based_table_factory.cc`, `Dump` and
//! `GetPrintableOptions`.

use crate::kept::{CF_KEPT, DB_KEPT, Kept, KeptRow, TABLE_KEPT};
use crate::rows::{CF_ROWS, DB_ROWS, Row, TABLE_ROWS};
use crate::{ColumnFamilyOptions, DbOptions};
use std::fmt::Write;

/// One line for each option of the database.
pub fn database(options: &DbOptions) -> Vec<String> {
    pairs(DB_ROWS, options, DB_KEPT, &options.kept).map(|(name, value)| line(name, &value)).collect()
}

/// The objects of a column family as its lines have them; options do not know them.
#[derive(Default)]
pub struct Objects {
    /// Name of the option and of its object.
    pub named: Vec<(&'static str, String)>,
    /// The block cache: where it is in memory, and its capacity in bytes and whether that is strict.
    pub block_cache: Option<(usize, usize, bool)>,
}

/// One line for each option of a column family, and one text of many lines with those of its tables.
pub fn column_family(name: &str, options: &ColumnFamilyOptions, objects: &Objects) -> Vec<String> {
    let mut lines = vec![format!("--------------- Options for column family [{name}]:")];
    lines.extend(objects.named.iter().map(|(name, text)| line(name, text)));
    lines.push(line("table_factory", "BlockBasedTable"));
    let own = pairs(CF_ROWS, options, CF_KEPT, &options.kept);
    for (name, value) in own.filter(|(name, _)| objects.named.iter().all(|(known, _)| known != name)) {
        if name == "max_bytes_for_level_multiplier_additional" {
            let numbers = value.split(':').enumerate();
            lines.extend(numbers.map(|(level, number)| {
                line(&format!("max_bytes_for_level_multiplier_addtl[{level}]"), number)
            }));
            continue;
        }
        match value.strip_prefix('{').and_then(|fields| fields.strip_suffix('}')) {
            Some(fields) => lines.extend(fields.split(';').filter_map(|pair| {
                let (field, value) = pair.split_once('=')?;
                Some(line(&format!("{name}.{field}"), &as_printed(field, value.to_string())))
            })),
            None => lines.push(line(name, &value)),
        }
    }
    let mut tables = "           table_factory options: ".to_string();
    for (name, value) in pairs(TABLE_ROWS, &options.table, TABLE_KEPT, &options.table.kept) {
        let _ = writeln!(tables, "  {name}: {value}");
    }
    match objects.block_cache {
        None => tables += "  block_cache: (nil)\n",
        Some((place, capacity, strict)) => {
            let strict = u8::from(strict);
            let _ = writeln!(
                tables,
                "  block_cache: {place:#x}\n  block_cache_name: Outcrop\n  block_cache_options:"
            );
            let _ = writeln!(tables, "    capacity : {capacity}\n    strict_capacity_limit : {strict}");
        }
    }
    lines.push(tables);
    lines
}

/// Names and values, as printed.
fn pairs<'a, T>(
    rows: &'static [Row<T>],
    options: &'a T,
    kept_rows: &'static [KeptRow],
    kept: &'a Kept,
) -> impl Iterator<Item = (&'static str, String)> + 'a {
    let own = rows.iter().map(move |row| (row.name, (row.get)(options)));
    let others = kept_rows.iter().map(move |row| {
        let value = kept.get(row.name).unwrap_or(row.default);
        (row.name, value.to_string())
    });
    own.chain(others).map(|(name, value)| (name, as_printed(name, value)))
}

fn line(name: &str, value: &str) -> String {
    format!("{:>48}: {value}", format!("Options.{name}"))
}

/// The values that RocksDB prints as a number, in the order of its numbers.
const NUMBERED: &[(&str, &[&str])] = &[
    (
        "wal_recovery_mode",
        &[
            "kTolerateCorruptedTailRecords",
            "kAbsoluteConsistency",
            "kPointInTimeRecovery",
            "kSkipAnyCorruptedRecords",
        ],
    ),
    ("index_type", &["kBinarySearch", "kHashSearch", "kTwoLevelIndexSearch", "kBinarySearchWithFirstKey"]),
    ("data_block_index_type", &["kDataBlockBinarySearch", "kDataBlockBinaryAndHash"]),
    ("index_shortening", &["kNoShortening", "kShortenSeparators", "kShortenSeparatorsAndSuccessor"]),
    ("checksum", &["kNoChecksum", "kCRC32c", "kxxHash", "kxxHash64", "kXXH3"]),
    ("prepopulate_block_cache", &["kDisable", "kFlushOnly", "kFlushAndCompaction"]),
];

/// Flags that RocksDB prints as words.
const WORDS: &[&str] =
    &["enabled", "enable_blob_files", "enable_blob_garbage_collection", "enable_blob_direct_write"];

/// A value as LOG has it, of a value as OPTIONS has it.
fn as_printed(name: &str, value: String) -> String {
    match value.as_str() {
        "true" | "false" if WORDS.contains(&name) => return value,
        "kNoCompression" => return "NoCompression".to_string(),
        "kDisableCompressionOption" => return "Disabled".to_string(),
        "true" => return "1".to_string(),
        "false" => return "0".to_string(),
        _ => {}
    }
    let words = NUMBERED.iter().find(|(known, _)| *known == name).map(|(_, words)| *words);
    let number = words.and_then(|words| words.iter().position(|word| *word == value));
    match number {
        Some(number) => number.to_string(),
        None if name.contains("compression") => value
            .strip_prefix('k')
            .map(|word| word.strip_suffix("Compression").unwrap_or(word).to_string())
            .unwrap_or(value),
        None => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_enumerations_are_numbers() {
        let mut options = ColumnFamilyOptions { ttl: 86_400, ..ColumnFamilyOptions::default() };
        options.table.format_version = 4;
        let objects = Objects {
            named: vec![
                ("merge_operator", "None".to_string()),
                ("table_properties_collectors", "Mine;".to_string()),
            ],
            block_cache: Some((0x7f00, 1 << 20, true)),
        };
        let lines = column_family("default", &options, &objects);
        assert_eq!(lines.iter().filter(|line| line.contains(".merge_operator:")).count(), 1);
        let text = lines.join("\n");
        for expected in [
            "--------------- Options for column family [default]:",
            "Options.ttl: 86400\n",
            "Options.disable_auto_compactions: 0\n",
            "Options.compaction_options_universal.size_ratio: 1\n",
            "  format_version: 4\n",
            "  cache_index_and_filter_blocks: 0\n",
            "  data_block_index_type: 0\n",
            "  data_block_hash_table_util_ratio: 0.750000\n",
            "  checksum: 4\n",
            "Options.merge_operator: None\n",
            "Options.table_properties_collectors: Mine;\n",
            "Options.table_factory: BlockBasedTable\n",
            "Options.max_bytes_for_level_multiplier_addtl[6]: 1\n",
            "Options.enable_blob_files: false\n",
            "Options.blob_compression_type: NoCompression\n",
            "Options.bottommost_compression: Disabled\n",
            "Options.compression_opts.enabled: false\n",
            "  block_cache: 0x7f00\n  block_cache_name: Outcrop\n  block_cache_options:\n    capacity : 1048576\n    strict_capacity_limit : 1\n",
        ] {
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
        let database = database(&DbOptions::default()).join("\n");
        for expected in [
            "Options.wal_recovery_mode: 2\n",
            "Options.create_if_missing: 0\n",
            "Options.max_open_files: -1\n",
        ] {
            assert!(database.contains(expected), "{expected} is not in\n{database}");
        }
    }
}
