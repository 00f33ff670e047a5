//! Where processor time goes: samples of stacks, and groups of functions that rules put them into.
//!
//! ```text
//! perf script -> stacks: "main (outcrop);find (outcrop);memcmp (libc.so.6)" and how often -> record
//! record + cpu-groups.toml, or server-groups.toml -> percent of samples by group -> explain, pages
//! ```
//! The record keeps stacks, not groups: better rules tell more of old profiles. Kept are the innermost frames.
//! Invariant: groups and "other" make 100 %: every sample is in exactly one.
//! Next: `run/profile.rs`, which takes them.

use crate::analysis::results::Results;
use crate::planning::plan::Plan;
use crate::report::text::align;
use regex_lite::Regex;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The rules for engines, in the order in which they are asked.
const RULES: &str = include_str!("../../cpu-groups.toml");
/// The rules for servers.
const SERVER_RULES: &str = include_str!("../../server-groups.toml");

/// Frames kept of a stack.
const FRAMES: usize = 24;

/// The name of what no rule knows.
pub const OTHER: &str = "other";

/// Samples of one step of one target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// Number of the target.
    pub target: usize,
    /// Name of the step.
    pub step: String,
    /// When it was taken, RFC 3339 in UTC.
    pub date: String,
    /// Operations of the step while it was sampled.
    pub ops: u64,
    /// The purpose of the samples.
    pub samples: Samples,
}

/// Samples, folded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Frames from the outermost to the innermost, with semicolons between, and how often.
    pub stacks: BTreeMap<String, u64>,
    /// Events that the processor counted, by perf's names; empty on machines that count none.
    pub events: BTreeMap<String, u64>,
}

/// The event whose samples are stacks: time, which every machine has.
pub const CLOCK: &str = "cpu-clock";

impl Samples {
    /// Reads what `perf script -F period,event,ip,sym,dso` prints.
    pub fn parse(text: &str) -> Samples {
        let mut samples = Samples::default();
        let mut frames: Vec<String> = Vec::new();
        let mut is_clock = false;
        for line in text.lines().chain([""]) {
            if let Some(found) = line.strip_prefix('\t') {
                frames.extend(frame(found));
            } else if line.trim().is_empty() {
                if is_clock && !frames.is_empty() {
                    frames.truncate(FRAMES);
                    frames.reverse();
                    *samples.stacks.entry(frames.join(";")).or_default() += 1;
                }
                (frames, is_clock) = (Vec::new(), false);
            } else if let Some((period, event)) = header(line) {
                is_clock = event == CLOCK;
                if !is_clock {
                    *samples.events.entry(event.to_string()).or_default() += period;
                }
            }
        }
        samples
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.stacks.values().sum()
    }
}

/// Period and event of a line like `  2004008 cpu-clock: `.
fn header(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_whitespace();
    let period = words.next()?.parse().ok()?;
    let event = words.next()?.split(['/', ':']).next()?;
    Some((period, event))
}

/// A frame like `  840c26 name of it (/usr/lib/libc.so.6)` as `name of it (libc.so.6)`.
fn frame(line: &str) -> Option<String> {
    let (_, rest) = line.trim_start().split_once(' ')?;
    let (name, file) = rest.rsplit_once(" (")?;
    let file = file.trim_end().trim_end_matches(')');
    let file = if file.starts_with("[kernel") || file.ends_with(".ko") {
        "kernel"
    } else {
        file.rsplit('/').next().unwrap_or(file)
    };
    Some(format!("{} ({file})", name.replace(';', ",")))
}

/// Rules that put stacks into groups.
pub struct Rules {
    groups: Vec<(String, Vec<Regex>)>,
}

impl Rules {
    /// The rules for what `plan` measures: engines, or servers.
    pub fn of(plan: &Plan) -> Rules {
        let servers = plan.steps.iter().any(|step| step.sql.is_some());
        if servers { Rules::parse(SERVER_RULES).expect("a test reads them") } else { Rules::standard() }
    }

    /// The rules for engines.
    pub fn standard() -> Rules {
        Rules::parse(RULES).expect("a test reads them")
    }

