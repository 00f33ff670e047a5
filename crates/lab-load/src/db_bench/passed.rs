//! Flags that are options of the engine under another name: handed to it as text, in RocksDB's words.
//!
//! ```text
//! --subcompactions=4 --compaction_style=1 --universal_size_ratio=10
//!     max_subcompactions=4;compaction_style=kCompactionStyleUniversal;compaction_options_universal={size_ratio=10}
//! ```
//! A flag at RocksDB's default says nothing, so that a library without the option, LevelDB's say, works all the same.
//! Next: `flags.rs`.

/// What a flag's value is.
#[derive(Clone, Copy)]
enum Kind {
    /// Text that the engine takes as it is.
    Text,
    /// A switch.
    Switch,
    /// One of these, by number.
    Named(&'static [&'static str]),
}

/// One flag: name, default, the option's group if it is within braces, the option, and what values it has.
pub(super) struct Passed(pub &'static str, pub &'static str, Option<&'static str>, &'static str, Kind);

const TABLE: Option<&str> = Some("block_based_table_factory");
const UNIVERSAL: Option<&str> = Some("compaction_options_universal");
const CODEC: Option<&str> = Some("compression_opts");
const STYLES: &[&str] = &["kCompactionStyleLevel", "kCompactionStyleUniversal", "kCompactionStyleFIFO"];

/// The flags.
pub(super) const PASSED: &[Passed] = &[
    Passed("compaction_style", "0", None, "compaction_style", Kind::Named(STYLES)),
    Passed("universal_size_ratio", "0", UNIVERSAL, "size_ratio", Kind::Text),
    Passed("universal_min_merge_width", "0", UNIVERSAL, "min_merge_width", Kind::Text),
    Passed("universal_max_merge_width", "0", UNIVERSAL, "max_merge_width", Kind::Text),
    Passed(
        "universal_max_size_amplification_percent",
        "0",
        UNIVERSAL,
        "max_size_amplification_percent",
        Kind::Text,
    ),
    Passed("universal_compression_size_percent", "-1", UNIVERSAL, "compression_size_percent", Kind::Text),
    Passed("universal_allow_trivial_move", "0", UNIVERSAL, "allow_trivial_move", Kind::Switch),
    Passed("subcompactions", "1", None, "max_subcompactions", Kind::Text),
    Passed("max_background_compactions", "-1", None, "max_background_compactions", Kind::Text),
    Passed("max_background_flushes", "-1", None, "max_background_flushes", Kind::Text),
    Passed("disable_auto_compactions", "0", None, "disable_auto_compactions", Kind::Switch),
    Passed("optimize_filters_for_hits", "0", None, "optimize_filters_for_hits", Kind::Switch),
    Passed("allow_concurrent_memtable_write", "1", None, "allow_concurrent_memtable_write", Kind::Switch),
    Passed("bytes_per_sync", "1048576", None, "bytes_per_sync", Kind::Text),
    Passed("wal_bytes_per_sync", "0", None, "wal_bytes_per_sync", Kind::Text),
    Passed("open_files", "-1", None, "max_open_files", Kind::Text),
    Passed("wal_dir", "", None, "wal_dir", Kind::Text),
    Passed(
        "delete_obsolete_files_period_micros",
        "0",
        None,
        "delete_obsolete_files_period_micros",
        Kind::Text,
    ),
    Passed("compression_max_dict_bytes", "0", CODEC, "max_dict_bytes", Kind::Text),
    Passed("compression_parallel_threads", "1", CODEC, "parallel_threads", Kind::Text),
    Passed("block_align", "0", TABLE, "block_align", Kind::Switch),
    Passed("enable_blob_files", "0", None, "enable_blob_files", Kind::Switch),
    Passed("min_blob_size", "0", None, "min_blob_size", Kind::Text),
    Passed("blob_file_size", "268435456", None, "blob_file_size", Kind::Text),
    Passed("enable_blob_garbage_collection", "0", None, "enable_blob_garbage_collection", Kind::Switch),
    Passed(
        "blob_garbage_collection_age_cutoff",
        "0.25",
        None,
        "blob_garbage_collection_age_cutoff",
        Kind::Text,
    ),
    Passed(
        "blob_garbage_collection_force_threshold",
        "1.0",
        None,
        "blob_garbage_collection_force_threshold",
        Kind::Text,
    ),
    Passed("blob_file_starting_level", "0", None, "blob_file_starting_level", Kind::Text),
];

/// The options that `values`, one for each of [`PASSED`], stand for.
///
/// # Errors
/// One sentence that names the flag.
pub(super) fn text(values: &[String]) -> Result<String, String> {
    let mut groups: Vec<(Option<&str>, Vec<String>)> = Vec::new();
    for (Passed(flag, default, group, option, kind), value) in PASSED.iter().zip(values) {
        let value = match kind {
            Kind::Text => value.clone(),
            Kind::Switch => super::flags::is_on(value).to_string(),
            Kind::Named(names) => {
                let number = value.parse::<usize>().ok().and_then(|number| names.get(number));
                let known = || format!("--{flag}={value}: use 0 to {}", names.len() - 1);
                (*number.ok_or_else(known)?).to_string()
            }
        };
        let usual = match kind {
            Kind::Text => (*default).to_string(),
            Kind::Switch => super::flags::is_on(default).to_string(),
            Kind::Named(names) => names[0].to_string(),
        };
        if value == usual {
            continue;
        }
        let said = format!("{option}={value}");
        match groups.iter_mut().find(|(name, _)| name == group) {
            Some((_, options)) => options.push(said),
            None => groups.push((*group, vec![said])),
        }
    }
    let words = groups.into_iter().map(|(group, options)| match group {
        None => options.join(";"),
        Some(group) => format!("{group}={{{}}}", options.join(";")),
    });
    Ok(words.collect::<Vec<_>>().join(";"))
}
