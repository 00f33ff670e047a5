//! db_bench summary lines: 28 columns a step, in blocks, from `report.tsv`, `summary.tsv` and `sum.*.txt`.
//!
//! ```text
//! bm.lc.nt1.d0/6.29.gcc/report.tsv      inputs, one a line, in the order of the rows of each block
//! ops_sec  mb_sec  ...  test  date  version  job_id  githash      one block: header, rows, blank line
//! ```
//! Cells are found by the header's names. Invariant: a number that a repair takes away has no row.
//! Next: `repair.rs` for the defects, `version_table.rs` for the tables made from these files.

use super::model::{Target, Text, gigabytes, number};
use super::names::Names;
use super::repair::Repair;
use super::sink::{CellOrigin, Sink};
use super::source::Source;
use super::target::{rocksdb, version_numbers};
use std::collections::HashMap;
use std::sync::Arc;

/// First column of every header.
pub(super) const HEADER_START: &str = "ops_sec\t";
/// First line of a file that the lab wrote itself. Its percentiles are exact to three digits, its write amplification counts flushes
/// once, and its rows are blocks of one experiment.
pub const OWN_START: &str = "# targets:";

/// Columns that hold numbers, and their units.
const NUMBERS: [(&str, &str); 18] = [
    ("ops_sec", "ops/s"),
    ("mb_sec", "MB/s"),
    ("c_wgb", "GB"),
    ("c_mbps", "MB/s"),
    ("c_wsecs", "s"),
    ("c_csecs", "s"),
    ("b_rgb", "GB"),
    ("b_wgb", "GB"),
    ("usec_op", "us"),
    ("p50", "us"),
    ("p99", "us"),
    ("p99.9", "us"),
    ("p99.99", "us"),
    ("pmax", "us"),
    ("uptime", "s"),
    ("stall%", "%"),
    ("u_cpu", "ks"),
    ("s_cpu", "ks"),
];

/// Columns that hold words. `test` and `version` are the row's step and target.
const WORDS: [&str; 3] = ["date", "job_id", "githash"];

/// First version whose Sum row has the column that shifts its neighbours.
const SHIFTED_FROM: [u32; 2] = [10, 3];
/// First version with the renamed stall line.
const STALLS_RENAMED_FROM: [u32; 2] = [8, 1];
/// Versions that did not wait for universal compaction.
const WAIT_SKIPPED: [[u32; 2]; 2] = [[8, 7], [8, 11]];

/// Reads a whole file.
pub(super) fn parse(source: &Source, sink: &mut Sink) {
    let own = source.lines().next().is_some_and(|(_, text)| text == OWN_START);
    let mut file = File { inputs: Vec::new(), tag: tag(source), own, source, sink };
    if source.name == "report.tsv" {
        file.inputs.push(source.path.to_string_lossy().into_owned());
    }
    let mut block: Option<Block<'_>> = None;
    let mut first_header = 0;
    for (line, text) in source.lines() {
        if text.starts_with(HEADER_START) {
            if first_header == 0 {
                first_header = line;
            }
            file.finish(block.replace(Block { header: text.split('\t').collect(), rows: Vec::new() }));
        } else if text.trim().is_empty() || text.starts_with('#') {
            continue;
        } else if let Some(block) = &mut block {
            block.rows.push((line, text.split('\t').collect()));
        } else if text.contains('/') && !text.contains('\t') {
            file.inputs.push(text.trim().to_string());
        } else {
            file.sink.reject(line, "neither a summary line nor the name of an input");
        }
    }
    file.finish(block);
    file.label_file(first_header);
}

/// Workload and compiler, from the file's name or that of its directory.
fn tag(source: &Source) -> String {
    match source.name.as_str() {
        "report.tsv" => String::new(),
        "summary.tsv" | "sum.txt" => source.directory.clone(),
        name => table_tag(name),
    }
}

/// The middle of `sum.iobuf.8x.txt` and of the tables made from it.
pub(super) fn table_tag(name: &str) -> String {
    let start = name.find('.').map_or(0, |dot| dot + 1);
    let end = name.rfind('.').unwrap_or(name.len()).max(start);
    name[start..end].to_string()
}

struct Block<'a> {
    header: Vec<&'a str>,
    rows: Vec<(u32, Vec<&'a str>)>,
}

struct File<'a> {
    inputs: Vec<String>,
    tag: String,
    /// The lab wrote it.
    own: bool,
    source: &'a Source,
    sink: &'a mut Sink,
}