    fn parse(text: &str) -> Result<Rules, String> {
        #[derive(Deserialize)]
        struct File {
            group: Vec<Group>,
        }
        #[derive(Deserialize)]
        struct Group {
            name: String,
            #[serde(default)]
            frames: Vec<String>,
            #[serde(default)]
            outcrop: Vec<String>,
            #[serde(default)]
            postgres: Vec<String>,
            #[serde(default)]
            mysql: Vec<String>,
        }
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let compiled = |group: Group| {
            // Rules of a product are for the functions of its programs alone.
            let of_postgres = group.postgres.iter().map(|rule| format!(r"({rule}).*\(postgres\)$"));
            let of_mysql =
                group.mysql.iter().map(|rule| format!(r"({rule}).*\((mysqld|mariadbd|ha_\w+\.so)\)$"));
            let rules = group.frames.into_iter().chain(group.outcrop).chain(of_postgres).chain(of_mysql);
            let frames = rules.map(|rule| Regex::new(&rule).map_err(|error| format!("{rule}: {error}")));
            Ok((group.name, frames.collect::<Result<Vec<_>, String>>()?))
        };
        Ok(Rules { groups: file.group.into_iter().map(compiled).collect::<Result<_, String>>()? })
    }

    /// Names of the groups, [`OTHER`] last.
    pub fn names(&self) -> Vec<&str> {
        self.groups.iter().map(|(name, _)| name.as_str()).chain([OTHER]).collect()
    }

    /// The place of a stack's group in [`Rules::names`].
    fn group_of(&self, stack: &str) -> usize {
        let known = |frame: &str| {
            self.groups.iter().position(|(_, rules)| rules.iter().any(|rule| rule.is_match(frame)))
        };
        stack.rsplit(';').find_map(known).unwrap_or(self.groups.len())
    }

    /// The name of a stack's group.
    pub fn group(&self, stack: &str) -> &str {
        self.groups.get(self.group_of(stack)).map_or(OTHER, |(name, _)| name.as_str())
    }

    /// Per cent of the samples in each group.
    pub fn shares(&self, samples: &Samples) -> Vec<f64> {
        let mut counts = vec![0; self.groups.len() + 1];
        for (stack, count) in &samples.stacks {
            counts[self.group_of(stack)] += count;
        }
        let all = samples.count().max(1) as f64;
        counts.into_iter().map(|count| count as f64 * 100.0 / all).collect()
    }
}

impl Profile {
    /// The events of an operation that the processor counted; empty on machines that count nothing.
    pub fn per_operation(&self) -> Vec<(&'static str, f64)> {
        let event = |name: &str| self.samples.events.get(name).map(|count| *count as f64);
        let each = |name: &str| Some(event(name)? / self.ops as f64);
        let rates = [
            ("instr/o", each("instructions")),
            ("cycles/o", each("cycles")),
            ("ipc", event("instructions").zip(event("cycles")).map(|(done, cycles)| done / cycles)),
            ("cachemiss/o", each("cache-misses")),
        ];
        rates
            .into_iter()
            .filter_map(|(name, rate)| Some((name, rate.filter(|rate| rate.is_finite())?)))
            .collect()
    }

    /// The functions that the processor was in most often, with their share in per cent.
    pub fn functions(&self, most: usize) -> Vec<(&str, f64)> {
        let mut counts = BTreeMap::<&str, u64>::new();
        for (stack, count) in &self.samples.stacks {
            *counts.entry(stack.rsplit(';').next().unwrap_or(stack)).or_default() += count;
        }
        let mut sorted: Vec<(&str, u64)> = counts.into_iter().collect();
        sorted.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let all = self.samples.count().max(1) as f64;
        sorted.into_iter().take(most).map(|(name, count)| (name, count as f64 * 100.0 / all)).collect()
    }
}

/// The groups of a step: those that some target has, and each target's shares.
pub struct Table<'a> {
    /// Names of the groups.
    pub groups: Vec<&'a str>,
    /// Targets, and per cent of their samples in each of the groups.
    pub rows: Vec<(&'a Profile, Vec<f64>)>,
}

