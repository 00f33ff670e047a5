//! Options as text: the OPTIONS file, and `name=value;` strings.
//!
//! Source: RocksDB `options/options_parser.cc`; `docs/format/options.md`.

use crate::kept::{
    self, CF_KEPT, DB_KEPT, DEPRECATED, DEPRECATED_OF_TABLES, Fate, Kept, KeptRow, TABLE_KEPT,
};
use crate::offpeak;
use crate::recorded_paths::{self, WRITTEN_BY};
use crate::rows::{CF_ROWS, DB_ROWS, NEWER_THAN_6_29, OptionValue, Row, TABLE_ROWS, bad_value, printed, set};
use crate::{BlockBasedTableOptions, ColumnFamilyOptions, DbOptions};
use outcrop_base::{Error, PrefixExtractor, Result};
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::LazyLock;

/// The RocksDB whose option names the file uses: old enough that any supported version loads it.
const WRITTEN_AS_VERSION: &str = "6.29.5";
/// The same if a newer name is in it. Loaders pass over unknown names only in files of versions newer than themselves.
const WRITTEN_AS_NEWER_VERSION: &str = "11.8.1";

/// The text of an OPTIONS file; "default" must come first. Paths are comments in it: `recorded_paths.rs`.
pub fn print(db: &DbOptions, families: &[(String, ColumnFamilyOptions)]) -> String {
    let mut text = String::new();
    print_rows(&mut text, DB_ROWS, db);
    print_kept(&mut text, DB_KEPT, &db.kept);
    recorded_paths::print_of_database(&mut text, &db.db_paths);
    for (name, options) in families {
        let name = escape(name);
        let _ = write!(text, "\n[CFOptions \"{name}\"]\n");
        print_rows(&mut text, CF_ROWS, options);
        print_kept(&mut text, CF_KEPT, &options.kept);
        recorded_paths::print_of_family(&mut text, options, &db.db_paths);
        let _ =
            write!(text, "  table_factory=BlockBasedTable\n\n[TableOptions/BlockBasedTable \"{name}\"]\n");
        print_rows(&mut text, TABLE_ROWS, &options.table);
        print_kept(&mut text, TABLE_KEPT, &options.table.kept);
    }
    let version = if names_newer_option(&text) { WRITTEN_AS_NEWER_VERSION } else { WRITTEN_AS_VERSION };
    format!(
        "{WRITTEN_BY}\n\n\
         [Version]\n  rocksdb_version={version}\n  options_file_version=1.1\n\n[DBOptions]\n{text}"
    )
}

/// Names that RocksDB 6.29 does not know.
static NEWER_NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let kept = DB_KEPT.iter().chain(CF_KEPT).chain(TABLE_KEPT);
    let kept = kept.filter(|row| row.newer).map(|row| row.name);
    kept.chain(NEWER_THAN_6_29.iter().copied().filter(|newer| !newer.contains('.'))).collect()
});

/// Whether a name that RocksDB 6.29 does not know is among these statements.
fn names_newer_option(statements: &str) -> bool {
    let has_field = |value: &str, field: &str| {
        let fields = value.trim_matches(['{', '}']).split(';');
        fields.filter_map(|pair| pair.split_once('=')).any(|(name, _)| name == field)
    };
    // `bottommost_compression_opts` has the fields of `compression_opts`.
    let newer_fields = NEWER_THAN_6_29.iter().filter_map(|newer| newer.split_once('.'));
    statements.lines().filter_map(|line| line.trim().split_once('=')).any(|(name, value)| {
        NEWER_NAMES.contains(name)
            || newer_fields.clone().any(|(outer, field)| name.ends_with(outer) && has_field(value, field))
    })
}

/// Kept options that are not at their defaults.
fn print_kept(text: &mut String, rows: &[KeptRow], kept: &Kept) {
    for (name, value) in kept.iter() {
        let written = |row: &&KeptRow| row.name == name && row.fate != Fate::Unwritten;
        if rows.iter().find(written).is_some() {
            let _ = writeln!(text, "  {name}={}", escape(value));
        }
    }
}

fn print_rows<T: Default>(text: &mut String, rows: &[Row<T>], options: &T) {
    for (name, value) in printed(rows, options, "") {
        let _ = writeln!(text, "  {name}={}", escape(&value));
    }
}

