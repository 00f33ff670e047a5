//! Inputs that are known to decode, taken from databases RocksDB wrote: where mutation starts.
//!
//! `cargo xtask fuzz --write-corpus` puts them into `fuzz/corpus`; `cargo xtask fuzz --merge` keeps of them, and of what fuzzing has
//! found since, those that are needed to cover what all cover.

use crate::Target;
use crate::assemble::{Assembly, block, small_block};
use crate::repair::for_each_block;
use outcrop_base::coding::{put_length_prefixed, put_varint32};
use outcrop_base::{Comparator, FileNumber, SeqNum, ValueType, keys, wide_columns};
use outcrop_env::memory::MemoryFs;
use outcrop_env::{FileSystem, OpenWrite, ReadFile};
use outcrop_options::{BlockBasedTableOptions, CompressionOptions, CompressionType, WalRecoveryMode};
use outcrop_record::{LogReader, ReadOutcome};
use outcrop_table::blob::BlobIndex;
use outcrop_table::{TableWriter, TableWriterOptions};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Target and name of an input, and its bytes.
pub type Seeds = BTreeMap<(&'static str, String), Vec<u8>>;

/// Database, file name and contents.
pub type Fixture = (String, String, Vec<u8>);

/// Databases larger than this stay out of the corpus.
const LARGEST_DATABASE: usize = 13 << 10;
/// Databases of `made/` that have what no other fixture has.
const MADE: [&str; 9] = [
    "blob",
    "compacted",
    "delete-range",
    "families",
    "ingested",
    "merge-append",
    "partitioned",
    "put-entity",
    "wal-recycled",
];

/// Blocks longer than this stay out of the corpus.
const LONGEST: usize = 2 << 10;

/// The inputs that `fixtures`, (database, file name, contents) each, and a few lines of code give.
pub fn seeds(fixtures: &[Fixture]) -> Seeds {
    let mut seeds = by_hand();
    indexes(&mut seeds);
    written_tables(&mut seeds);
    seeds.insert(("damaged_table", "assembled".to_string()), Assembly::new(&small_block(), 0).finish());
    databases(&mut seeds, fixtures);
    for (database, name, bytes) in fixtures {
        if name.ends_with(".sst") {
            from_table(&mut seeds, database, bytes);
        } else if name.ends_with(".log") {
            let records = records(bytes, if database.contains("recyclable") { 10 } else { 4 });
            add_records(&mut seeds, "write_batch", database, records);
        } else if name.starts_with("OPTIONS") {
            seeds.insert(("options", database.clone()), bytes.clone());
        } else if name.starts_with("MANIFEST") {
            add_records(&mut seeds, "version_edit", database, records(bytes, 0));
        }
        for target in crate::TARGETS {
            let whole = target.fixtures.iter().any(|ending| name.ends_with(ending));
            if whole && bytes.len() <= 2 * LONGEST && !bytes.is_empty() {
                seeds.insert((target.name, format!("{database}-{name}")), bytes.clone());
            }
        }
    }
    one_of_each(seeds)
}

/// Whole databases that are small. Their OPTIONS have a target of their own.
fn databases(seeds: &mut Seeds, fixtures: &[Fixture]) {
    let mut files: BTreeMap<&str, Vec<(&str, &[u8])>> = BTreeMap::new();
    for (database, name, bytes) in fixtures.iter().filter(|(_, name, _)| !name.starts_with("OPTIONS")) {
        files.entry(database).or_default().push((name, bytes));
    }
    for (database, files) in files {
        let packed = crate::database::pack(files);
        if packed.len() <= LARGEST_DATABASE {
            seeds.insert(("database", database.to_string()), packed);
        }
    }
}

/// Leaves out inputs that are there under another name.
fn one_of_each(seeds: Seeds) -> Seeds {
    let mut seen = std::collections::BTreeSet::new();
    seeds.into_iter().filter(|((target, _), bytes)| seen.insert((*target, bytes.clone()))).collect()
}

fn by_hand() -> Seeds {
    let mut seeds = Seeds::new();
    let mut add = |target, name: &str, bytes: Vec<u8>| seeds.insert((target, name.to_string()), bytes);
    let mut numbers = Vec::new();
    put_varint32(&mut numbers, 300);
    put_varint32(&mut numbers, u32::MAX);
    put_varint32(&mut numbers, 3);
    put_length_prefixed(&mut numbers, b"slice");
    numbers.extend_from_slice(&[1; 15]);
    add("coding", "each-kind", numbers);
    for value_type in [ValueType::Value, ValueType::RangeDeletion, ValueType::WideColumnEntity] {
        let key = keys::internal_key(b"apple", SeqNum(7), value_type);
        add("keys", &format!("{value_type:?}"), key);
    }
    let mut entity = Vec::new();
    wide_columns::encode(&[(b"", b"main"), (b"a", b""), (b"bc", b"xyz")], &mut entity).expect("in order");
    add("wide_columns", "version-1", entity);
    add("wide_columns", "version-2", b"\x02\x02\x02\x02\x02\x01\x11\x00\x02\x03\x04bcabcREF!".to_vec());
    let mut index = Vec::new();
    BlobIndex { file_number: FileNumber(10), offset: 300, size: 77, codec: CompressionType::Lz4 }
        .encode(&mut index);
    add("blob_index", "lz4", index);
    add("ttl_value", "2026", b"token\x00\x00\x00\x6a".to_vec());
    add("options", "one", b"create_if_missing=true;write_buffer_size=16M".to_vec());
    add(
        "options",
        "nested",
        b"num_levels=8;block_based_table_factory={block_size=8192;filter_policy=bloomfilter:10:false;};\
          compression_per_level=kNoCompression:kZSTD;compression_opts={level=5;window_bits=-14;}"
            .to_vec(),
    );
    let first =
        b"1795352865\n6\nmetadata 68656C6C6F0A\n2\nshared_checksum/000009_sCU1H_1285.sst crc32 2274351274\n\
                  private/2/CURRENT crc32 2659179228\n";
    add("backup_meta", "schema-1", first.to_vec());
    let second = b"schema_version 2.1\n1795352865\n6\n1\nprivate/2/CURRENT crc32 7 temp kWarm size 5\n\
                   shared_checksum/000010_s1_5.sst ni::excluded true\n// FOOTER\nsum 1\n";
    add("backup_meta", "schema-2", second.to_vec());
    for name in ["CURRENT", "LOCK", "MANIFEST-000005", "000004.log", "000009.sst", "OPTIONS-000007.dbtmp"] {
        add("file_name", name, name.as_bytes().to_vec());
    }
    seeds
}

/// Index blocks whose handles are those of the block in the table that is built around them.
fn indexes(seeds: &mut Seeds) {
    let mut handle = Vec::new();
    put_varint32(&mut handle, 0);
    put_varint32(&mut handle, small_block().len() as u32);
    let separators = [&b"apple"[..], b"apricot", b"cherry", b"cherrystone"];
    let entries = |internal: bool, value: &[u8]| -> Vec<(Vec<u8>, Vec<u8>)> {
        let key = |user_key: &&[u8]| match internal {
            true => keys::internal_key(user_key, SeqNum(1), ValueType::Value),
            false => user_key.to_vec(),
        };
        separators.iter().map(|separator| (key(separator), value.to_vec())).collect()
    };
    for (name, kind, internal) in
        [("internal-keys", 0, true), ("user-keys", 4, false), ("first-keys", 3, true)]
    {
        let mut value = handle.clone();
        if kind == 3 {
            put_length_prefixed(&mut value, &keys::internal_key(b"apple", SeqNum(3), ValueType::Value));
        }
        let contents = block(&entries(internal, &value));
        seeds.insert(("index", name.to_string()), [&[kind][..], &contents].concat());
    }
    // Partitions of one index that are the partition itself: as deep as an index goes.
    let contents = block(&entries(true, &handle));
    seeds.insert(("index", "partitions".to_string()), [&[2][..], &contents].concat());
    // Without lengths of values, which are the whole handle at restart points.
    let (mut deltas, mut restarts) = (Vec::new(), Vec::new());
    for separator in separators {
        restarts.push(deltas.len() as u32);
        put_varint32(&mut deltas, 0);
        put_length_prefixed(&mut deltas, separator);
        deltas.extend_from_slice(&handle);
    }
    restarts.iter().for_each(|restart| deltas.extend_from_slice(&restart.to_le_bytes()));
    deltas.extend_from_slice(&(restarts.len() as u32).to_le_bytes());
    seeds.insert(("index", "deltas".to_string()), [&[4 | 8][..], &deltas].concat());
}

fn writer_options(compression: CompressionType, max_dict_bytes: u32) -> TableWriterOptions {
    TableWriterOptions {
        comparator: Comparator::Bytewise,
        table: BlockBasedTableOptions::default(),
        compression,
        compression_opts: CompressionOptions { max_dict_bytes, ..CompressionOptions::default() },
        column_family_id: 0,
        column_family_name: "default".to_string(),
        merge_operator_name: None,
        db_id: "db".to_string(),
        session_id: "session".to_string(),
        host_id: String::new(),
        file_number: 9,
        creation_time: 0,
        oldest_key_time: 0,
        newest_key_time: 0,
        file_creation_time: 0,
        omit_filter: false,
        prefix_extractor: None,
        level: None,
        external: false,
    }
}

/// Parts of small tables with every codec, with and without a dictionary.
fn written_tables(seeds: &mut Seeds) {
    let fs = MemoryFs::new();
    let path = Path::new("/table");
    fs.create_dir_all(Path::new("/")).expect("in memory");
    for codec in [
        CompressionType::Snappy,
        CompressionType::Zlib,
        CompressionType::BZip2,
        CompressionType::Lz4,
        CompressionType::Lz4hc,
        CompressionType::Zstd,
    ] {
        for max_dict_bytes in [0, 200] {
            let options = writer_options(codec, max_dict_bytes);
            let file = fs.create(path, OpenWrite::default()).expect("in memory");
            let mut writer = TableWriter::new(file, options);
            for row in 0..30 {
                let key = keys::internal_key(format!("key{row:03}").as_bytes(), SeqNum(9), ValueType::Value);
                writer.add(&key, format!("value-{row}-of-thirty-rows").as_bytes()).expect("in memory");
            }
            if max_dict_bytes > 0 {
                for (begin, seq) in [("b", 5), ("k", 3), ("k", 9)] {
                    writer.add_range_tombstone(begin.as_bytes(), SeqNum(seq), b"p");
                }
            }
            writer.finish().expect("in memory");
            let bytes = fs.read_all(path).expect("just written");
            from_table(seeds, &format!("{codec:?}-{max_dict_bytes}"), &bytes);
        }
    }
}

fn from_table(seeds: &mut Seeds, database: &str, bytes: &[u8]) {
    let (mut data, mut index, mut dictionary) = (Vec::new(), Vec::new(), Vec::new());
    let mut add = |target, bytes: &[u8]| {
        if bytes.len() <= LONGEST {
            seeds.insert((target, database.to_string()), bytes.to_vec());
        }
    };
    for_each_block(&mut bytes.to_vec(), &mut |name, contents, codec| match name {
        b"" if data.is_empty() => data = [&[codec][..], contents].concat(),
        b"metaindex" => add("metaindex", contents),
        b"rocksdb.properties" => add("properties", contents),
        b"rocksdb.range_del" => add("range_del", contents),
        b"rocksdb.compression_dict" => dictionary = contents.to_vec(),
        // User keys and differences, as all recent versions write.
        b"rocksdb.index" => index = [&[4 | 8][..], contents].concat(),
        name if name.starts_with(b"fullfilter") => add("filter", &[&[0][..], contents].concat()),
        name if name.starts_with(b"partitionedfilter") => add("filter", &[&[1][..], contents].concat()),
        _ => {}
    });
    if index.len() > 1 {
        add("index", &index);
    }
    match data.split_first() {
        Some((0, contents)) => add("block", contents),
        Some((codec, contents)) => {
            let short = u8::try_from(dictionary.len()).unwrap_or(0);
            let kept = &dictionary[..usize::from(short)];
            add("compressed", &[&[*codec, short][..], kept, contents].concat());
        }
        None => {}
    }
}

fn records(bytes: &[u8], number: u64) -> Vec<Vec<u8>> {
    let file: Arc<dyn ReadFile> = crate::bytes_file::file(bytes);
    let mut reader = LogReader::new(file, number, WalRecoveryMode::TolerateCorruptedTailRecords);
    let mut records = Vec::new();
    while let Ok(ReadOutcome::Record(record, _)) = reader.next() {
        records.push(record.to_vec());
    }
    records
}

fn add_records(seeds: &mut Seeds, target: &'static str, database: &str, records: Vec<Vec<u8>>) {
    for (number, record) in records.into_iter().enumerate().filter(|(_, record)| record.len() <= LONGEST) {
        // Most records are one put each: the first ones stand for all.
        if number < 8 {
            seeds.insert((target, format!("{database}-{number}")), record);
        }
    }
}

/// Seeds from those databases of `made`, below the fixtures' directory, that have what no other fixture has. Only whole:
/// their kinds of files are among the others.
///
/// # Errors
/// The error of reading a file.
pub fn made_seeds(made: &Path) -> std::io::Result<Seeds> {
    let mut files = fixtures(made)?;
    files.retain(|(database, name, _)| {
        name != "rows.txt" && database.strip_prefix("11.8.1-").is_some_and(|kind| MADE.contains(&kind))
    });
    let mut seeds = Seeds::new();
    databases(&mut seeds, &files);
    let named = |((target, name), bytes): ((_, String), _)| ((target, format!("made-{name}")), bytes);
    Ok(seeds.into_iter().map(named).collect())
}

/// Reads all files of the databases in `dir`.
///
/// # Errors
/// The error of reading a file.
pub fn fixtures(dir: &Path) -> std::io::Result<Vec<Fixture>> {
    let mut files = Vec::new();
    for database in std::fs::read_dir(dir)? {
        let database = database?;
        if !database.file_type()?.is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(database.path())? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                // `made/` holds databases by the hundred: their kinds of files are among those here.
                continue;
            }
            let text = |name: std::ffi::OsString| name.to_string_lossy().into_owned();
            files.push((text(database.file_name()), text(entry.file_name()), std::fs::read(entry.path())?));
        }
    }
    files.sort();
    Ok(files)
}

