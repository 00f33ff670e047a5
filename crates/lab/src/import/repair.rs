//! Known defects of published result files, each with what the importer does about it.
//!
//! A repair either replaces a value (the printed one stays in [`super::Row::published`]), renames or removes
//! what is wrong, or only labels: the numbers stay, the reader is warned.

use super::model::Text;
use serde::Serialize;

/// A known defect that was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Repair {
    /// Each target has one row per step, in one order.
    MeasuredOnce,
    /// RocksDB 10.3.0 added a column and the summary reads its neighbours.
    ShiftedCompactionColumns,
    /// RocksDB 8.1 renamed the line that held the stall counts.
    StallCountMissing,
    /// The sampler wrote one file and the summary read another.
    ResidentSizeMissing,
    /// Write amplification adds flushed bytes to a counter that has them already.
    FlushCountedTwice,
    /// Header lines and the since-boot line of vmstat were averaged in.
    VmstatHeaderBias,
    /// CPU per operation as a share of a host of unstated size.
    CpuShareOfHost,
    /// Universal compaction of RocksDB 8.7 to 8.11 was not waited for.
    UniversalWaitSkipped,
    /// The background writer's operations are in the throughput of readers.
    WriterInThroughput,
    /// The same target twice in one step.
    RepeatedTarget,
    /// Client CPU of one client, server CPU of one process.
    CpuOfOneProcess,
    /// update-inlist takes 10 ids whatever its range says.
    InlistRange,
    /// Scans count thousands of rows where other tests count queries.
    ScanInRows,
    /// Each run drew its own random numbers.
    SeedsDiffer,
    /// Percentiles interpolated in buckets 1.5 times as wide as the last.
    CoarsePercentiles,
    /// Rates over a wall time in whole seconds.
    WholeSecondRates,
    /// A fixed band of 5 % decides the colour.
    FixedThreshold,
    /// File name and command line disagree about the clients.
    ClientsDiffer,
}

/// The effect of a repair on the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Values, units or names were changed or left out.
    Changed,
    /// Nothing was changed; the numbers mean less than they seem to.
    Labelled,
}

impl Repair {
    /// Its name in JSON and in the documentation.
    pub fn name(self) -> String {
        let named = serde_json::to_value(self).ok();
        named.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default().to_string()
    }

    /// One sentence: the defect, and its repair.
    pub fn sentence(self) -> &'static str {
        match self {
            Repair::MeasuredOnce => {
                "Every target was measured once, in a fixed order, so version and order cannot be told apart."
            }
            Repair::ShiftedCompactionColumns => {
                "From RocksDB 10.3.0 on c_csecs holds Comp(sec) and b_wgb holds Rblob: both were moved to c_wsecs \
                 and b_rgb, and the two cells they came from are unknown."
            }
            Repair::StallCountMissing => {
                "Nstall is empty from RocksDB 8.1 on because the line it came from was renamed; it is unknown."
            }
            Repair::ResidentSizeMissing => {
                "rss is NA because sampler and summary used different file names; it is unknown."
            }
            Repair::FlushCountedTwice => {
                "w_amp counts flushed bytes twice; it is kept as w_amp_legacy, and w_amp is what was written per \
                 byte ingested where the file tells that."
            }
            Repair::VmstatHeaderBias => {
                "vmstat header lines and its since-boot line were averaged as samples: cs and cpu are about 5 % \
                 low, and were scaled by the sample counts where the file has them."
            }
            Repair::CpuShareOfHost => {
                "cpu/o is percent of the whole host per operation/s, not time; cpu_us/o was added where the \
                 number of CPUs is known."
            }
            Repair::UniversalWaitSkipped => {
                "Universal compaction of RocksDB 8.7 to 8.11 was not waited for properly before this step ended."
            }
            Repair::WriterInThroughput => {
                "The throughput per second of a whilewriting step includes the background writer's operations."
            }
            Repair::RepeatedTarget => {
                "A target occurs more than once in a step; later ones are named #2, #3, and none is overwritten."
            }
            Repair::CpuOfOneProcess => {
                "Client CPU seconds are those of client 1 only, server CPU seconds those of one process."
            }
            Repair::InlistRange => {
                "update-inlist uses 10 ids per statement although it is labelled range=100; it was renamed."
            }
            Repair::ScanInRows => "The rate of a scan is in thousand rows per second; its unit says so now.",
            Repair::SeedsDiffer => {
                "The random seed came from the clock, so runs did not do the same operations."
            }
            Repair::CoarsePercentiles => {
                "Percentiles come from buckets each 1.5 times the last: 1220 means between 870 and 1300."
            }
            Repair::WholeSecondRates => "The rate was computed from a wall time in whole seconds.",
            Repair::FixedThreshold => {
                "Colours follow a fixed band of 5 %, wider than the noise of some tests and narrower than others'."
            }
            Repair::ClientsDiffer => {
                "The file name gives another number of clients than the command line; the command line counts."
            }
        }
    }

    /// Whether numbers changed.
    pub fn effect(self) -> Effect {
        match self {
            Repair::ShiftedCompactionColumns
            | Repair::FlushCountedTwice
            | Repair::VmstatHeaderBias
            | Repair::RepeatedTarget
            | Repair::InlistRange
            | Repair::ScanInRows => Effect::Changed,
            Repair::MeasuredOnce
            | Repair::StallCountMissing
            | Repair::ResidentSizeMissing
            | Repair::CpuShareOfHost
            | Repair::UniversalWaitSkipped
            | Repair::WriterInThroughput
            | Repair::CpuOfOneProcess
            | Repair::SeedsDiffer
            | Repair::CoarsePercentiles
            | Repair::WholeSecondRates
            | Repair::FixedThreshold
            | Repair::ClientsDiffer => Effect::Labelled,
        }
    }
}

/// One place where a repair applied.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Repaired {
    /// Which.
    pub repair: Repair,
    /// The file.
    pub file: Text,
    /// Its line, from 1; 0 where the whole file is meant.
    pub line: u32,
    /// The old text and the new one.
    pub what: String,
}