/// A text that stays on one line and begins no comment.
pub(crate) fn escape(value: &str) -> String {
    let mut out = String::new();
    for c in value.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\\' | '#' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

/// The contents of an OPTIONS file.
///
/// ```
/// # mod outcrop { pub mod options { pub use outcrop_options::file::LoadedOptions; } }
/// use outcrop::options::LoadedOptions;
///
/// /// Options of a database of RocksDB that this engine does not have.
/// fn not_in_effect(loaded: &LoadedOptions) -> Vec<&str> {
///     loaded.ignored.iter().map(|(_section, name, _value)| name.as_str()).collect()
/// }
/// # assert!(not_in_effect(&LoadedOptions::default()).is_empty());
/// ```
#[derive(Clone, Debug, Default)]
pub struct LoadedOptions {
    /// The RocksDB version whose option names it uses; empty if it does not say.
    pub rocksdb_version: String,
    /// Settings of the database.
    pub db: DbOptions,
    /// Settings of each column family, "default" first.
    pub families: Vec<(String, ColumnFamilyOptions)>,
    /// Options that RocksDB has and this engine has not: (section, name, value). They are not in effect.
    pub ignored: Vec<(String, String, String)>,
}

/// Reads an OPTIONS file, RocksDB's or this engine's own.
///
/// # Errors
/// InvalidArgument naming the line: for what RocksDB's loader refuses, and for values that do not parse.
pub fn parse(text: &str) -> Result<LoadedOptions> {
    let mut loaded = LoadedOptions::default();
    let mut section = Section::None;
    let mut seen_db = false;
    for (index, line) in text.lines().enumerate() {
        let line = without_comment(line);
        let line = line.trim();
        let at = |error: Error| error.within(format!("OPTIONS line {}", index + 1));
        if line.is_empty() {
            continue;
        }
        if let Some(title) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = Section::of(title, &mut loaded, &mut seen_db).map_err(at)?;
            continue;
        }
        let (name, value) = line
            .split_once('=')
            .ok_or_else(|| at(Error::invalid_argument(format!("{line:?} is not name=value"))))?;
        section.set(&mut loaded, name.trim(), &unescape(value.trim())).map_err(at)?;
    }
    if !seen_db || loaded.families.is_empty() {
        return Err(Error::invalid_argument("an OPTIONS file needs [DBOptions] and [CFOptions \"default\"]"));
    }
    Ok(loaded)
}

/// The section a line is in.
#[derive(Clone, Debug)]
enum Section {
    None,
    Version,
    Db,
    /// Index of the column family.
    Cf(usize),
    Table(usize),
}

impl Section {
    fn of(title: &str, loaded: &mut LoadedOptions, seen_db: &mut bool) -> Result<Section> {
        let refuse = |what: &str| Err(Error::invalid_argument(format!("section [{title}]: {what}")));
        let (kind, name) = match title.split_once('"') {
            Some((kind, name)) => (kind.trim(), Some(unescape(name.trim_end_matches('"')))),
            None => (title.trim(), None),
        };
        let position = |name: &str| loaded.families.iter().position(|(known, _)| known == name);
        match (kind, name) {
            ("Version", None) => Ok(Section::Version),
            ("DBOptions", None) if *seen_db => refuse("it comes twice"),
            ("DBOptions", None) => {
                *seen_db = true;
                Ok(Section::Db)
            }
            ("CFOptions", Some(name)) => {
                if loaded.families.is_empty() && name != "default" {
                    return refuse("the default column family must come first");
                }
                if position(&name).is_some() {
                    return refuse("it comes twice");
                }
                loaded.families.push((name, ColumnFamilyOptions::default()));
                Ok(Section::Cf(loaded.families.len() - 1))
            }
            ("TableOptions/BlockBasedTable", Some(name)) => match position(&name) {
                Some(index) => Ok(Section::Table(index)),
                None => refuse("its column family is not known"),
            },
            _ => refuse("there is no such section"),
        }
    }

    fn title(&self, loaded: &LoadedOptions) -> String {
        let name = |index: &usize| &loaded.families[*index].0;
        match self {
            Section::None => String::new(),
            Section::Version => "Version".to_string(),
            Section::Db => "DBOptions".to_string(),
            Section::Cf(index) => format!("CFOptions \"{}\"", name(index)),
            Section::Table(index) => format!("TableOptions/BlockBasedTable \"{}\"", name(index)),
        }
    }

    fn set(&self, loaded: &mut LoadedOptions, name: &str, value: &str) -> Result<()> {
        // An object that only the program which wrote the file has, or a value of a version to come.
        let loaded_kept =
            |rows: &'static [KeptRow], kept: &mut Kept| kept.set(rows, name, value).unwrap_or(false);
        let known = match self {
            Section::None => {
                return Err(Error::invalid_argument(format!("{name} stands outside any section")));
            }
            Section::Version => {
                if name == "rocksdb_version" {
                    loaded.rocksdb_version = value.to_string();
                }
                true
            }
            Section::Db => {
                set(DB_ROWS, &mut loaded.db, name, value)? || loaded_kept(DB_KEPT, &mut loaded.db.kept)
            }
            Section::Cf(index) => {
                let options = &mut loaded.families[*index].1;
                match name {
                    "table_factory" if value == "BlockBasedTable" => true,
                    "table_factory" => {
                        return Err(Error::not_supported(format!("table_factory {value}")));
                    }
                    // An object that only the program has: without it the database opens, and what was merged cannot be
                    // read. Its name is not taken: nothing would stand for it.
                    "merge_operator" if is_of_the_program(value) => false,
                    // The same: without it tables are read without their filters of prefixes.
                    "prefix_extractor" if Option::<PrefixExtractor>::parse(value).is_none() => false,
                    // As earlier versions of this engine wrote it.
                    "allow_ingest_behind" => set(CF_ROWS, options, "cf_allow_ingest_behind", value)?,
                    _ => set(CF_ROWS, options, name, value)? || loaded_kept(CF_KEPT, &mut options.kept),
                }
            }
            Section::Table(index) => {
                let table = &mut loaded.families[*index].1.table;
                set(TABLE_ROWS, table, name, value)? || loaded_kept(TABLE_KEPT, &mut table.kept)
            }
        };
        if !known {
            let section = self.title(loaded);
            loaded.ignored.push((section, name.to_string(), value.to_string()));
        }
        Ok(())
    }
}