/// The fixtures that `target` takes as they are, and its corpus does not have. `root` is the workspace's directory.
///
/// # Errors
/// The directory or file that cannot be read.
pub fn whole_fixtures(target: &Target, root: &Path) -> Result<Vec<Vec<u8>>, String> {
    let corpus = corpus(target, root)?;
    let files = fixtures(&root.join("fixtures")).map_err(|error| format!("fixtures: {error}"))?;
    let mut whole: Vec<Vec<u8>> = Vec::new();
    for (_, name, bytes) in files {
        let taken = target.fixtures.iter().any(|ending| name.ends_with(ending));
        if taken && !corpus.contains(&bytes) && !whole.contains(&bytes) {
            whole.push(bytes);
        }
    }
    Ok(whole)
}

/// The corpus of a target, in the order of names, and the fixtures it takes as they are.
///
/// # Errors
/// What cannot be read, or that there are none.
pub fn inputs(target: &Target, root: &Path) -> Result<Vec<Vec<u8>>, String> {
    let mut inputs = corpus(target, root)?;
    inputs.extend(whole_fixtures(target, root)?);
    if inputs.is_empty() { Err(format!("fuzz/corpus/{}: no inputs", target.name)) } else { Ok(inputs) }
}

fn corpus(target: &Target, root: &Path) -> Result<Vec<Vec<u8>>, String> {
    let dir = root.join("fuzz/corpus").join(target.name);
    let read = || -> std::io::Result<Vec<Vec<u8>>> {
        let paths = std::fs::read_dir(&dir)?.map(|entry| entry.map(|entry| entry.path()));
        let mut paths = paths.collect::<std::io::Result<Vec<_>>>()?;
        paths.sort();
        paths.iter().map(std::fs::read).collect()
    };
    read().map_err(|error| format!("{}: {error}", dir.display()))
}