impl File<'_> {
    /// Turns a block into rows.
    fn finish(&mut self, block: Option<Block<'_>>) {
        let Some(block) = block else { return };
        let mut names = Names::default();
        for (index, (line, cells)) in block.rows.iter().enumerate() {
            if cells.len() != block.header.len() {
                let (got, want) = (cells.len(), block.header.len());
                self.sink.reject(*line, format!("{got} cells under a header of {want}"));
                continue;
            }
            let cells: HashMap<&str, &str> =
                block.header.iter().copied().zip(cells.iter().copied()).collect();
            let get = |column: &str| cells.get(column).copied().unwrap_or_default();
            let (test, version) = (get("test"), get("version"));
            if get("ops_sec") == "failed" {
                self.sink.reject(*line, format!("the step {test} failed"));
            } else if test.is_empty() || version.is_empty() {
                self.sink.reject(*line, "a summary line without test or version");
            } else {
                let target = self.target(version, index, block.rows.len());
                let target = names.unique(test, target, *line, self.sink);
                let place = CellOrigin { target, step: test.into(), line: *line };
                let own = self.own;
                Line { cells: &cells, version: version_numbers(version), place, own }.read(self.sink);
            }
        }
    }

    /// The target of row `index` of a block with `rows` rows.
    fn target(&self, version: &str, index: usize, rows: usize) -> Target {
        // The rows of a block follow the inputs one to one, or nothing is known about which is which.
        let input = match self.inputs.as_slice() {
            [only] => Some(only),
            inputs if inputs.len() == rows => inputs.get(index),
            _ => None,
        };
        let parts = input.and_then(|input| input_parts(input, version));
        let (configuration, build) = parts.unwrap_or_default();
        let configuration = format!("{} {configuration}", self.tag);
        rocksdb(version, &build, configuration.trim())
    }

    fn label_file(&mut self, line: u32) {
        let mut targets_of: HashMap<&Text, Vec<&Text>> = HashMap::new();
        for row in &self.sink.rows {
            let targets = targets_of.entry(&row.step).or_default();
            if !targets.contains(&&row.target.name) {
                targets.push(&row.target.name);
            }
        }
        let most = targets_of.values().map(Vec::len).max().unwrap_or(0);
        let repeated = self.sink.repairs.iter().any(|r| r.repair == Repair::RepeatedTarget);
        if most > 1 && !repeated && !self.own {
            self.sink.repair(Repair::MeasuredOnce, line, format!("{most} targets"));
        }
        if most == 0 {
            self.sink.reject(0, format!("{} holds no summary line", self.source.name));
        } else if !self.own {
            self.sink.repair(Repair::CoarsePercentiles, line, "p50 to p99.99");
        }
    }
}

/// Configuration and build of `bm.lc.nt1.d0/6.29.clang.lto/report.tsv`, if it can be `version`'s.
fn input_parts(input: &str, version: &str) -> Option<(String, String)> {
    let mut parts = input.rsplit('/').skip(1);
    let (target, configuration) = (parts.next()?, parts.next().unwrap_or_default());
    let numbers = version_numbers(target);
    if numbers.is_empty() || !version_numbers(version).starts_with(&numbers) {
        return None;
    }
    let build: Vec<&str> = target.split('.').skip(numbers.len()).collect();
    Some((configuration.to_string(), build.join(".")))
}

/// One summary line.
struct Line<'a> {
    cells: &'a HashMap<&'a str, &'a str>,
    version: Vec<u32>,
    place: CellOrigin,
    /// The lab wrote it.
    own: bool,
}