impl LoadedOptions {
    /// The first option that no version up to RocksDB 11.8.1 has, with its section: a mistake, or from a version to come. RocksDB's loader
    /// refuses such a file, unless it is of a newer version or it is told to ignore that.
    pub fn unknown(&self) -> Option<(&str, &str)> {
        let newest: Vec<u32> = vec![11, 8, 1];
        let version = self.rocksdb_version.split('.').map_while(|part| part.parse().ok());
        if version.collect::<Vec<u32>>() > newest {
            return None;
        }
        let unknown = self.ignored.iter().find(|(_, name, _)| !is_known(name));
        unknown.map(|(section, name, _)| (&section[..], &name[..]))
    }

    /// Column families with the names of their merge operators that are not built in: objects that a program has to bring.
    pub fn merge_operators_to_bring(&self) -> impl Iterator<Item = (&str, String)> {
        self.families.iter().enumerate().filter_map(|(index, (family, _))| {
            let section = Section::Cf(index).title(self);
            let mut named =
                self.ignored.iter().filter(|(of, name, _)| *of == section && name == "merge_operator");
            let name = named.next().and_then(|(_, _, text)| Option::<String>::parse(text).flatten())?;
            Some((family.as_str(), name))
        })
    }
}

/// Whether RocksDB has, or had, an option of this name.
fn is_known(name: &str) -> bool {
    let name = kept::without_alias(name);
    DB_ROWS.iter().any(|row| row.name == name)
        || CF_ROWS.iter().any(|row| row.name == name)
        || TABLE_ROWS.iter().any(|row| row.name == name)
        || [DB_KEPT, CF_KEPT, TABLE_KEPT].iter().any(|rows| rows.iter().any(|row| row.name == name))
        || DEPRECATED.contains(&name)
        || DEPRECATED_OF_TABLES.contains(&name)
}

/// Whether a merge operator is neither none nor one of RocksDB's own.
fn is_of_the_program(merge_operator: &str) -> bool {
    let name = Option::<String>::parse(merge_operator).flatten();
    name.is_some_and(|name| outcrop_base::builtin_merge::by_name(&name).is_none())
}

/// The line up to a `#` that no backslash precedes.
fn without_comment(line: &str) -> &str {
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match c {
            '#' if !escaped => return &line[..at],
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    line
}

/// Undoes [`escape`].
pub(crate) fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, false) => out.push(c),
            (_, true) => match chars.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some(other) => out.push(other),
                None => {}
            },
        }
    }
    out
}

/// Changes one mutable option of a column family, as `set_options` does.
///
/// # Errors
/// InvalidArgument naming the option if there is none of that name, it cannot change while the database is
/// open, or the value does not parse.
pub fn set_mutable(options: &mut ColumnFamilyOptions, name: &str, value: &str) -> Result<()> {
    let name = kept::without_alias(name);
    if let Some(row) = CF_ROWS.iter().find(|row| row.name == name) {
        // Objects may be named, if they stay.
        let extractor = options.prefix_extractor.as_ref().map(PrefixExtractor::name);
        if (name == "comparator" && options.comparator.as_deref() == Some(value))
            || (name == "prefix_extractor" && extractor.as_deref() == Some(value))
        {
            return Ok(());
        }
        refuse_fixed(name, row.mutable)?;
        return (row.set)(options, value);
    }
    if let Some(row) = CF_KEPT.iter().find(|row| row.name == name) {
        let mut same = options.kept.clone();
        if name == "memtable_factory" && same.set(CF_KEPT, name, value)? && same == options.kept {
            return Ok(());
        }
        refuse_fixed(name, row.mutable)?;
        return options.kept.set(CF_KEPT, name, value).map(|_| ());
    }
    if kept::is_deprecated_and_mutable(name) {
        return Ok(());
    }
    if matches!(name, "block_based_table_factory" | "table_factory") {
        return match value {
            "BlockBasedTable" => Ok(()),
            nested => each_pair(nested, &mut |name, value| set_mutable_of_table(options, name, value)),
        };
    }
    let mut of_database = DB_ROWS.iter().map(|row| row.name).chain(DB_KEPT.iter().map(|row| row.name));
    if of_database.any(|known| known == name) {
        return Err(Error::invalid_argument(format!(
            "option {name} is one of the database: set_options changes those of a column family"
        )));
    }
    // RocksDB wants these in braces.
    set_mutable_of_table(options, name, value)
}

