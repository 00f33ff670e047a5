//! Finds out what each engine can do, by trying: one small case per feature and engine.
//!
//! A feature is something an engine may lack and say so: a function that is not exported, an option that is
//! refused, a format that is `Not implemented`. Anything else that goes wrong in a trial of Outcrop is a
//! finding, because refusing loudly is the only way a feature may be missing.

use crate::case::{Access, Case, End, Family, Merge, Phase};
use crate::child::Lost;
use crate::choices::{ALWAYS, CHOICES, Choice, Scope, always, name, title};
use crate::features::{Abilities, CALLS, Engines, HASH_PREFIX, OPERATIONS, OUTCROP, PREFIXES, all};
use crate::operation::{Durability, Key, Operation, Record, Value};
use crate::run::{Failure, Kind, Pool, play};
use crate::worker::{Answer, Request};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The feature of using nothing but one's own defaults.
pub const DEFAULTS: &str = "the writer's defaults";

/// The results of the trials.
pub struct Trials {
    /// Abilities of every engine.
    pub engines: Engines,
    /// Trials in which Outcrop failed without refusing, with the case.
    pub findings: Vec<(Case, Failure)>,
    /// Features that Outcrop lacks, and what it said.
    pub lacking: Vec<(String, String)>,
}

/// Options of a trial: `format_version` 5 is what every version reads.
fn family_options(options: &[&str]) -> Vec<String> {
    let mut all: Vec<String> =
        ["target_file_size_base=8192", "write_buffer_size=65536", "table.block_size=256"]
            .map(String::from)
            .into();
    all.retain(|default| !options.iter().any(|option| name(option) == name(default)));
    for default in ["table.format_version=5", "compression=kNoCompression"] {
        if !options.iter().any(|option| name(option) == name(default)) {
            all.push(default.into());
        }
    }
    all.extend(options.iter().map(|option| (*option).to_string()));
    all
}

fn key(text: impl Into<String>) -> Key {
    Key(text.into().into_bytes())
}

fn write(records: Vec<Record>) -> Operation {
    Operation::Write { records, durability: Durability::Logged, direct: false }
}

/// The data that every trial writes.
fn base(round: u64) -> Operation {
    let fill = |prefix: &str, len| Record::Fill {
        family: 0,
        prefix: key(prefix),
        first: round * 5,
        count: 30,
        len,
        seed: round * 100,
    };
    write(vec![
        fill("abc", 200),
        fill("xy", 20),
        Record::Put(0, key(format!("s{round}")), Value::Text(key("once"))),
        Record::Put(0, key("n1"), Value::Number(7)),
        Record::Delete(0, key("xy00000003")),
    ])
}

/// The records or operations that a feature adds.
fn use_feature(feature: &str, round: u64) -> Vec<Operation> {
    let ingest = |records| Operation::Ingest { family: 0, records, move_file: round == 1, by_other: false };
    let ingested = |n: u64| {
        Record::Put(0, key(format!("abc0000000{n}")), Value::Text(key(format!("ingested in {round}"))))
    };
    match feature {
        "single delete" => vec![write(vec![Record::SingleDelete(0, key(format!("s{round}")))])],
        "delete range" => {
            vec![write(vec![Record::DeleteRange(0, key(format!("abc0000000{round}")), key("abc00000009"))])]
        }
        "merge add" => vec![write(vec![Record::Merge(0, key("n1"), Value::Number(5))])],
        "merge append" => {
            vec![write(vec![Record::Merge(0, key("m1"), Value::Text(key(format!("{round}"))))])]
        }
        "put entity" | "put entity in blob" => {
            let columns = vec![(key(""), Value::Fill(60, round)), (key("name"), Value::Text(key("x")))];
            vec![write(vec![Record::PutEntity(0, key(format!("e{round}")), columns)])]
        }
        "log data" => vec![write(vec![
            Record::LogData(key("for the log")),
            Record::Put(0, key("l"), Value::Number(round)),
        ])],
        "unlogged" => vec![Operation::Write {
            records: vec![Record::Put(0, key("u"), Value::Number(round))],
            durability: Durability::Unlogged,
            direct: true,
        }],
        "ingest" => vec![ingest(vec![ingested(2), ingested(4)])],
        "ingest deletes" => vec![ingest(vec![Record::Delete(0, key("abc00000001")), ingested(2)])],
        "checkpoint" => vec![Operation::Checkpoint { log_size_for_flush: 0 }],
        _ => Vec::new(),
    }
}