impl Line<'_> {
    fn read(&self, sink: &mut Sink) {
        let shifted = self.is_at_least(SHIFTED_FROM) && self.may_be_shifted();
        for (column, unit) in NUMBERS {
            match column {
                "c_wsecs" | "c_csecs" | "b_rgb" | "b_wgb" if shifted => {}
                _ => self.plain(column, unit, sink),
            }
        }
        if shifted {
            self.unshift(sink);
        }
        for column in ["lsm_sz", "blob_sz"] {
            self.size(column, sink);
        }
        for column in WORDS {
            sink.word(&self.place, column, self.cell(column));
        }
        self.write_amplification(sink);
        self.stalls(sink);
        self.resident_size(sink);
        self.universal_wait(sink);
    }

    fn cell(&self, column: &str) -> &str {
        self.cells.get(column).copied().unwrap_or_default()
    }

    fn is_at_least(&self, version: [u32; 2]) -> bool {
        self.version.as_slice() >= version.as_slice()
    }

    fn plain(&self, column: &str, unit: &'static str, sink: &mut Sink) {
        let cell = self.cell(column);
        match number(cell) {
            Some(value) => {
                sink.number(&self.place, column, unit, value);
            }
            None if cell.is_empty() || cell == "NA" => {}
            None => sink.reject(self.place.line, format!("{column}: '{cell}' is not a number")),
        }
    }

    /// Whether the compaction columns can be a write rate and its seconds: their product is then what was
    /// written, but for rounding. It is within 3 % in all of 720 published lines; lines of a repaired pipeline
    /// fail this.
    fn may_be_shifted(&self) -> bool {
        let [rate, seconds, written] =
            ["c_wsecs", "c_csecs", "c_wgb"].map(|column| number(self.cell(column)));
        let (Some(rate), Some(seconds), Some(written)) = (rate, seconds, written.map(|gb| gb * 1024.0))
        else {
            return true;
        };
        let rounding = 0.5 * (rate + seconds) + 0.05 * 1024.0;
        (rate * seconds - written).abs() <= 0.04 * written + rounding
    }

    /// Moves the compaction columns back to where they belong.
    fn unshift(&self, sink: &mut Sink) {
        let [wsecs, csecs, rgb, wgb] =
            ["c_wsecs", "c_csecs", "b_rgb", "b_wgb"].map(|column| number(self.cell(column)));
        if let Some(seconds) = csecs {
            sink.number(&self.place, "c_wsecs", "s", seconds).published = wsecs;
        }
        if let Some(gb) = wgb {
            sink.number(&self.place, "b_rgb", "GB", gb).published = rgb;
        }
        if csecs.is_some() || wgb.is_some() {
            let [wsecs, csecs, rgb, wgb] =
                ["c_wsecs", "c_csecs", "b_rgb", "b_wgb"].map(|column| self.cell(column));
            let what =
                format!("c_wsecs {wsecs} -> {csecs}, c_csecs {csecs} -> unknown, b_rgb {rgb} -> {wgb}");
            sink.repair(Repair::ShiftedCompactionColumns, self.place.line, what);
        }
    }

    fn size(&self, column: &str, sink: &mut Sink) {
        let cell = self.cell(column);
        let split = cell.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(cell.len());
        let (digits, unit) = cell.split_at(split);
        match number(digits).and_then(|size| gigabytes(size, unit)) {
            Some(size) => {
                sink.number(&self.place, column, "GB", size);
            }
            None if cell.is_empty() || cell == "NA" => {}
            None => sink.reject(self.place.line, format!("{column}: '{cell}' is not a size")),
        }
    }

    /// Keeps the printed figure as `w_amp_legacy`. For a sequential load, which ends when its last key is
    /// written, bytes ingested are rate times uptime; other steps wait for compaction, and do not tell.
    fn write_amplification(&self, sink: &mut Sink) {
        if self.own {
            return self.plain("w_amp", "ratio", sink);
        }
        let Some(legacy) = number(self.cell("w_amp")) else { return };
        sink.number(&self.place, "w_amp_legacy", "ratio", legacy);
        let load = self.place.step.starts_with("fillseq");
        let [written, rate, uptime] = ["c_wgb", "mb_sec", "uptime"].map(|column| number(self.cell(column)));
        let ingested = rate.zip(uptime).map(|(rate, seconds)| rate * seconds / 1024.0);
        match (written, ingested) {
            (Some(written), Some(ingested)) if load && ingested > 0.0 => {
                let true_value = written / ingested;
                sink.number(&self.place, "w_amp", "ratio", true_value).published = Some(legacy);
                let what = format!("w_amp {legacy} -> {true_value:.2} (ingested {ingested:.1} GB)");
                sink.repair(Repair::FlushCountedTwice, self.place.line, what);
            }
            _ => {
                let what = format!("w_amp {legacy} -> unknown");
                sink.repair(Repair::FlushCountedTwice, self.place.line, what);
            }
        }
    }

    fn stalls(&self, sink: &mut Sink) {
        if self.cell("Nstall").is_empty() && self.is_at_least(STALLS_RENAMED_FROM) {
            sink.repair(Repair::StallCountMissing, self.place.line, "Nstall is empty");
        } else {
            self.plain("Nstall", "count", sink);
        }
    }

    fn resident_size(&self, sink: &mut Sink) {
        if self.cell("rss") == "NA" {
            sink.repair(Repair::ResidentSizeMissing, self.place.line, "rss is NA");
        } else {
            self.plain("rss", "GB", sink);
        }
    }

    fn universal_wait(&self, sink: &mut Sink) {
        let universal = self.place.target.configuration.contains("bm.uc.");
        let [first, last] = WAIT_SKIPPED;
        let version = &self.version[..self.version.len().min(2)];
        if universal && version >= first.as_slice() && version <= last.as_slice() {
            let what = format!("RocksDB {}", self.place.target.version);
            sink.repair(Repair::UniversalWaitSkipped, self.place.line, what);
        }
    }
}

/// The targets of the first step of a summary file, in order.
pub(super) fn first_targets(source: &Source) -> Vec<Arc<Target>> {
    let mut sink = Sink::new(source.shown.clone());
    parse(source, &mut sink);
    let Some(first) = sink.rows.first() else { return Vec::new() };
    let step = first.step.clone();
    let mut targets: Vec<Arc<Target>> = Vec::new();
    for row in sink.rows.iter().filter(|row| row.step == step) {
        if targets.last() != Some(&row.target) {
            targets.push(Arc::clone(&row.target));
        }
    }
    targets
}
