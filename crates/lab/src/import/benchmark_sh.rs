//! Names of the files that RocksDB's `benchmark.sh` writes, which say what their benchmark was for.
//!
//! ```text
//! benchmark_fwdrange.t8.log            seekrandom : ..     forward, by 8 threads          step fwdrange.t8
//! benchmark_overwritesome.t1.s0.log    overwrite : ..      as little as settles a tree    step overwritesome.t1.s0
//! benchmark_overwritesome.t1.s0.log.time, .log.r.csv       times and rates of the same step
//! ```
//! The summary of the script has the same names for most of them.
//! Source: RocksDB `tools/benchmark.sh`.

/// Names of steps, and the benchmark whose result is that of the step.
const STEPS: &[(&str, &str)] = &[
    ("bulkload_compact", "compact"),
    ("bulkload_fillrandom", "fillrandom"),
    ("fillseq", "fillseq"),
    ("filluniquerandom", "filluniquerandom"),
    ("fwdrange", "seekrandom"),
    ("fwdrangewhilemerging", "seekrandomwhilemerging"),
    ("fwdrangewhilewriting", "seekrandomwhilewriting"),
    ("mergerandom", "mergerandom"),
    ("multireadrandom", "multireadrandom"),
    ("overwrite", "overwrite"),
    ("overwriteandwait", "overwrite"),
    ("overwritesome", "overwrite"),
    ("randomtransaction", "randomtransaction"),
    ("readrandom", "readrandom"),
    ("readwhilemerging", "readwhilemerging"),
    ("readwhilewriting", "readwhilewriting"),
    ("revrange", "seekrandom"),
    ("revrangewhilemerging", "seekrandomwhilemerging"),
    ("revrangewhilewriting", "seekrandomwhilewriting"),
    ("updaterandom", "updaterandom"),
];

/// Names before a number of subcompactions, and their benchmarks.
const NUMBERED: [(&str, &str); 2] = [("man_compact_fillrandom_", "fillrandom"), ("man_compact_", "compact")];

/// The name of the step in that of a file: without what all have.
pub(super) fn stem(file: &str) -> &str {
    let log = [".time", ".r.csv"].into_iter().find_map(|ending| file.strip_suffix(ending)).unwrap_or(file);
    let stem = log.strip_suffix(".log").unwrap_or(log);
    stem.strip_prefix("benchmark_").unwrap_or(stem)
}

/// The step that the result of `benchmark` in the log `file` is of, if the script gave the log its name for it.
pub(super) fn step_of<'a>(file: &'a str, benchmark: &str) -> Option<&'a str> {
    let stem = stem(file);
    file.strip_prefix("benchmark_")?;
    let mut parts = stem.split('.');
    let name = parts.next()?;
    let numbered = |(prefix, of): &(&str, &'static str)| is_number(name.strip_prefix(prefix)?).then_some(*of);
    let of = STEPS.iter().find(|(step, _)| *step == name).map(|(_, of)| *of);
    let of = of.or_else(|| NUMBERED.iter().find_map(numbered))?;
    (of == benchmark && parts.all(is_suffix)).then_some(stem)
}

/// Threads (`t8`), whether writes are synced (`s0`), bytes of values (`v400`), and whether there is a WAL.
fn is_suffix(part: &str) -> bool {
    matches!(part, "wal_disabled" | "wal_enabled")
        || part.strip_prefix(['t', 's', 'v']).is_some_and(is_number)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_scripts_logs_are_those_of_steps() {
        for (stem, benchmark) in [
            ("revrangewhilewriting.t16", "seekrandomwhilewriting"),
            ("overwriteandwait.t1.s1", "overwrite"),
            ("fillseq.wal_enabled.v400", "fillseq"),
            ("bulkload_compact", "compact"),
            ("man_compact_16", "compact"),
            ("man_compact_fillrandom_4", "fillrandom"),
            ("randomtransaction", "randomtransaction"),
        ] {
            assert_eq!(step_of(&format!("benchmark_{stem}.log"), benchmark), Some(stem));
        }
    }

    #[test]
    fn other_names_and_other_results_are_not() {
        assert_eq!(step_of("benchmark_overwriteandwait.t1.s0.log", "waitforcompaction"), None);
        for name in
            ["fwdrange.t1.log", "benchmark_fwdrange.mine.log", "benchmark_fwdrange.t.log", "benchmark_.log"]
        {
            assert_eq!(step_of(name, "seekrandom"), None, "{name}");
        }
        assert_eq!(step_of("benchmark_man_compact_x.log", "compact"), None);
    }

    #[test]
    fn files_beside_a_log_are_of_the_same_step() {
        for ending in ["", ".time", ".r.csv"] {
            assert_eq!(stem(&format!("benchmark_readrandom.t1.log{ending}")), "readrandom.t1");
        }
        assert_eq!(stem("mine.txt"), "mine.txt");
    }
}