/// An engine in a trial: its name and the single options it takes.
pub type Player<'p> = (&'p str, &'p BTreeSet<String>);

/// The prefix extractor that a feature needs.
fn prefix_of(feature: &str) -> Option<&'static str> {
    let named = PREFIXES.iter().find(|prefix| feature == format!("prefix {prefix}"));
    named.copied().or_else(|| feature.contains("kHashSearch").then_some(HASH_PREFIX))
}

/// The case in which `writer` uses a feature and `reader` then reads and compacts what is there.
pub fn trial(feature: &str, writer: Player<'_>, reader: Player<'_>) -> Case {
    let answer = CHOICES.iter().flat_map(|choice| choice.answers.iter().map(move |answer| (choice, *answer)));
    let chosen = answer.into_iter().find(|(_, answer)| title(answer) == feature);
    let mut family = Family::plain("default");
    match feature {
        "merge add" => family.merge = Merge::Add,
        "merge append" => family.merge = Merge::Append,
        "reverse order" => family.reverse = true,
        _ => {}
    }
    let (mut database, mut options) = (Vec::new(), Vec::new());
    match chosen {
        Some((choice, answer)) if choice.scope == Scope::Database => {
            database = answer.iter().map(|option| (*option).to_string()).collect();
        }
        Some((_, answer)) => options = answer.to_vec(),
        None => {}
    }
    let mut written = family_options(&options);
    let mut read = family_options(&options.iter().copied().filter(|_| kept(chosen)).collect::<Vec<_>>());
    if feature == DEFAULTS {
        written = vec!["write_buffer_size=65536".to_string()];
        read.clone_from(&written);
    }
    if feature == "put entity in blob" {
        written.extend(["enable_blob_files=true".to_string(), "min_blob_size=50".to_string()]);
    }
    if let Some(prefix) = prefix_of(feature) {
        family.prefix = Some(prefix.to_string());
        written.push(format!("prefix_extractor={prefix}"));
        if !feature.contains("kHashSearch") {
            written.push("table.filter_policy=bloomfilter:10:false".into());
            written.push("table.whole_key_filtering=false".into());
        }
    }
    if writer.0 == reader.0 {
        read.clone_from(&written);
    }
    let mut operations = Vec::new();
    for round in 0..3 {
        operations.push(base(round));
        operations.extend(use_feature(feature, round));
        if round < 2 {
            operations.push(Operation::Flush { family: 0, wait: true });
        }
    }
    let compact =
        Operation::CompactRange { family: 0, begin: None, end: None, bottommost: 2, exclusive: false };
    let writing = Phase {
        engine: writer.0.to_string(),
        options: [always(writer.1), database].concat(),
        family_options: vec![written],
        end: End::Close,
        openings: Vec::new(),
        unlogged: false,
        operations,
    };
    let reading = Phase {
        engine: reader.0.to_string(),
        options: always(reader.1),
        family_options: vec![read],
        end: End::Close,
        openings: Vec::new(),
        unlogged: false,
        operations: vec![compact, Operation::CompareAll],
    };
    let mut phases = vec![writing];
    // Then tables that the reader compacted go back, and come again compacted by the writer.
    phases.push(reading.clone());
    phases.push(Phase { operations: vec![base(4), reading.operations[0].clone()], ..phases[0].clone() });
    phases.push(reading);
    Case { seed: 0, families: vec![family], initial: vec![0], access: Access::Plain, phases }
}

/// Options that every engine of a case must have are given to the reader too.
fn kept(chosen: Option<(&Choice, &[&str])>) -> bool {
    chosen.is_some_and(|(choice, _)| choice.scope == Scope::Case)
}

/// Tries every feature on every engine; engines are tried at the same time. Of `known` engines only their reading of what Outcrop
/// writes is tried.
///
/// # Errors
/// A library is missing.
pub fn run(
    program: &Path,
    libraries: &BTreeMap<String, PathBuf>,
    known: Option<&Engines>,
    dir: &Path,
) -> Result<Trials, String> {
    let mut trials = Trials { engines: Engines::new(), findings: Vec::new(), lacking: Vec::new() };
    // Which engine can use which feature.
    let written = try_writing(program, libraries, known, dir)?;
    for (engine, (abilities, findings, lacking)) in written {
        trials.engines.insert(engine.clone(), abilities);
        if engine == OUTCROP {
            trials.findings.extend(findings);
            trials.lacking.extend(lacking.into_iter().map(|(feature, why)| (feature, format!("use: {why}"))));
        }
    }
    // Which engine can read what the newest engine that uses it writes.
    let engines = trials.engines.clone();
    let read = try_all(libraries, dir, |engine, at| {
        let known = known.and_then(|known| known.get(engine));
        reads(program, libraries, &engines, (engine, known), at)
    })?;
    for (engine, (abilities, findings, lacking)) in read {
        trials.engines.get_mut(&engine).expect("it was tried before").reads = abilities.reads;
        if engine == OUTCROP {
            trials.findings.extend(findings);
            trials
                .lacking
                .extend(lacking.into_iter().map(|(feature, why)| (feature, format!("read: {why}"))));
        }
    }
    Ok(trials)
}