fn set_mutable_of_table(options: &mut ColumnFamilyOptions, name: &str, value: &str) -> Result<()> {
    if let Some(row) = TABLE_ROWS.iter().find(|row| row.name == name) {
        refuse_fixed(name, row.mutable)?;
        return (row.set)(&mut options.table, value);
    }
    if let Some(row) = TABLE_KEPT.iter().find(|row| row.name == name) {
        refuse_fixed(name, row.mutable)?;
        return options.table.kept.set(TABLE_KEPT, name, value).map(|_| ());
    }
    if DEPRECATED_OF_TABLES.contains(&name) { Ok(()) } else { Err(unknown(name)) }
}

fn refuse_fixed(name: &str, mutable: bool) -> Result<()> {
    if mutable {
        return Ok(());
    }
    Err(Error::invalid_argument(format!("option {name} cannot change while the database is open")))
}

/// Changes one mutable option of the database.
///
/// # Errors
/// NotFound if there is none of that name that can change, in RocksDB's words; InvalidArgument if it has no such value.
pub fn set_mutable_of_database(options: &mut DbOptions, name: &str, value: &str) -> Result<()> {
    let row = DB_ROWS.iter().find(|row| row.name == name && row.mutable);
    let kept = DB_KEPT.iter().find(|row| row.name == name && row.mutable);
    match (row, kept) {
        (Some(row), _) => (row.set)(options, value),
        (None, Some(_))
            if name == "daily_offpeak_time_utc" && !value.is_empty() && offpeak::parse(value).is_none() =>
        {
            Err(Error::invalid_argument(
                "daily_offpeak_time_utc should be set in the format HH:mm-HH:mm (e.g. 04:30-07:30)",
            ))
        }
        (None, Some(_)) => options.kept.set(DB_KEPT, name, value).map(|_| ()),
        (None, None) if name.is_empty() => Err(Error::not_found("Unrecognized option")),
        (None, None) => Err(Error::not_found(format!("Unrecognized option: {name}"))),
    }
}

/// Sets options from `name=value;name={name=value;};` text, for database, column family and tables alike.
///
/// # Errors
/// InvalidArgument naming the first option that does not exist or whose value does not parse.
pub fn set_from_string(db: &mut DbOptions, cf: &mut ColumnFamilyOptions, text: &str) -> Result<()> {
    set_from_string_or(db, cf, text, &mut |_, _| Ok(false))
}

/// As [`set_from_string`]; `other` is asked first, and says whether it knows the name.
///
/// # Errors
/// As [`set_from_string`], and those of `other`.
pub fn set_from_string_or(
    db: &mut DbOptions,
    cf: &mut ColumnFamilyOptions,
    text: &str,
    other: &mut dyn FnMut(&str, &str) -> Result<bool>,
) -> Result<()> {
    each_pair(text, &mut |name, value| {
        let name = kept::without_alias(name);
        if name == "block_based_table_factory" || name == "table_factory" {
            return match value {
                "BlockBasedTable" => Ok(()),
                nested => each_pair(nested, &mut |name, value| set_of_table(&mut cf.table, name, value)),
            };
        }
        let elsewhere = other(name, value)?;
        let known = set(DB_ROWS, db, name, value)?
            || set(CF_ROWS, cf, name, value)?
            || db.kept.set(DB_KEPT, name, value)?
            || DEPRECATED.contains(&name)
            || cf.kept.set(CF_KEPT, name, value)?
            || elsewhere;
        if known { Ok(()) } else { set_of_table(&mut cf.table, name, value) }
    })
}

fn set_of_table(table: &mut BlockBasedTableOptions, name: &str, value: &str) -> Result<()> {
    if name == "block_cache" && value == "nullptr" {
        // One of its own.
        table.block_cache_bytes = None;
        return Ok(());
    }
    if name == "block_cache" {
        // Of a cache in braces its capacity matters; others of its options are those of RocksDB's kinds of caches.
        let capacity =
            value.split(';').find_map(|pair| pair.trim().strip_prefix("capacity=")).unwrap_or(value);
        table.block_cache_bytes = Some(u64::parse(capacity).ok_or_else(|| bad_value(name, value))?);
        return Ok(());
    }
    let known = set(TABLE_ROWS, table, name, value)?
        || table.kept.set(TABLE_KEPT, name, value)?
        || DEPRECATED_OF_TABLES.contains(&name);
    if known { Ok(()) } else { Err(unknown(name)) }
}

/// A known name that is this many edits or fewer away from an unknown one may be the one that was meant.
const MOST_EDITS: usize = 3;

