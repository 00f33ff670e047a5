//! The verbs of `outcrop ldb`: which flags each takes, what it is for, and what is not there.

/// A verb.
pub struct Verb {
    /// Its name.
    pub name: &'static str,
    /// The parameters that follow it.
    pub parameters: &'static str,
    /// Flags it takes beside [`COMMON`].
    pub flags: &'static [&'static str],
}

/// Flags that every verb takes. Source: RocksDB `tools/ldb_cmd.cc`, `LDBCommand::BuildCmdLineOptions`.
const COMMON: &[&str] = &[
    "db",
    "column_family",
    "try_load_options",
    "ignore_unknown_options",
    "disable_consistency_checks",
    "secondary_path",
    "wal_dir",
    "bloom_bits",
    "fix_prefix_len",
    "compression_type",
    "compression_max_dict_bytes",
    "block_size",
    "auto_compaction",
    "db_write_buffer_size",
    "write_buffer_size",
    "file_size",
    "enable_blob_files",
    "min_blob_size",
    "blob_file_size",
    "blob_compression_type",
    "enable_blob_garbage_collection",
    "blob_garbage_collection_age_cutoff",
    "blob_garbage_collection_force_threshold",
    "blob_compaction_readahead_size",
    "blob_file_starting_level",
];

const HEX: &[&str] = &["hex", "key_hex", "value_hex"];
const WRITE: &[&str] = &["hex", "key_hex", "value_hex", "create_if_missing"];
const RANGE: &[&str] = &["hex", "key_hex", "value_hex", "from", "to"];
const BACKUPS: &[&str] = &["backup_dir", "num_threads"];
const ONE_BACKUP: &[&str] = &["backup_dir", "num_threads", "backup_id"];

macro_rules! verbs {
    ($($name:literal $parameters:literal $flags:expr;)*) => {
        /// All of them, by what they are for.
        pub const VERBS: &[Verb] = &[$(Verb { name: $name, parameters: $parameters, flags: $flags }),*];
    };
}

verbs! {
    "put" "KEY VALUE" WRITE;
    "put_entity" "KEY NAME:VALUE..." WRITE;
    "get" "KEY" HEX;
    "get_entity" "KEY" HEX;
    "multi_get" "KEY..." HEX;
    "multi_get_entity" "KEY..." HEX;
    "batchput" "KEY VALUE..." WRITE;
    "scan" "" &["hex", "key_hex", "value_hex", "from", "to", "max_keys", "no_value"];
    "delete" "KEY" HEX;
    "singledelete" "KEY" HEX;
    "deleterange" "BEGIN END" HEX;
    "query" "" HEX;
    "approxsize" "" RANGE;
    "checkconsistency" "" &[];
    "list_file_range_deletes" "" &["max_keys"];
    "dump_wal" "" &["walfile", "header", "print_value", "only_print_seqno_gaps", "write_committed"];
    "compact" "" RANGE;
    "dump" "" &["hex", "key_hex", "value_hex", "from", "to", "max_keys", "count_only", "count_delim", "stats", "path", "decode_blob_index", "dump_uncompressed_blobs"];
    "load" "" &["hex", "key_hex", "value_hex", "create_if_missing", "disable_wal", "bulk_load", "compact"];
    "manifest_dump" "" &["path", "verbose", "json", "hex"];
    "file_checksum_dump" "" &["path"];
    "get_property" "NAME" &[];
    "list_column_families" "" &[];
    "create_column_family" "NAME" &[];
    "drop_column_family" "NAME" &[];
    "dump_live_files" "" &["decode_blob_index", "dump_uncompressed_blobs"];
    "idump" "" &["hex", "key_hex", "value_hex", "from", "to", "max_keys", "count_only", "count_delim", "stats", "input_key_hex", "decode_blob_index"];
    "list_live_files_metadata" "" &["sort_by_filename"];
    "repair" "" &["verbose"];
    "salvage" "" &["to", "json", "verbose"];
    "backup" "" BACKUPS;
    "restore" "" ONE_BACKUP;
    "list_backups" "" BACKUPS;
    "verify_backup" "" ONE_BACKUP;
    "purge_backups" "NUMBER" BACKUPS;
    "checkpoint" "" &["checkpoint_dir"];
    "write_extern_sst" "FILE" WRITE;
    "ingest_extern_sst" "FILE" &["move_files", "snapshot_consistency", "allow_global_seqno", "allow_blocking_flush", "ingest_behind", "write_global_seqno", "create_if_missing"];
    "unsafe_remove_sst_file" "NUMBER" &[];
    "metrics" "" &[];
    "checkcompat" "" &["with", "json"];
}

