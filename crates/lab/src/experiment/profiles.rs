//! Machines by name: the resources that a server of a size gives the engine, so that results of two such servers can be compared.
//!
//! ```text
//! c8r32        8 cores, 32 GB: 4 background threads, 20 GB of block cache
//! c8r32bc1g    the same with a block cache of 1 GB: the operating system caches the rest
//! derived      what this machine would be called: half its cores, 70 % of its memory
//! ```
//! Source: the profiles of the published db_bench reports. Keys are theirs too; where they give none, they follow the
//! memory, as theirs do.

use serde::{Deserialize, Serialize};

/// The settings of a profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Name.
    pub name: String,
    /// Cores.
    pub cores: u32,
    /// Memory, GB.
    pub memory_gb: u64,
    /// Background threads of the engine.
    pub background_jobs: i32,
    /// Block cache, bytes.
    pub cache: u64,
    /// Threads of one universal compaction.
    pub subcompactions: u32,
    /// Keys of a data set that the cache holds.
    #[serde(default)]
    pub cached_keys: u64,
    /// Keys of a data set that memory does not hold.
    #[serde(default)]
    pub uncached_keys: u64,
}

/// Cores, memory in GB, background threads, cache in GB, threads of one universal compaction.
const TABLE: &[(u32, u64, i32, u64, u32)] = &[
    (4, 16, 3, 10, 2),
    (8, 16, 4, 10, 2),
    (8, 32, 4, 20, 2),
    (16, 16, 8, 12, 4),
    (16, 64, 8, 48, 4),
    (24, 64, 12, 48, 4),
    (30, 240, 8, 180, 4),
    (32, 128, 8, 90, 4),
    (40, 256, 8, 210, 4),
    (48, 128, 12, 90, 4),
];

const GB: u64 = 1 << 30;

/// Keys of 20 and values of 400 bytes: that a cache holds, and that memory of `gb` does not hold.
fn keys(cores: u32, gb: u64) -> (u64, u64) {
    const PER_GB: (u64, u64) = (1_250_000, 12_500_000);
    /// The number of keys of the largest published sets.
    const CACHED_AT_MOST: u64 = 150_000_000;
    let uncached = if (cores, gb) == (40, 256) { 4_000_000_000 } else { gb * PER_GB.1 };
    ((gb * PER_GB.0).min(CACHED_AT_MOST), uncached)
}

/// Threads of one universal compaction on a machine that no profile describes.
pub fn subcompactions(cores: usize) -> u32 {
    if cores < 16 { 2 } else { 4 }
}

/// The profile `name`; `derived` is made of this machine's `memory` and `cores`.
pub fn find(name: &str, memory: u64, cores: usize) -> Option<Profile> {
    if name == "derived" {
        let (cached_keys, uncached_keys) = keys(cores as u32, memory / GB);
        return Some(Profile {
            name: format!("derived from {cores} cores and {} GB", memory / GB),
            cores: cores as u32,
            memory_gb: memory / GB,
            background_jobs: (cores / 2).clamp(1, 12) as i32,
            cache: memory / 10 * 7,
            subcompactions: subcompactions(cores),
            cached_keys,
            uncached_keys,
        });
    }
    // An ending bcNNN is a block cache of NNN GB instead of the profile's.
    let (machine, cache) = match name.split_once("bc") {
        Some((machine, cache)) => (machine, Some(cache.trim_end_matches('g').parse::<u64>().ok()?)),
        None => (name, None),
    };
    let (cores, memory_gb) = machine.strip_prefix('c')?.split_once('r')?;
    let (cores, memory_gb): (u32, u64) = (cores.parse().ok()?, memory_gb.parse().ok()?);
    let row = TABLE.iter().find(|row| (row.0, row.1) == (cores, memory_gb))?;
    let (cached_keys, uncached_keys) = keys(cores, memory_gb);
    Some(Profile {
        name: name.to_string(),
        cores,
        memory_gb,
        background_jobs: row.2,
        cache: cache.unwrap_or(row.3) * GB,
        subcompactions: row.4,
        cached_keys,
        uncached_keys,
    })
}

/// Names of all profiles, without those of another block cache.
pub fn names() -> Vec<String> {
    let rows = TABLE.iter().map(|row| format!("c{}r{}", row.0, row.1));
    std::iter::once("derived".to_string()).chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_give_the_published_sizes() {
        let profile = find("c8r32", 1, 1).unwrap();
        assert_eq!((profile.background_jobs, profile.cache, profile.subcompactions), (4, 20 * GB, 2));
        assert_eq!((profile.cached_keys, profile.uncached_keys), (40_000_000, 400_000_000));
        let keys = |name: &str| find(name, 1, 1).map(|profile| (profile.cached_keys, profile.uncached_keys));
        assert_eq!(keys("c8r16"), Some((20_000_000, 200_000_000)));
        assert_eq!(keys("c16r64bc1g"), Some((80_000_000, 800_000_000)));
        assert_eq!(keys("c40r256"), Some((150_000_000, 4_000_000_000)));
        assert_eq!(find("c40r256bc180", 1, 1).unwrap().cache, 180 * GB);
        assert_eq!(find("c16r64bc1g", 1, 1).unwrap().cache, GB);
        assert!(names().iter().all(|name| find(name, 8 * GB, 2).is_some()));
        assert!(
            find("c9r9", 1, 1).is_none() && find("c8r32bcx", 1, 1).is_none() && find("big", 1, 1).is_none()
        );
    }

    #[test]
    fn this_machine_gives_half_its_cores_and_most_of_its_memory() {
        let profile = find("derived", 64 * GB, 48).unwrap();
        assert_eq!((profile.background_jobs, profile.subcompactions), (12, 4));
        assert!((0.62..=0.75).contains(&(profile.cache as f64 / (64 * GB) as f64)));
        assert_eq!(find("derived", 8 * GB, 2).unwrap().background_jobs, 1);
    }
}
