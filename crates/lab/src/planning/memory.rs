//! Memory of the machine: how much there is, and making sure that it is really there.
//!
//! A virtual machine gets its memory from the host page by page, at the first touch, and may give free pages back.
//! A first touch then costs milliseconds a megabyte, and whichever engine runs first pays for both. So before a
//! session as much memory as it will use is touched and freed again; and where the host takes free pages back within
//! seconds, before each step as much as that step will grow by.

use crate::experiment::steps::{PlannedStep, Sizes};
use crate::host;
use outcrop_lab_load::process::ProcessUsage;
use std::hint::black_box;

/// Bytes that are allocated at a time.
const CHUNK: usize = 64 << 20;
const PAGE: usize = 4096;

/// A line of /proc/meminfo in bytes.
fn meminfo(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// Bytes of memory in the machine; 4 GiB if nothing says.
pub fn total_bytes() -> u64 {
    meminfo("MemTotal").unwrap_or(4 << 30)
}

/// Whether the host takes free pages back while the machine runs.
pub fn is_taken_back() -> bool {
    host::takes_free_pages_back()
}

/// Touches what `step` will probably add to this process and to the page cache, out of memory that is free now: what is
/// in use cannot have been taken.
pub fn make_growth_present(sizes: &Sizes, step: &PlannedStep) {
    let bytes = growth(sizes, step, ProcessUsage::read().rss_bytes);
    // Below that nothing is worth the time.
    if bytes >= CHUNK as u64 {
        touch(bytes.min(meminfo("MemFree").unwrap_or(0) / 10 * 8));
    }
}

/// Memory of a process beside its block cache: code, and memtables and filters, which are no larger than the data.
fn beside_cache(sizes: &Sizes) -> u64 {
    const CODE: u64 = 32 << 20;
    const MOST: u64 = 256 << 20;
    (CODE + sizes.data_bytes()).min(MOST)
}

/// Bytes that a step will probably add while the process has `resident`.
fn growth(sizes: &Sizes, step: &PlannedStep, resident: u64) -> u64 {
    let data = sizes.data_bytes();
    let process = ((sizes.cache as u64).min(data) + beside_cache(sizes)).saturating_sub(resident);
    // Files that are written stay in the page cache.
    let files = if step.writes() { data } else { 0 };
    process + files
}

/// Memory of sessions that run side by side: their caches and memtables, and their files in the page cache.
pub fn of_sessions(sizes: &Sizes, sessions: usize) -> u64 {
    /// So often the cache may hold what the database has: in blocks of tables that compactions have replaced, too.
    const GENERATIONS: u64 = 4;
    let data = sizes.data_bytes();
    let cache = (sizes.cache as u64).min(GENERATIONS * data);
    (cache + beside_cache(sizes) + 2 * data) * sessions as u64
}

/// Seconds that it probably takes to make that present. Memory that steps add later is there still, and takes
/// little.
pub fn seconds_to_make_present(sizes: &Sizes, sessions: usize) -> f64 {
    // Bytes per second, measured where a host takes pages back and where none does.
    let rate = if is_taken_back() { 0.7e9 } else { 3e9 };
    of_sessions(sizes, sessions) as f64 / rate
}

/// Touches `bytes` of memory, at most 80 % of what is available, and frees it.
pub fn make_present(bytes: u64) {
    touch(bytes.min(meminfo("MemAvailable").unwrap_or(0) / 10 * 8));
}

fn touch(bytes: u64) {
    let mut chunks: Vec<Vec<u8>> = Vec::new();
    for _ in 0..(bytes as usize).div_ceil(CHUNK) {
        let mut chunk = vec![0u8; CHUNK];
        chunk.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
        chunks.push(black_box(chunk));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_memory_and_touching_some_leaves_it_free() {
        assert!(total_bytes() > 64 << 20);
        make_present(1);
        assert_eq!(meminfo("NoSuchLine"), None);
    }

    #[test]
    fn only_steps_that_grow_ask_for_memory() {
        let sizes = |step: &str| {
            let text = format!(
                "title = 't'\nsteps = ['fillseq', '{step}']\n[workload]\nkind = 'byrx'\nkeys = 1000000\n\
                 [[target]]\nengine = 'outcrop'\n"
            );
            let experiment = crate::experiment::parse("t.toml", &text).unwrap();
            let sizes = experiment.sizes(8 << 30, 4);
            (experiment.planned_steps(&sizes).remove(1), sizes)
        };
        let (read, read_sizes) = sizes("readrandom");
        let (write, write_sizes) = sizes("overwrite");
        let data = read_sizes.data_bytes();
        assert!(growth(&read_sizes, &read, 0) >= data);
        assert_eq!(growth(&read_sizes, &read, 2 * data + (256 << 20)), 0);
        assert_eq!(growth(&write_sizes, &write, 2 * data + (256 << 20)), data);
    }

    #[test]
    fn a_small_database_does_not_ask_for_the_memory_of_a_large_cache() {
        let sizes = |keys: u64| {
            let text = format!(
                "title = 't'\nsteps = ['fillseq']\n[workload]\nkind = 'byrx'\nkeys = {keys}\ncache = 8589934592\n\
                 [[target]]\nengine = 'outcrop'\n"
            );
            crate::experiment::parse("t.toml", &text).unwrap().sizes(8 << 30, 4)
        };
        let (small, large) = (sizes(2000), sizes(100_000_000));
        assert!(of_sessions(&small, 1) < CHUNK as u64, "{}", of_sessions(&small, 1));
        assert_eq!(of_sessions(&large, 2), 2 * ((8 << 30) + (256 << 20) + 2 * large.data_bytes()));
    }
}