/// Verbs of RocksDB's tool that are not here, and why.
const REFUSED: &[(&str, &str)] = &[
    ("reduce_levels", "open the database with fewer num_levels after a compact_range into them"),
    (
        "change_compaction_style",
        "open the database with another compaction_style, after compact_range into one level",
    ),
    ("update_manifest", "temperatures of files are not followed"),
    ("compaction_progress_dump", "compactions are not resumed from a file"),
    ("remote_compaction_primary", "compactions run in the database's own process"),
    ("remote_compaction_worker", "compactions run in the database's own process"),
];

/// The advice in place of a verb of RocksDB's tool that is not here.
fn advice(name: &str) -> Option<String> {
    let (_, why) = REFUSED.iter().find(|(refused, _)| *refused == name)?;
    Some(format!("ldb: {name} is not supported: {why}"))
}

/// The same for a whole command line that does not parse: flags of such verbs are not known either.
pub fn advice_for(words: impl IntoIterator<Item = String>) -> Option<String> {
    let mut words = words.into_iter().skip(1);
    if words.next()? != "ldb" {
        return None;
    }
    let is_verb = |word: &String| VERBS.iter().any(|verb| verb.name == word) || advice(word).is_some();
    words.find(is_verb).and_then(|verb| advice(&verb))
}

/// Checks that there is a verb of that name, and that it takes each of the `given` flags.
///
/// # Errors
/// One sentence naming what there is not.
pub fn check(name: &str, given: &[String]) -> Result<(), String> {
    if let Some(advice) = advice(name) {
        return Err(advice);
    }
    let Some(verb) = VERBS.iter().find(|verb| verb.name == name) else {
        return Err(format!("ldb: Unknown command {name}; --help lists the commands"));
    };
    let takes = |flag: &str| COMMON.contains(&flag) || verb.flags.contains(&flag);
    match given.iter().find(|flag| !takes(flag)) {
        Some(flag) => Err(format!("ldb: Invalid command-line option {flag}: {name} does not take it")),
        None => Ok(()),
    }
}

/// How a verb is used, for the error of one with wrong parameters.
pub fn usage(name: &str) -> String {
    let verb = VERBS.iter().find(|verb| verb.name == name);
    let parameters = verb.map_or("", |verb| verb.parameters);
    format!("ldb: {name}: its parameters are wrong; usage: {name} {parameters}").trim_end().to_string()
}

/// The part of `--help` about verbs.
pub fn listed() -> String {
    let mut text = String::from("Commands:\n");
    for verb in VERBS {
        let flags: Vec<String> = verb.flags.iter().map(|flag| format!(" [--{flag}]")).collect();
        text += &format!("  {} {}{}\n", verb.name, verb.parameters, flags.concat()).replace("  [", " [");
    }
    text + "Words that begin with - go after --."
}

/// Names of the flags on the command line, after the word `ldb`.
pub fn given() -> Vec<String> {
    let words = std::env::args().skip_while(|word| word != "ldb").take_while(|word| word != "--");
    let flags = words.filter_map(|word| Some(word.strip_prefix("--")?.to_string()));
    flags.map(|flag| flag.split('=').next().unwrap_or_default().to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_other_verbs_and_verbs_that_are_not_there_are_refused_by_name() {
        let given = |flags: &[&str]| flags.iter().map(ToString::to_string).collect::<Vec<_>>();
        check("scan", &given(&["db", "max_keys"])).unwrap();
        assert!(check("put", &given(&["max_keys"])).unwrap_err().contains("max_keys"));
        assert!(check("reduce_levels", &[]).unwrap_err().contains("num_levels"));
        let advice = |line: &str| advice_for(line.split(' ').map(String::from));
        let reduce = advice("outcrop ldb --db=/db reduce_levels --new_levels=2").unwrap();
        assert!(reduce.contains("num_levels"), "{reduce}");
        assert_eq!(advice("outcrop ldb --db=/db put reduce_levels --new_levels=2"), None);
        assert_eq!(advice("outcrop db_bench reduce_levels"), None);
        assert!(check("no_such", &[]).unwrap_err().contains("no_such"));
        assert!(usage("put").ends_with("usage: put KEY VALUE"));
    }
}