fn unknown(name: &str) -> Error {
    let names = DB_ROWS.iter().map(|row| row.name);
    let names = names.chain(CF_ROWS.iter().map(|row| row.name)).chain(TABLE_ROWS.iter().map(|row| row.name));
    let names = names.chain(DB_KEPT.iter().chain(CF_KEPT).chain(TABLE_KEPT).map(|row| row.name));
    let nearest =
        names.map(|known| (strsim::levenshtein(known, name), known)).min_by_key(|(edits, _)| *edits);
    match nearest.filter(|(edits, _)| *edits <= MOST_EDITS) {
        Some((_, near)) => Error::invalid_argument(format!("unknown option {name}; did you mean {near}?")),
        None => Error::invalid_argument(format!("unknown option {name}")),
    }
}

/// Calls `each` with every `name=value` of `text`; a value in braces is passed without them. Of a name that is there more than once only the
/// last value counts, whatever the others are.
///
/// # Errors
/// InvalidArgument with RocksDB's words if the text is no such list; those of `each`.
pub(crate) fn each_pair(text: &str, each: &mut dyn FnMut(&str, &str) -> Result<()>) -> Result<()> {
    pairs_of(text)?.into_iter().try_for_each(|(name, value)| each(name, value))
}

/// Source: RocksDB `StringToMap`.
fn pairs_of(text: &str) -> Result<Vec<(&str, &str)>> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    let refuse = |why: &str| Err(Error::invalid_argument(why));
    let mut rest = text.trim();
    while let Some(inner) = rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'))
        && !inner.is_empty()
    {
        rest = inner.trim();
    }
    while !rest.is_empty() {
        let Some(at) = rest.find(['=', '{', '}', ';']) else {
            return refuse("Mismatched key value pair, '=' expected");
        };
        let (name, tail) = (rest[..at].trim(), rest[at + 1..].trim_start());
        if !rest[at..].starts_with('=') {
            return refuse("Unexpected char in key");
        }
        if name.is_empty() {
            return refuse("Empty key found");
        }
        let (value, after) = if tail.starts_with('{') {
            let Some(end) = matching_brace(tail) else {
                return refuse("Mismatched curly braces for nested options");
            };
            let after = tail[end + 1..].trim_start();
            if !after.is_empty() && !after.starts_with(';') {
                return refuse("Unexpected chars after nested options");
            }
            (&tail[1..end], after)
        } else {
            tail.split_at(tail.find(';').unwrap_or(tail.len()))
        };
        match pairs.iter_mut().find(|(known, _)| *known == name) {
            Some(pair) => pair.1 = value.trim(),
            None => pairs.push((name, value.trim())),
        }
        rest = after.strip_prefix(';').unwrap_or(after);
    }
    Ok(pairs)
}

