//! The process's memory, threads and descriptors. None of it may grow from one closed database to the next.

/// The figures of a moment at which no database is open.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// Resident memory, bytes.
    pub memory: u64,
    /// Threads.
    pub threads: u64,
    /// Open descriptors.
    pub descriptors: u64,
}

/// Cycles after which everything that stays has been made: caches, pools of threads, arenas of the allocator.
const WARM: usize = 3;
/// Cycles at the end, of which the least counts: a thread that was just joined may still be listed, with what it has open.
const LAST: usize = 3;
/// Threads of the pools that are started only after the warm cycles, when more work waits. A thread left behind by each cycle is more.
const LATE_THREADS: u64 = 2;
/// Memory may be so much more than when it was warm: what the allocator keeps differs from cycle to cycle.
const SLACK: u64 = 64 << 20;

impl Held {
    /// Now.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn now() -> Result<Held, String> {
        let named = |error: std::io::Error| format!("/proc/self: {error}");
        let count = |dir: &str| std::fs::read_dir(dir).map(|entries| entries.count() as u64).map_err(named);
        let text = std::fs::read_to_string("/proc/self/statm").map_err(named)?;
        let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
        Ok(Held {
            memory: pages * 4096,
            threads: count("/proc/self/task")?,
            descriptors: count("/proc/self/fd")?,
        })
    }
}

/// Whether figures taken after each cycle grow.
///
/// # Errors
/// What grew, and the figures.
pub fn judge(held: &[Held]) -> Result<(), String> {
    let Some((warm, later)) = held.split_at_checked(WARM) else { return Ok(()) };
    if later.len() < LAST {
        return Ok(());
    }
    let most = |of: fn(&Held) -> u64| warm.iter().map(of).max().unwrap_or(0);
    let least = |of: fn(&Held) -> u64| later.iter().rev().take(LAST).map(of).min().unwrap_or(0);
    let grew = |what: &str| Err(format!("{what} grow over {} cycles: {held:?}", held.len()));
    if least(|held| held.descriptors) > most(|held| held.descriptors) {
        return grew("descriptors");
    }
    if least(|held| held.threads) > most(|held| held.threads) + LATE_THREADS {
        return grew("threads");
    }
    // Half as much again is no slow growth; a leak of each cycle passes it in time.
    if least(|held| held.memory) > most(|held| held.memory) * 3 / 2 + SLACK {
        return grew("resident bytes");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_told_from_what_stays() {
        let held = |memory: u64, threads, descriptors| Held { memory: memory << 20, threads, descriptors };
        let steady = [50, 60, 70, 66, 72, 68, 71, 70].map(|memory| held(memory, 5 + memory % 2, 9));
        assert_eq!(judge(&steady), Ok(()));
        assert_eq!(judge(&steady[..2]), Ok(()));
        let with = |last: Held| judge(&[&steady[..], &[last; LAST]].concat()).unwrap_err();
        assert!(with(held(70, 6, 10)).starts_with("descriptors"));
        let leaking: Vec<Held> = (0..8).map(|cycle| held(70, 5 + cycle, 9)).collect();
        assert!(judge(&leaking).unwrap_err().starts_with("threads"));
        let late: Vec<Held> = (0..8).map(|cycle| held(70, 5 + cycle / 4, 9)).collect();
        assert_eq!(judge(&late), Ok(()));
        assert!(with(held(170, 6, 9)).starts_with("resident"));
    }
}