/// The features that every engine can use, and why Outcrop cannot use the rest. Those that are `known` are not tried.
///
/// # Errors
/// A library is missing.
pub fn abilities(
    program: &Path,
    libraries: &BTreeMap<String, PathBuf>,
    known: Option<&Engines>,
    dir: &Path,
) -> Result<(Engines, BTreeMap<String, String>), String> {
    let mut engines = Engines::new();
    let mut lacking = BTreeMap::new();
    for (engine, (abilities, _, without)) in try_writing(program, libraries, known, dir)? {
        if engine == OUTCROP {
            lacking.extend(without);
        }
        engines.insert(engine, abilities);
    }
    Ok((engines, lacking))
}

fn try_writing(
    program: &Path,
    libraries: &BTreeMap<String, PathBuf>,
    known: Option<&Engines>,
    dir: &Path,
) -> Result<BTreeMap<String, Tried>, String> {
    try_all(libraries, dir, |engine, at| match known.and_then(|known| known.get(engine)) {
        Some(known) => Ok((known.clone(), Vec::new(), Vec::new())),
        None => writes(program, libraries, engine, at),
    })
}

/// Versions, the oldest first; Outcrop is none.
pub fn by_age(libraries: &BTreeMap<String, PathBuf>) -> Vec<String> {
    let mut versions: Vec<String> =
        libraries.keys().filter(|name| !version(name).is_empty()).cloned().collect();
    versions.sort_by_key(|name| version(name));
    versions
}

/// The numbers of a version's name.
pub(crate) fn version(name: &str) -> Vec<u32> {
    name.split('.').map_while(|part| part.parse().ok()).collect()
}

type Tried = (Abilities, Vec<(Case, Failure)>, Vec<(String, String)>);

fn try_all(
    libraries: &BTreeMap<String, PathBuf>,
    dir: &Path,
    one: impl Fn(&str, &Path) -> Result<Tried, String> + Sync,
) -> Result<BTreeMap<String, Tried>, String> {
    std::thread::scope(|scope| {
        let running: Vec<_> = libraries
            .keys()
            .map(|engine| {
                let at = dir.join(format!("trial-{engine}"));
                (
                    engine,
                    scope.spawn({
                        let one = &one;
                        move || one(engine, &at)
                    }),
                )
            })
            .collect();
        running
            .into_iter()
            .map(|(engine, thread)| Ok((engine.clone(), thread.join().expect("a trial does not panic")?)))
            .collect()
    })
}

fn writes(
    program: &Path,
    libraries: &BTreeMap<String, PathBuf>,
    engine: &str,
    dir: &Path,
) -> Result<Tried, String> {
    let mut pool = Pool::new(program, libraries);
    let child = pool.child(engine)?;
    let functions: BTreeSet<String> = child.functions.iter().cloned().collect();
    let options = accepted_options(child)?;
    let mut abilities = Abilities { options, ..Abilities::default() };
    let (mut findings, mut lacking) = (Vec::new(), Vec::new());
    for feature in all() {
        let needed = OPERATIONS.iter().find(|(name, _)| *name == feature).map_or(&[][..], |(_, names)| names);
        if let Some(missing) = needed.iter().find(|name| !functions.contains(**name)) {
            lacking.push((feature, format!("no {missing}")));
            continue;
        }
        if let Some(refused) = refused_option(&feature, &abilities.options) {
            lacking.push((feature, format!("option {refused} is refused")));
            continue;
        }
        if CALLS.contains(&feature.as_str()) || (engine != OUTCROP && leaves_no_trace(&feature)) {
            abilities.writes.insert(feature);
            continue;
        }
        let case = trial(&feature, (engine, &abilities.options), (engine, &abilities.options));
        match attempt(&case, &mut pool, dir) {
            Ok(()) => {
                abilities.writes.insert(feature);
            }
            Err(failure) if refuses(&failure) || engine != OUTCROP => {
                lacking.push((feature, failure.message));
            }
            Err(failure) => findings.push((case, failure)),
        }
    }
    Ok((abilities, findings, lacking))
}