fn matching_brace(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompressionType, FilterPolicy};

    #[test]
    fn of_a_name_that_is_there_twice_the_last_value_counts() {
        let (mut db, mut cf) = (DbOptions::default(), ColumnFamilyOptions::default());
        let text =
            "num_levels=none;table_factory={block_size=none;block_size=1;block_size=8192};num_levels=8";
        set_from_string(&mut db, &mut cf, text).unwrap();
        assert_eq!((cf.num_levels, cf.table.block_size), (8, 8192));
        let text = "table_factory={block_size=4096;format_version=4};table_factory={format_version=5}";
        set_from_string(&mut db, &mut cf, text).unwrap();
        assert_eq!((cf.table.block_size, cf.table.format_version), (8192, 5));
        set_from_string(&mut db, &mut cf, "num_levels=7;num_levels=none").unwrap_err();
        set_from_string(&mut db, &mut cf, "num_levels=7;{").unwrap_err();
        assert_eq!(cf.num_levels, 8, "nothing is set if the text is no list");
    }

    #[test]
    fn strings_set_options_of_all_kinds() {
        let (mut db, mut cf) = (DbOptions::default(), ColumnFamilyOptions::default());
        let text = "create_if_missing=true;write_buffer_size=16M; compression_per_level=kNoCompression:kZSTD;\
                    block_based_table_factory={block_size=8192;filter_policy=bloomfilter:10:false;};num_levels=8";
        set_from_string(&mut db, &mut cf, text).unwrap();
        assert!(db.create_if_missing);
        assert_eq!((cf.write_buffer_size, cf.num_levels, cf.table.block_size), (16 << 20, 8, 8192));
        assert_eq!(cf.compression_per_level, [CompressionType::None, CompressionType::Zstd]);
        assert_eq!(cf.table.filter_policy, FilterPolicy::Bloom { bits_per_key: 10.0 });
    }

    #[test]
    fn compression_opts_read_in_every_form_rocksdb_prints() {
        let (mut db, mut cf) = (DbOptions::default(), ColumnFamilyOptions::default());
        let text = "compression_opts={checksum=false;max_dict_buffer_bytes=0;enabled=false;max_dict_bytes=4096;\
                    max_compressed_bytes_per_kb=900;parallel_threads=1;zstd_max_train_bytes=65536;level=5;\
                    use_zstd_dict_trainer=true;strategy=0;window_bits=-14;}; num_levels=3";
        set_from_string(&mut db, &mut cf, text).unwrap();
        let opts = cf.compression_opts.clone();
        assert_eq!((opts.level, opts.max_dict_bytes, opts.zstd_max_train_bytes), (5, 4096, 65536));
        assert_eq!((opts.max_compressed_bytes_per_kb, cf.num_levels), (900, 3));
        set_from_string(&mut db, &mut cf, "compression_opts=-12:4:0:1024").unwrap();
        let opts = &cf.compression_opts;
        assert_eq!((opts.window_bits, opts.level, opts.max_dict_bytes), (-12, 4, 1024));
        assert!(set_from_string(&mut db, &mut cf, "compression_opts={strategy=none;}").is_err());
        assert!(set_from_string(&mut db, &mut cf, "compression_opts={levle=2;}").is_err());
    }

    #[test]
    fn compaction_options_read_as_every_version_prints_them() {
        for file in [
            include_str!("../../../fixtures/6.29.5-basic/OPTIONS-000007"),
            include_str!("../../../fixtures/10.4.2-basic/OPTIONS-000007"),
            include_str!("../../../fixtures/11.8.1-basic/OPTIONS-000007"),
        ] {
            let (mut db, mut cf) = (DbOptions::default(), ColumnFamilyOptions::default());
            for line in file.lines().map(str::trim).filter(|line| line.starts_with("compaction_options_")) {
                set_from_string(&mut db, &mut cf, line).unwrap_or_else(|error| panic!("{line}: {error}"));
            }
            // Versions before 11 had another default.
            cf.compaction_options_universal.reduce_file_locking = true;
            assert_eq!(cf, ColumnFamilyOptions::default(), "RocksDB's defaults are ours");
        }
    }

    #[test]
    fn nested_options_keep_what_is_not_named() {
        let mut cf = ColumnFamilyOptions::default();
        set_mutable(&mut cf, "compaction_options_universal", "{size_ratio=7;max_read_amp=3}").unwrap();
        set_mutable(&mut cf, "compaction_options_universal", "min_merge_width=4;").unwrap();
        let universal = &cf.compaction_options_universal;
        assert_eq!((universal.size_ratio, universal.min_merge_width, universal.max_read_amp), (7, 4, 3));
        set_mutable(&mut cf, "compaction_options_fifo", "{max_table_files_size=3M;}").unwrap();
        assert_eq!(cf.compaction_options_fifo.max_table_files_size, 3 << 20);
        set_mutable(&mut cf, "compaction_options_fifo", "{age_for_warm=60;}").unwrap();
        assert_eq!(cf.compaction_options_fifo.max_table_files_size, 3 << 20);
        let ages = "{file_temperature_age_thresholds={temperature=kCold;age=1};}";
        assert!(set_mutable(&mut cf, "compaction_options_fifo", ages).is_err());
        assert!(set_mutable(&mut cf, "compaction_style", "kCompactionStyleFIFO").is_err());
    }

    #[test]
    fn table_options_print_as_rocksdbs_do() {
        let file = include_str!("../../../fixtures/11.8.1-basic/OPTIONS-000007");
        let (_, section) = file.split_once("[TableOptions/BlockBasedTable \"default\"]").unwrap();
        for row in TABLE_ROWS {
            let line = section.lines().find_map(|line| line.trim().strip_prefix(row.name)?.strip_prefix('='));
            let theirs = line.unwrap_or_else(|| panic!("RocksDB has no option {}", row.name));
            let mut table = ColumnFamilyOptions::default().table;
            (row.set)(&mut table, theirs).unwrap_or_else(|error| panic!("{}: {error}", row.name));
            assert_eq!((row.get)(&table), theirs, "{}", row.name);
        }
        for (name, value) in [
            ("filter_policy", "ribbonfilter:12.5:3"),
            ("filter_policy", "ribbonfilter:10:-1"),
            ("filter_policy", "rocksdb.internal.LegacyBloomFilter:10"),
            ("index_type", "kHashSearch"),
            ("index_type", "kTwoLevelIndexSearch"),
            ("index_type", "kBinarySearchWithFirstKey"),
            ("index_shortening", "kShortenSeparatorsAndSuccessor"),
            ("data_block_index_type", "kDataBlockBinaryAndHash"),
        ] {
            let row = TABLE_ROWS.iter().find(|row| row.name == name).unwrap();
            let mut table = ColumnFamilyOptions::default().table;
            (row.set)(&mut table, value).unwrap();
            assert_eq!((row.get)(&table), value);
        }
        assert_eq!(FilterPolicy::parse("ribbonfilter:10"), FilterPolicy::parse("rocksdb.RibbonFilter:10:0"));
        for (given, taken) in [("-3", 0.0), ("0.4", 0.0), ("0.7", 1.0), ("1e300", 100.0), ("nan", 100.0)] {
            let expected = FilterPolicy::Bloom { bits_per_key: taken };
            assert_eq!(FilterPolicy::parse(&format!("bloomfilter:{given}")), Some(expected));
        }
        for bad in ["ribbonfilter:10:x", "ribbonfilter", "cuckoofilter:10", "bloomfilter:many"] {
            assert_eq!(FilterPolicy::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn names_that_old_versions_refuse_are_written_only_where_they_say_something() {
        let mut cf = ColumnFamilyOptions { comparator: Some("c".into()), ..Default::default() };
        let text_of = |cf: &ColumnFamilyOptions, db: &DbOptions| print(db, &[("default".into(), cf.clone())]);
        let text = text_of(&cf, &DbOptions::default());
        let names = ["wal_compression", "use_delta_encoding", "max_compressed_bytes_per_kb", "max_read_amp"];
        for name in
            names.iter().chain(&["cf_allow_ingest_behind", ";checksum=", "strict_max_successive_merges"])
        {
            assert!(!text.contains(name), "{name}");
        }
        assert!(text.contains("\n  checksum=kXXH3\n"), "the tables' checksum is an old option");
        assert!(text.contains("rocksdb_version=6.29.5\n"));
        cf.table.use_delta_encoding = false;
        cf.compression_opts.max_compressed_bytes_per_kb = 800;
        cf.compaction_options_universal.max_read_amp = 3;
        let db = DbOptions { wal_compression: CompressionType::Zstd, ..DbOptions::default() };
        let text = text_of(&cf, &db);
        for name in names {
            assert!(text.contains(name), "{name}");
        }
        assert!(text.contains("rocksdb_version=11.8.1\n"));
        let loaded = parse(&text).unwrap();
        assert_eq!((&loaded.db, &loaded.families[0].1), (&db, &cf));
        let nested = ColumnFamilyOptions {
            compression_opts: cf.compression_opts.clone(),
            ..ColumnFamilyOptions::default()
        };
        assert!(text_of(&nested, &DbOptions::default()).contains("rocksdb_version=11.8.1\n"));
    }

    #[test]
    fn what_is_kept_only_is_written_back() {
        let (mut db, mut cf) = (DbOptions::default(), ColumnFamilyOptions::default());
        let text = "memtable_whole_key_filtering=true;max_write_buffer_size_to_maintain=-1;skip_log_error_on_recovery=1;\
                    allow_mmap_writes=1;memtable=vector;rate_limiter_bytes_per_sec=1M;\
                    block_based_table_factory={optimize_filters_for_memory=false;uniform_cv_threshold=0.5}";
        set_from_string(&mut db, &mut cf, text).unwrap();
        let file = print(&db, &[("default".into(), cf.clone())]);
        for line in [
            "memtable_whole_key_filtering=true",
            "max_write_buffer_size_to_maintain=-1",
            "allow_mmap_writes=true",
            "memtable_factory={id=VectorRepFactory;count=0;}",
            "optimize_filters_for_memory=false",
            "uniform_cv_threshold=0.500000",
            // For the last one, which is newer than 6.29.
            "rocksdb_version=11.8.1",
        ] {
            assert!(file.contains(&format!("\n  {line}\n")), "{line}: {file}");
        }
        assert!(!file.contains("rate_limiter"), "RocksDB writes it to no file");
        let loaded = parse(&file).unwrap();
        assert_eq!((&loaded.families[0].1, loaded.ignored.len()), (&cf, 0));
        assert_eq!(loaded.db.kept.get("allow_mmap_writes"), Some("true"));
        let error = set_mutable(&mut cf, "max_background_jobs", "3").unwrap_err().to_string();
        assert!(error.contains("max_background_jobs is one of the database"), "{error}");
        set_mutable(&mut cf, "report_bg_io_stats", "true").unwrap();
        set_mutable(&mut cf, "bottommost_compression_opts", "{enabled=true;level=3;}").unwrap();
        assert_eq!((cf.bottommost_compression_opts.enabled, cf.bottommost_compression_opts.level), (true, 3));
        let error = set_from_string(&mut db, &mut cf, "memtable_whole_key_filtering=perhaps").unwrap_err();
        assert!(error.to_string().contains("memtable_whole_key_filtering"));
    }

    #[test]
    fn bad_names_and_values_are_named() {
        let (mut db, mut cf) = (DbOptions::default(), ColumnFamilyOptions::default());
        let error = |text: &str, db: &mut DbOptions, cf: &mut ColumnFamilyOptions| {
            set_from_string(db, cf, text).unwrap_err().to_string()
        };
        assert!(error("write_bufer_size=1", &mut db, &mut cf).contains("did you mean write_buffer_size"));
        assert!(error("num_levels=many", &mut db, &mut cf).contains("num_levels"));
        assert!(set_mutable(&mut cf, "num_levels", "3").unwrap_err().to_string().contains("cannot change"));
        set_mutable(&mut cf, "level0_stop_writes_trigger", "50").unwrap();
        assert_eq!(cf.level0_stop_writes_trigger, 50);
    }

    #[test]
    fn every_printed_value_is_read_back() {
        let (db, cf) = (DbOptions::default(), ColumnFamilyOptions::default());
        for row in DB_ROWS {
            let mut copy = db.clone();
            (row.set)(&mut copy, &(row.get)(&db)).unwrap_or_else(|error| panic!("{}: {error}", row.name));
            assert_eq!(copy, db, "{}", row.name);
        }
        for row in CF_ROWS {
            let mut copy = cf.clone();
            (row.set)(&mut copy, &(row.get)(&cf)).unwrap_or_else(|error| panic!("{}: {error}", row.name));
            assert_eq!(copy, cf, "{}", row.name);
        }
        for row in TABLE_ROWS {
            let mut copy = cf.table.clone();
            (row.set)(&mut copy, &(row.get)(&cf.table))
                .unwrap_or_else(|error| panic!("{}: {error}", row.name));
            assert_eq!(copy, cf.table, "{}", row.name);
        }
    }

    #[test]
    fn a_printed_file_is_read_back() {
        let mut db = DbOptions { max_background_jobs: 7, ..DbOptions::default() };
        db.wal_dir = Some("/wal#1".into());
        let mut options = ColumnFamilyOptions { num_levels: 5, ..ColumnFamilyOptions::default() };
        options.table.block_size = 8192;
        options.comparator = Some("leveldb.BytewiseComparator".into());
        let families =
            [("default".to_string(), options.clone()), ("a \"b\"\\#".replace('"', ""), options.clone())];
        let loaded = parse(&print(&db, &families)).unwrap();
        assert_eq!((&loaded.db, loaded.ignored.len()), (&db, 0), "{:?}", loaded.ignored);
        for ((name, given), (read_name, read)) in families.iter().zip(&loaded.families) {
            assert_eq!((name, given), (read_name, read));
        }
    }

    #[test]
    fn what_rocksdbs_loader_refuses_is_refused_with_its_line() {
        let minimal = "[DBOptions]\n[CFOptions \"default\"]\n";
        assert!(parse(minimal).is_ok());
        for (text, what) in [
            ("[CFOptions \"other\"]\n", "must come first"),
            ("[DBOptions]\n[DBOptions]\n", "line 2"),
            ("[DBOptions]\n", "needs"),
            ("[Surprise]\n", "no such section"),
            ("[DBOptions]\nnonsense\n", "name=value"),
            ("[DBOptions]\nmax_background_jobs=many\n", "max_background_jobs"),
            ("x=1\n", "outside"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(what), "{text:?}: {error}");
        }
        let foreign = format!("{minimal}# note\n  memtable_of_tomorrow=SkipListFactory # fast\n");
        let loaded = parse(&foreign).unwrap();
        assert_eq!(loaded.ignored.len(), 1);
        assert_eq!(loaded.ignored[0].2, "SkipListFactory");
        assert_eq!(loaded.unknown(), Some(("CFOptions \"default\"", "memtable_of_tomorrow")));
        for (version, refused) in [("11.8.1", true), ("6.29.5", true), ("11.8.2", false), ("12.0.0", false)] {
            let text = format!("[Version]\nrocksdb_version={version}\n{foreign}");
            assert_eq!(parse(&text).unwrap().unknown().is_some(), refused, "{version}");
        }
        // Known, and nothing stands for it here.
        let object =
            parse(&format!("{minimal}merge_operator=mine\naccess_hint_on_compaction_start=NONE\n")).unwrap();
        assert!(!object.ignored.is_empty() && object.unknown().is_none());
        let to_bring: Vec<_> = object.merge_operators_to_bring().collect();
        assert_eq!(to_bring, [("default", "mine".to_string())]);
        let built_in = parse(&format!("{minimal}merge_operator=stringappend\n")).unwrap();
        assert_eq!(built_in.merge_operators_to_bring().count(), 0);
    }

    #[test]
    fn options_files_of_rocksdb_are_read() {
        for (file, filter_policy) in [
            (
                include_str!("../../../fixtures/11.8.1-basic/OPTIONS-000007"),
                FilterPolicy::Bloom { bits_per_key: 10.0 },
            ),
            (include_str!("../../../fixtures/6.29.5-basic/OPTIONS-000007"), FilterPolicy::None),
        ] {
            let loaded = parse(file).unwrap();
            assert_eq!(loaded.families[0].0, "default");
            let options = &loaded.families[0].1;
            assert_eq!(options.comparator.as_deref(), Some("leveldb.BytewiseComparator"));
            assert_eq!(options.compression, CompressionType::None);
            assert_eq!(options.table.filter_policy, filter_policy);
            // Options that no version has any more.
            for (section, name, _) in &loaded.ignored {
                let of_tables = section.starts_with("TableOptions");
                let gone = if of_tables { DEPRECATED_OF_TABLES } else { DEPRECATED };
                assert!(gone.contains(&name.as_str()), "{name}");
            }
        }
    }
}