/// The shares of a step in an experiment; `None` if it was not profiled.
pub fn table<'a>(results: &'a Results, rules: &'a Rules, step: &str) -> Option<Table<'a>> {
    let own = results.profiles.iter().filter(|profile| profile.step == step && profile.samples.count() > 0);
    let shares: Vec<(&Profile, Vec<f64>)> =
        own.map(|profile| (profile, rules.shares(&profile.samples))).collect();
    let kept: Vec<usize> =
        (0..rules.names().len()).filter(|group| shares.iter().any(|(_, row)| row[*group] > 0.0)).collect();
    let groups = kept.iter().map(|group| rules.names()[*group]).collect();
    let rows = shares.iter().map(|(profile, row)| (*profile, kept.iter().map(|group| row[*group]).collect()));
    let rows: Vec<_> = rows.collect();
    (!rows.is_empty()).then_some(Table { groups, rows })
}

/// The shares of a step for the terminal, a column for each of `targets`; empty if it was not profiled.
pub fn text(results: &Results, step: &str, targets: &[usize]) -> String {
    let rules = Rules::of(&results.experiment.plan);
    let Some(table) = table(results, &rules, step) else { return String::new() };
    let shown: Vec<&(&Profile, Vec<f64>)> =
        table.rows.iter().filter(|(profile, _)| targets.contains(&profile.target)).collect();
    if shown.is_empty() {
        return String::new();
    }
    let mut rows = vec![vec!["processor time, % of samples".to_string()]];
    let names = results.labels();
    rows[0].extend(shown.iter().map(|(profile, _)| names[profile.target].clone()));
    for (index, group) in table.groups.iter().enumerate() {
        let mut row = vec![(*group).to_string()];
        row.extend(shown.iter().map(|(_, shares)| format!("{:.1}", shares[index])));
        rows.push(row);
    }
    let mut row = vec!["samples".to_string()];
    row.extend(shown.iter().map(|(profile, _)| profile.samples.count().to_string()));
    rows.push(row);
    align(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As perf prints it: two samples of time, one of them deep in the kernel, and two of a counter.
    const PRINTED: &str = "   2004008 cpu-clock: \n\
        \t          842eb4 [unknown] (/x/librocksdb-11.8.1.so)\n\
        \t          6b6542 rocksdb::IndexBlockIter::SeekImpl (/x/librocksdb-11.8.1.so)\n\
        \t          596ba1 outcrop_lab_load::database::Database::get (/x/outcrop)\n\n\
        \x20  2004008 cpu-clock: \n\
        \tffffffff8 copy_folio ([kernel.kallsyms])\n\
        \t    57384 __write (/usr/lib/libc.so.6)\n\n\
        \x20 10000000 instructions:u: \n\t 57384 __write (/usr/lib/libc.so.6)\n\n\
        \x20 10000000 instructions:u: \n";

    fn profile() -> Profile {
        Profile { ops: 1000, samples: Samples::parse(PRINTED), ..Profile::default() }
    }

    #[test]
    fn stacks_are_folded_and_counters_summed() {
        let samples = Samples::parse(PRINTED);
        let stack = "outcrop_lab_load::database::Database::get (outcrop);rocksdb::IndexBlockIter::SeekImpl \
                     (librocksdb-11.8.1.so);[unknown] (librocksdb-11.8.1.so)";
        assert_eq!((samples.count(), samples.stacks.get(stack)), (2, Some(&1)), "{:?}", samples.stacks);
        assert_eq!(profile().per_operation(), [("instr/o", 20_000.0)]);
        assert_eq!(profile().functions(1), [("[unknown] (librocksdb-11.8.1.so)", 50.0)]);
        assert_eq!(Samples::parse(""), Samples::default());
        assert_eq!(Samples::parse("garbage\n\t\n\tx\n\n(("), Samples::default());
    }

    #[test]
    fn the_innermost_frame_that_a_rule_knows_decides_and_groups_make_a_hundred() {
        let rules = Rules::standard();
        let group = |stack: &str| rules.names()[rules.group_of(stack)];
        let frame = |name: &str| group(&format!("outcrop_lab_load::run (outcrop);{name}"));
        assert_eq!(frame("rocksdb::IndexBlockIter::SeekImpl (l.so);[unknown] (l.so)"), "index block seek");
        assert_eq!(frame("rocksdb::IndexBlockIter::SeekImpl (l.so);memcmp (libc.so.6)"), "libc+kernel");
        for (name, wanted) in [
            ("rocksdb::crc32c::Extend (l.so)", "checksum"),
            ("XXH3_64bits (l.so)", "checksum"),
            ("rocksdb::DataBlockIter::SeekForGetImpl (l.so)", "data block seek"),
            ("rocksdb::LRUCacheShard::Lookup (l.so)", "block cache"),
            ("rocksdb::clock_cache::FixedHyperClockTable::Lookup (l.so)", "block cache"),
            ("rocksdb::(anonymous namespace)::FastLocalBloomBitsReader::MayMatch (l.so)", "bloom"),
            ("rocksdb::BinarySearchIndexReader::NewIterator (l.so)", "index reader"),
            ("rocksdb::(anonymous namespace)::FilePicker::GetNextFile (l.so)", "file picker"),
            ("outcrop_cache::cache::Cache::lookup (outcrop)", "block cache"),
            ("outcrop_table::block::entry::decode_entry (outcrop)", "data block seek"),
            ("outcrop_table::block::cursor::Cursor<F>::seek (outcrop)", "data block seek"),
            ("outcrop_table::block_builder::BlockBuilder::add (outcrop)", "compaction"),
            ("outcrop_table::index_writer::IndexWriter::on_key (outcrop)", "compaction"),
            ("outcrop::compaction::stream::CompactionStream<I>::next (outcrop)", "compaction"),
            ("outcrop_table::filter::reader::loaded_may_contain (outcrop)", "bloom"),
            ("outcrop_memtable::prefix_bloom::PrefixBloom::may_contain (outcrop)", "bloom"),
            ("outcrop_table::reader::TableReader::load_index (outcrop)", "index reader"),
            ("outcrop_table::index::IndexView::find (outcrop)", "index block seek"),
            ("outcrop::read::get::Search::next_table (outcrop)", "file picker"),
            ("outcrop::read::get::Lookup::memtable (outcrop)", "memtable"),
            ("outcrop::read::cursor::Cursor::next (outcrop)", "iterators"),
            ("outcrop::read::merging_iter::MergingIter<I>::next (outcrop)", "iterators"),
            ("<outcrop_table::iter::TableIter as outcrop::x::Source>::next (outcrop)", "iterators"),
            ("outcrop_table::prefixes::Prefixes::equal_range (outcrop)", "index block seek"),
            ("outcrop_memtable::memtable::MemTable::find (outcrop)", "memtable"),
            ("outcrop_table::reader::TableReader::block (outcrop)", "block cache"),
            ("rocksdb::MergingIterator::Next (l.so)", "iterators"),
            ("rocksdb::DBImpl::GetImpl (l.so)", "rest of engine"),
            ("outcrop::read::get::Search::new (outcrop)", "rest of engine"),
            ("hdrhistogram::Histogram<T>::record (outcrop)", "load generator"),
            ("[unknown] (l.so)", "load generator"),
        ] {
            assert_eq!(frame(name), wanted, "{name}");
        }
        assert_eq!(group("[unknown] (l.so)"), OTHER);
        assert_eq!(group("crc32 (libcrypto.so.3)"), OTHER, "no library of C's");
        let shares = rules.shares(&profile().samples);
        assert!((shares.iter().sum::<f64>() - 100.0).abs() < 0.5, "{shares:?}");
        assert_eq!(shares[0], 50.0);
        let own = "[[group]]\nname = 'x'\nframes = []\noutcrop = ['y']\n";
        assert_eq!(Rules::parse(own).unwrap().group("y (outcrop)"), "x");
        assert!(Rules::parse("[[group]]\nname = 'x'\nframes = ['(']\n").is_err());
    }

    #[test]
    fn functions_of_servers_have_a_group_and_groups_make_a_hundred() {
        let rules = Rules::parse(SERVER_RULES).unwrap();
        for (frame, wanted) in [
            ("core_yylex (postgres)", "parse"),
            ("exec_bind_message (postgres)", "parse"),
            ("standard_planner (postgres)", "optimise"),
            ("GetCachedPlan (postgres)", "optimise"),
            ("ExecScan (postgres)", "execute"),
            ("heap_hot_search_buffer (postgres)", "execute"),
            ("_bt_compare (postgres)", "index"),
            ("index_getnext_tid (postgres)", "index"),
            ("ReadBufferExtended (postgres)", "buffer pool"),
            ("hash_search_with_hash_value (postgres)", "execute"),
            ("LWLockAcquire (postgres)", "latches"),
            ("XLogInsertRecord (postgres)", "log"),
            ("pq_getbyte (postgres)", "network"),
            ("send (libc.so.6)", "network"),
            ("unix_stream_sendmsg (kernel)", "kernel"),
            ("memcpy (libc.so.6)", "libc"),
            ("memcpy (libc-2.31.so)", "libc"),
            ("operator new (libstdc++.so.6.0.30)", "libc"),
            ("_dl_lookup (ld-linux-x86-64.so.2)", "libc"),
            ("malloc (libtcmalloc_minimal.so.4)", "libc"),
            // Libraries whose names only begin as those do.
            ("SHA256_Update (libcrypto.so.3)", OTHER),
            ("mysql_send (libmariadb.so.3)", OTHER),
            ("gcc_jit (libgccjit.so.0)", OTHER),
            ("new_in_version_19 (postgres)", "rest of server"),
            ("MYSQLparse (mysqld)", "parse"),
            ("JOIN::optimize (mysqld)", "optimise"),
            ("JOIN::exec (mariadbd)", "execute"),
            ("row_search_mvcc (mysqld)", "index"),
            ("btr_cur_search_to_nth_level (mariadbd)", "index"),
            ("buf_page_get_gen (mysqld)", "buffer pool"),
            ("rw_lock_s_lock_spin (mysqld)", "latches"),
            ("log_write_up_to (mariadbd)", "log"),
            ("mtr_t::commit (mariadbd)", "log"),
            ("my_net_write (mysqld)", "network"),
            ("ha_innobase::rnd_next (mysqld)", "execute"),
            ("ha_innobase::index_read (mysqld)", "index"),
            ("rocksdb::IndexBlockIter::SeekImpl (ha_rocksdb.so)", "index"),
            ("MYSQLparse (other)", OTHER),
        ] {
            assert_eq!(rules.group(&format!("main (x);{frame}")), wanted, "{frame}");
        }
        let mut samples = Samples::default();
        for (stack, count) in [("ExecScan (postgres);x (kernel)", 3), ("[unknown] (x.so)", 1)] {
            samples.stacks.insert(stack.to_string(), count);
        }
        let shares = rules.shares(&samples);
        assert!((shares.iter().sum::<f64>() - 100.0).abs() < 0.5, "{shares:?}");
        assert_eq!((shares[0], rules.names()[0]), (75.0, "kernel"));
    }

    /// Text of all files below `dir`, with their paths.
    fn sources(dir: &std::path::Path, text: &mut String) {
        for entry in std::fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, text);
            } else {
                text.push_str(&format!("\nfile {}\n", path.display()));
                text.push_str(&std::fs::read_to_string(&path).unwrap());
            }
        }
    }

    #[test]
    fn rules_for_our_own_functions_name_what_the_sources_have() {
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let file: toml::Value = toml::from_str(RULES).unwrap();
        let groups = file["group"].as_array().unwrap();
        let rules = groups.iter().filter_map(|group| group.get("outcrop")?.as_array()).flatten();
        let mut known = BTreeMap::<String, String>::new();
        let mut count = 0;
        for rule in rules.map(|rule| rule.as_str().unwrap()) {
            let path = rule.replace("\\b", "").replace(".*", "");
            let mut parts = path.split("::").filter(|part| !part.is_empty());
            let package = match parts.next().unwrap() {
                "outcrop" => "engine".to_string(),
                other => other.strip_prefix("outcrop_").unwrap().replace('_', "-"),
            };
            let text = known.entry(package.clone()).or_insert_with(|| {
                let mut text = String::new();
                sources(&crates.join(&package).join("src"), &mut text);
                text
            });
            for part in parts {
                let named = ["fn ", "struct ", "enum "]
                    .map(|kind| format!("{kind}{part}"))
                    .into_iter()
                    .chain([format!("/{part}.rs\n"), format!("/{part}/")]);
                assert!(
                    named.into_iter().any(|named| text.contains(&named)),
                    "{rule}: {package} has no {part}"
                );
            }
            count += 1;
        }
        assert!(count > 20, "{count} rules");
    }
}
