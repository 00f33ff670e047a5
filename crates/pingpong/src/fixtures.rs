//! Small databases of each reference version, one per feature, with the rows that must be found in them.
//!
//! ```text
//! fixtures/made/VERSION-FEATURE/   CURRENT MANIFEST-* *.sst *.log *.blob IDENTITY    as the engine closed it
//!                       rows.txt   how it was made, then per column family [name], key <tab> value
//! ```
//! Keys and values are ASCII with `\xNN` escapes. Every database has tables and a WAL with newer writes.
//! Invariant: nothing is written for a version that does not have the feature.

use crate::case::{Access, Case, End, Family, Merge, Phase};
use crate::choices::name;
use crate::features::HASH_PREFIX;
use crate::model::Model;
use crate::operation::{Durability, Key, Operation, Record, Value};
use crate::rules::admits;
use crate::run::{Kind, Pool, play};
use crate::scratch::Scratch;
use crate::trials::by_age;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The shape of one database.
struct Recipe {
    name: &'static str,
    /// Made with every version; otherwise with the oldest and the newest.
    every: bool,
    options: &'static [&'static str],
    family_options: &'static [&'static str],
}

const fn recipe(name: &'static str, family_options: &'static [&'static str]) -> Recipe {
    Recipe { name, every: false, options: &[], family_options }
}

const fn every(name: &'static str, family_options: &'static [&'static str]) -> Recipe {
    Recipe { name, every: true, options: &[], family_options }
}

const fn wal(name: &'static str, options: &'static [&'static str]) -> Recipe {
    Recipe { name, every: false, options, family_options: &[] }
}

const RECIPES: &[Recipe] = &[
    // The version's own defaults: format version, checksum, codec.
    every("defaults", &[]),
    every("families", &[]),
    every("delete-range", &[]),
    every("compacted", &[]),
    every("put-entity", &[]),
    every("blob", &["enable_blob_files=true", "min_blob_size=20"]),
    recipe("put-entity-in-blob", &["enable_blob_files=true", "min_blob_size=20"]),
    every("bloom", &["table.filter_policy=bloomfilter:10:false"]),
    every("ribbon", &["table.filter_policy=ribbonfilter:10"]),
    every(
        "zstd-dict",
        &["compression=kZSTD", "compression_opts={max_dict_bytes=512;zstd_max_train_bytes=4096;}"],
    ),
    every(
        "partitioned",
        &[
            "table.index_type=kTwoLevelIndexSearch",
            "table.partition_filters=true",
            "table.metadata_block_size=128",
            "table.filter_policy=bloomfilter:10:false",
        ],
    ),
    recipe("single-delete", &[]),
    recipe("merge-add", &[]),
    recipe("merge-append", &[]),
    recipe("log-data", &[]),
    recipe("ingested", &[]),
    recipe("reverse-order", &[]),
    recipe("universal", &["compaction_style=kCompactionStyleUniversal"]),
    recipe(
        "fixed-prefix",
        &[
            "prefix_extractor=rocksdb.FixedPrefix.3",
            "table.filter_policy=bloomfilter:10:false",
            "table.whole_key_filtering=false",
        ],
    ),
    recipe("legacy-bloom", &["table.filter_policy=rocksdb.internal.LegacyBloomFilter:10:false"]),
    recipe("first-key-index", &["table.index_type=kBinarySearchWithFirstKey"]),
    recipe("hash-index", &["table.index_type=kHashSearch"]),
    recipe("data-hash-index", &["table.data_block_index_type=kDataBlockBinaryAndHash"]),
    recipe("no-delta", &["table.use_delta_encoding=false"]),
    recipe(
        "index-restarts",
        &["table.index_block_restart_interval=8", "table.index_shortening=kNoShortening"],
    ),
    recipe("separated-kv", &["table.separate_key_value_in_data_block=true", "table.format_version=7"]),
    recipe("aligned", &["compression=kNoCompression", "table.block_align=true"]),
    recipe("fv2", &["table.format_version=2"]),
    recipe("fv3", &["table.format_version=3"]),
    recipe("fv4", &["table.format_version=4"]),
    recipe("fv6", &["table.format_version=6"]),
    recipe("snappy", &["compression=kSnappyCompression"]),
    recipe("lz4", &["compression=kLZ4Compression"]),
    recipe("lz4hc", &["compression=kLZ4HCCompression"]),
    recipe("zlib", &["compression=kZlibCompression"]),
    recipe("bzip2", &["compression=kBZip2Compression"]),
    recipe("zstd", &["compression=kZSTD"]),
    recipe("xxhash", &["table.checksum=kxxHash"]),
    recipe("xxhash64", &["table.checksum=kxxHash64"]),
    recipe("no-checksum", &["table.checksum=kNoChecksum"]),
    wal("wal-recycled", &["recycle_log_file_num=2"]),
    wal("wal-zstd", &["wal_compression=kZSTD"]),
    wal("wal-tracked-in-manifest", &["track_and_verify_wals_in_manifest=true"]),
    wal("wal-tracked", &["track_and_verify_wals=true"]),
];

fn key(text: impl Into<String>) -> Key {
    Key(text.into().into_bytes())
}

fn write(records: Vec<Record>) -> Operation {
    Operation::Write { records, durability: Durability::Logged, direct: false }
}

/// The data that every database holds: keys that overlap between rounds, a long value, a deletion.
fn base(round: u64) -> Operation {
    let fill = Record::Fill {
        family: 0,
        prefix: key("key"),
        first: round * 6,
        count: 16,
        len: 30,
        seed: 100 * round,
    };
    write(vec![
        fill,
        Record::Put(0, key(format!("long{round}")), Value::Fill(300, round)),
        Record::Delete(0, key(format!("key{:08}", round * 6 + 2))),
    ])
}

/// The operations that the recipe adds in a round.
fn extra(name: &str, round: u64) -> Vec<Operation> {
    let round_key = key(format!("k{round}"));
    let put =
        |family, text: &str| Record::Put(family, key(text), Value::Text(key(format!("in round {round}"))));
    match name {
        "families" => match round {
            0 => vec![
                Operation::CreateFamily { family: 1 },
                Operation::CreateFamily { family: 2 },
                write(vec![put(0, "a"), put(1, "a"), put(2, "gone"), Record::Delete(1, key("b"))]),
                Operation::Flush { family: 1, wait: true },
            ],
            1 => vec![Operation::DropFamily { family: 2 }, write(vec![put(1, "b"), put(0, "b")])],
            _ => vec![write(vec![put(1, "a"), put(0, "c")])],
        },
        "delete-range" => {
            let range = |begin: u64, end: u64| {
                Record::DeleteRange(0, key(format!("key{begin:08}")), key(format!("key{end:08}")))
            };
            vec![
                write(vec![range(round * 5, round * 5 + 3), range(round * 5 + 1, round * 5 + 6)]),
                write(vec![put(0, &format!("key{:08}", round * 5 + 1))]),
                Operation::TakeSnapshot { slot: round as usize },
            ]
        }
        "compacted" if round < 2 => {
            vec![Operation::CompactRange {
                family: 0,
                begin: None,
                end: None,
                bottommost: 2,
                exclusive: true,
            }]
        }
        "put-entity" | "put-entity-in-blob" => {
            let column = |name: &str| (key(name), Value::Text(key(format!("{name}@{round}"))));
            let wide = |name: &str| (key(name), Value::Fill(50, round));
            vec![write(vec![
                Record::PutEntity(0, round_key, vec![column(""), column("height"), column("width")]),
                Record::PutEntity(
                    0,
                    key(format!("wide{round}")),
                    vec![wide(""), column("height"), wide("width")],
                ),
                Record::PutEntity(0, key("entity without default"), vec![column("height")]),
            ])]
        }
        "single-delete" if round > 0 => vec![
            write(vec![Record::SingleDelete(0, key(format!("s{}", round - 1)))]),
            write(vec![put(0, &format!("s{round}"))]),
        ],
        "single-delete" => vec![write(vec![put(0, "s0")])],
        "merge-add" => vec![write(vec![
            Record::Merge(0, key("n1"), Value::Number(5 + round)),
            Record::Merge(0, key(format!("n1{round}")), Value::Number(7)),
        ])],
        "merge-append" => vec![write(vec![
            Record::Merge(0, key("list"), Value::Text(key(format!("{round}")))),
            Record::Merge(0, key("key00000007"), Value::Text(key(format!("more {round}")))),
        ])],
        "log-data" => vec![write(vec![Record::LogData(key("for the log")), put(0, "logged")])],
        "ingested" if round < 2 => vec![Operation::Ingest {
            family: 0,
            records: vec![
                put(0, "key00000003"),
                Record::Delete(0, key("key00000004")),
                put(0, &format!("late{round}")),
            ],
            move_file: false,
            by_other: false,
        }],
        _ => Vec::new(),
    }
}

fn case(recipe: &Recipe, engine: &str) -> Case {
    let mut family = Family::plain("default");
    match recipe.name {
        "merge-add" => family.merge = Merge::Add,
        "merge-append" => family.merge = Merge::Append,
        "reverse-order" => family.reverse = true,
        _ => {}
    }
    let mut options: Vec<String> = vec!["write_buffer_size=65536".into()];
    if !recipe.family_options.iter().any(|option| name(option) == "table.block_size") {
        options.push("table.block_size=256".into());
    }
    options.extend(recipe.family_options.iter().map(ToString::to_string));
    if recipe.name == "hash-index" {
        options.push(format!("prefix_extractor={HASH_PREFIX}"));
    }
    let mut operations = Vec::new();
    for round in 0..3 {
        operations.push(base(round));
        operations.extend(extra(recipe.name, round));
        if round < 2 {
            operations.push(Operation::Flush { family: 0, wait: true });
        }
    }
    let mut database: Vec<String> = vec!["max_background_jobs=1".into()];
    database.extend(recipe.options.iter().map(ToString::to_string));
    let phase = Phase {
        openings: Vec::new(),
        unlogged: false,
        engine: engine.to_string(),
        options: database,
        family_options: vec![options.clone(), options.clone(), options],
        end: End::Close,
        operations,
    };
    let families = vec![family, Family::plain("one"), Family::plain("dropped")];
    Case { seed: 0, families, initial: vec![0], access: Access::Plain, phases: vec![phase] }
}

/// The text of `rows.txt`.
fn rows(case: &Case, recipe: &Recipe) -> String {
    let mut model = Model::new(&case.families, &case.initial);
    let phase = &case.phases[0];
    for operation in &phase.operations {
        if admits(&model, operation) {
            model.apply(operation);
        }
    }
    let settings = [&phase.options[..], &phase.family_options[0]].concat().join("; ");
    let mut text = format!("# RocksDB {}, {}: {settings}\n", phase.engine, recipe.name);
    text += "# Made by `cargo xtask fixtures`; three rounds of writes, the last one only in the WAL.\n";
    for family in model.existing() {
        let described = model.family(family);
        let _ =
            writeln!(text, "[{}] merge={:?} reverse={}", described.name, described.merge, described.reverse);
        for (key, value) in model.rows(family) {
            let _ = writeln!(text, "{}\t{}", key.text(), value.escape_ascii());
        }
    }
    text
}

/// Makes all databases in `out`, replacing what is there under the same names; gives how many.
///
/// # Errors
/// A version that has a feature fails to make its database, or files cannot be written.
pub fn make(program: &Path, libraries: &BTreeMap<String, PathBuf>, out: &Path) -> Result<usize, String> {
    let mut pool = Pool::new(program, libraries);
    let scratch = Scratch::new(&std::env::temp_dir(), "fixtures")?;
    let versions = by_age(libraries);
    let mut made = 0;
    for (place, version) in versions.iter().enumerate() {
        let middle = place > 0 && place + 1 < versions.len();
        for recipe in RECIPES.iter().filter(|recipe| recipe.every || !middle) {
            let case = case(recipe, version);
            let dir = scratch.path().join("made");
            let _ = std::fs::remove_dir_all(&dir);
            match play(&case, &mut pool, &dir) {
                Ok(_) => {
                    let target = out.join(format!("{version}-{}", recipe.name));
                    keep(&dir.join("db"), &target, &rows(&case, recipe))
                        .map_err(|error| format!("{}: {error}", target.display()))?;
                    made += 1;
                }
                Err(failure) if failure.kind == Kind::Error => {
                    eprintln!("fixtures: {version} has no {}: {}", recipe.name, failure.message);
                }
                Err(failure) => return Err(format!("{version}, {}: {failure}", recipe.name)),
            }
        }
    }
    Ok(made)
}

/// Copies what a reader needs.
fn keep(db: &Path, target: &Path, rows: &str) -> std::io::Result<()> {
    let _ = std::fs::remove_dir_all(target);
    std::fs::create_dir_all(target)?;
    for entry in std::fs::read_dir(db)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !["LOG", "LOCK", "OPTIONS"].iter().any(|start| name.starts_with(start)) {
            std::fs::copy(&path, target.join(name))?;
        }
    }
    std::fs::write(target.join("rows.txt"), rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_recipe_has_a_name_of_its_own_and_writes_what_it_says() {
        let names: BTreeSet<&str> = RECIPES.iter().map(|recipe| recipe.name).collect();
        assert_eq!(names.len(), RECIPES.len());
        let plain = rows(&case(&RECIPES[0], "1.0"), &RECIPES[0]);
        for name in ["delete-range", "put-entity", "single-delete", "merge-add", "merge-append", "ingested"] {
            let recipe = RECIPES.iter().find(|recipe| recipe.name == name).unwrap();
            let rows_of = |text: &str| text.lines().skip(2).map(String::from).collect::<Vec<_>>();
            let text = rows(&case(recipe, "1.0"), recipe);
            assert_ne!(rows_of(&text), rows_of(&plain), "{name}");
        }
    }

    #[test]
    fn versions_are_ordered_by_number() {
        let names = ["10.2", "9.11.2", "outcrop", "6.29.5"];
        let libraries = names.iter().map(|name| (name.to_string(), PathBuf::new())).collect();
        assert_eq!(by_age(&libraries), ["6.29.5", "9.11.2", "10.2"]);
    }
}
