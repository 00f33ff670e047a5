//! Whether two engines did the same under one list of settings, and where they differ on purpose.

use super::Case;
use super::child::End;
use super::draw::{Known, OptionKey, lines};
use std::collections::BTreeMap;

/// The text before the first `": "` of an error.
fn class(error: &str) -> &str {
    // The harness says which option it was.
    let error = match error.strip_prefix("option ").and_then(|rest| rest.split_once(": ")) {
        Some((_, error)) => error,
        None => error,
    };
    error.split(": ").next().unwrap_or(error)
}

/// Everything that differs, in words.
pub fn differences(case: &Case, theirs: &End, ours: &End, known: &Known) -> Vec<String> {
    let ours = match ours {
        End::Said(report) => report,
        End::Died(how) => return vec![format!("Outcrop dies {how}")],
        End::Hangs(how) => return vec![format!("Outcrop hangs {how}")],
    };
    let End::Said(theirs) = theirs else { return Vec::new() };
    match (&theirs.refused, &ours.refused) {
        (None, None) => {}
        (Some(their), Some(our)) if class(their) == class(our) => return Vec::new(),
        (_, Some(our)) if is_not_done_here(case, our) => return Vec::new(),
        // RocksDB could not read the OPTIONS file that it writes: numbers that its text does not hold.
        (Some(their), _) if their.contains("Unable to persist Options file") => return Vec::new(),
        // RocksDB raises a version that is too low in objects, but not in texts.
        (Some(their), None) if their.contains("format_version") && is_low_format_version(case) => {
            return Vec::new();
        }
        (their, our) => return vec![format!("RocksDB: {their:?}, Outcrop: {our:?}")],
    }
    let mut found = Vec::new();
    for ((name, value), (their, our)) in case.changes.iter().zip(theirs.changes.iter().zip(&ours.changes)) {
        // RocksDB has taken what it cannot write down, and complains of it from now on.
        if their.as_deref().is_some_and(|error| error.contains("Unable to persist options")) {
            break;
        }
        // One block cache serves a column family for as long as it is open.
        if value.contains("no_block_cache") {
            continue;
        }
        // A value that RocksDB accepts here goes into its OPTIONS file.
        if their.is_none() && our.as_deref().is_some_and(|our| is_refused_when_opened(name, our)) {
            return found;
        }
        if their.as_deref().map(class) != our.as_deref().map(class) {
            found.push(format!("set_options {name}={value}: RocksDB {their:?}, Outcrop {our:?}"));
        }
    }
    // RocksDB does not flush what it has taken: `paranoid_memory_checks` with a memtable that has none of them.
    let cannot_check =
        |their: &str| their.contains("NextAndValidate() not implemented") && ours.failed.is_none();
    if theirs.failed.as_deref().is_some_and(cannot_check) {
        return found;
    }
    if theirs.failed.as_deref().map(class) != ours.failed.as_deref().map(class) {
        found.push(format!("RocksDB: {:?}, Outcrop: {:?}", theirs.failed, ours.failed));
    }
    match (&theirs.options_file, &ours.options_file) {
        (Some(their), Some(our)) => found.extend(different_lines(case, their, our, known)),
        (their, our) => found.push(format!(
            "OPTIONS file: RocksDB has {}, Outcrop has {}",
            if their.is_some() { "one" } else { "none" },
            if our.is_some() { "one" } else { "none" }
        )),
    }
    found
}

/// Lines that do not say the same. An option that Outcrop does not write down is at RocksDB's default.
fn different_lines(case: &Case, theirs: &str, ours: &str, known: &Known) -> Vec<String> {
    let (theirs, ours) = (lines(theirs), lines(ours));
    let mut found = Vec::new();
    for (place, their) in &theirs {
        let our = ours.get(place).or_else(|| known.defaults.get(place));
        if our.is_none_or(|our| our != their) && !differs_on_purpose(case, place, our, &theirs) {
            found.push(format!("OPTIONS {}: RocksDB {their}, Outcrop {our:?}", place.1));
        }
    }
    for (place, our) in ours.iter().filter(|(place, _)| !theirs.contains_key(*place)) {
        if !differs_on_purpose(case, place, Some(our), &theirs) {
            found.push(format!("OPTIONS {}={our}: RocksDB has no such line", place.1));
        }
    }
    found
}

/// Lines that say something else on purpose.
fn differs_on_purpose(
    case: &Case,
    place: &OptionKey,
    our: Option<&String>,
    _theirs: &BTreeMap<OptionKey, String>,
) -> bool {
    let given = |name: &str| case.options.iter().any(|option| option.contains(name));
    match place.1.as_str() {
        // The default: what more versions of RocksDB read.
        "format_version" => !given("format_version") && our.is_some_and(|our| our == "5"),
        // RocksDB corrects those of tables in objects, but not in texts; its tables are written as if it did.
        "block_restart_interval"
        | "index_block_restart_interval"
        | "block_size_deviation"
        | "partition_filters" => our.is_some(),
        // In the form that versions before 7 read, too.
        "filter_policy.id" | "filter_policy.bloom_before_level" | "filter_policy" => given("ribbonfilter"),
        // The database's holds for every column family, and is written down there.
        "cf_allow_ingest_behind" => given("allow_ingest_behind"),
        // RocksDB writes the empty text where its default is another one.
        "db_host_id" => our.is_some_and(|our| our.is_empty()),
        _ => false,
    }
}

/// True for options of tables that RocksDB refuses when it opens a database, but takes in `set_options`, after which
/// that database does not open with its OPTIONS file. Outcrop refuses them in both places.
fn is_refused_when_opened(name: &str, our: &str) -> bool {
    name == "block_based_table_factory" && REFUSED_WHEN_OPENED.iter().any(|text| our.contains(text))
}

/// The errors of both engines for such options when they open a database.
const REFUSED_WHEN_OPENED: &[&str] = &[
    "block size exceeds maximum number",
    "super block alignment size is not a power of 2",
    "Super block alignment size exceeds maximum number",
    "Super block alignment space overhead is too high",
    "data_block_hash_table_util_ratio should be greater than 0",
    "Unsupported BlockBasedTable format_version",
    // RocksDB's next flush fails.
    "use_udi_as_primary_index requires user_defined_index_factory",
];

/// True if the case asks for a format of tables that nobody writes any more.
fn is_low_format_version(case: &Case) -> bool {
    ["format_version=0", "format_version=1"]
        .iter()
        .any(|low| case.options.iter().any(|option| option.ends_with(low)))
}

/// Options that RocksDB accepts and Outcrop refuses on purpose, with a word about it.
fn is_not_done_here(case: &Case, error: &str) -> bool {
    const NOT_DONE: &[&str] = &["best_efforts_recovery", "disallow_memtable_writes"];
    // RocksDB takes something else without a word, or what it cannot read back.
    const NONSENSE: &[&str] = &["=nope", "=nan", "=inf", "=x", "=-1", "=-2", "=-5", "=99999999999"];
    // RocksDB shifts bits out of numbers of 32 bits.
    const CUT: &str = "read_amp_bytes_per_bit";
    let given = |text: &str| case.options.iter().any(|option| option.contains(text));
    match class(error) {
        "Not implemented" => NOT_DONE.iter().any(|name| error.contains(name) && given(name)),
        "Invalid argument" => NONSENSE.iter().any(|text| given(text)) || given(CUT),
        _ => false,
    }
}