fn reads(
    program: &Path,
    libraries: &BTreeMap<String, PathBuf>,
    engines: &Engines,
    (engine, known): (&str, Option<&Abilities>),
    dir: &Path,
) -> Result<Tried, String> {
    let mut pool = Pool::new(program, libraries);
    let mut abilities = Abilities::default();
    let (mut findings, mut lacking) = (Vec::new(), Vec::new());
    for feature in all() {
        let Some(writer) = newest_writer(engines, &feature) else { continue };
        if let Some(known) = known.filter(|_| writer != OUTCROP) {
            abilities.reads.extend(known.reads.contains(&feature).then_some(feature));
            continue;
        }
        if writer == engine || CALLS.contains(&feature.as_str()) || leaves_no_trace(&feature) {
            abilities.reads.insert(feature);
            continue;
        }
        let case = trial(&feature, (&writer, &engines[&writer].options), (engine, &engines[engine].options));
        match attempt(&case, &mut pool, dir) {
            Ok(()) => {
                abilities.reads.insert(feature);
            }
            Err(failure) if refuses(&failure) || engine != OUTCROP => {
                lacking.push((feature, failure.message));
            }
            Err(failure) => findings.push((case, failure)),
        }
    }
    Ok((abilities, findings, lacking))
}

/// The newest reference that writes a feature; Outcrop if there is none.
pub(crate) fn newest_writer(engines: &Engines, feature: &str) -> Option<String> {
    let writers = engines.iter().filter(|(_, has)| has.writes.contains(feature)).map(|(name, _)| name);
    writers.max_by_key(|name| version(name)).cloned()
}

/// The feature is an option that changes no format: nothing to read, and a reference that takes it has it.
fn leaves_no_trace(feature: &str) -> bool {
    CHOICES
        .iter()
        .any(|choice| !choice.format && choice.answers.iter().any(|answer| title(answer) == feature))
}

/// Plays a trial; nothing is left of it.
///
/// # Errors
/// The failure.
pub fn attempt(case: &Case, pool: &mut Pool, dir: &Path) -> Result<(), Failure> {
    let _ = std::fs::remove_dir_all(dir);
    let result = play(case, pool, dir).map(|_| ());
    let _ = std::fs::remove_dir_all(dir);
    result
}

/// An engine may lack a feature if it says so.
pub fn refuses(failure: &Failure) -> bool {
    let says = ["Not implemented", "option ", "the library has no"];
    let at_open = failure.operation.is_none() && failure.phase == 0;
    failure.kind == Kind::Error
        && (says.iter().any(|start| failure.message.contains(start))
            || (at_open && failure.message.starts_with("Invalid argument")))
}

fn refused_option(feature: &str, accepted: &BTreeSet<String>) -> Option<String> {
    let answer = CHOICES.iter().flat_map(|choice| choice.answers).find(|answer| title(answer) == feature);
    let mut needed: Vec<String> =
        answer.map_or_else(Vec::new, |answer| answer.iter().map(ToString::to_string).collect());
    if feature == "put entity in blob" {
        needed.push("enable_blob_files=true".into());
    }
    if feature == "reverse order" {
        needed.push("comparator=rocksdb.ReverseBytewiseComparator".into());
    }
    needed.extend(prefix_of(feature).map(|prefix| format!("prefix_extractor={prefix}")));
    needed.into_iter().find(|option| !accepted.contains(option))
}

fn accepted_options(child: &mut crate::child::Child) -> Result<BTreeSet<String>, String> {
    let mut texts: Vec<String> = ALWAYS.iter().map(ToString::to_string).collect();
    texts.extend(
        CHOICES
            .iter()
            .flat_map(|choice| choice.answers)
            .flat_map(|answer| answer.iter())
            .map(ToString::to_string),
    );
    texts.extend(PREFIXES.iter().map(|prefix| format!("prefix_extractor={prefix}")));
    texts.push("comparator=rocksdb.ReverseBytewiseComparator".into());
    match child.ask(&Request::Options(texts.clone())) {
        Ok(Answer::Accepted(accepted)) => {
            Ok(texts.into_iter().zip(accepted).filter_map(|(text, taken)| taken.then_some(text)).collect())
        }
        Ok(other) => Err(format!("{other:?} instead of accepted options")),
        Err(Lost::Died(how)) => Err(how),
        Err(Lost::Hangs(printed)) => Err(format!("asking for options hangs; {printed}")),
    }
}
