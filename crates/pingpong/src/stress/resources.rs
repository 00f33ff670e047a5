//! The process's memory, threads and descriptors. None of it may grow from one closed database to the next.

use std::path::Path;

/// The figures of a moment at which no database is open.
#[derive(Clone, Debug)]
pub struct Held {
    /// Resident memory, bytes.
    pub memory: u64,
    /// Threads.
    pub threads: u64,
    /// Open descriptors of files of databases: there are none.
    pub files: Vec<String>,
    /// Descriptors that threads of pools have for themselves, of the kernel's own objects: rings, events, timers.
    pub kernel: u64,
    /// All others.
    pub others: u64,
}

/// Cycles after which everything that stays has been made: caches, pools of threads, arenas of the allocator.
const WARM: usize = 3;
/// Cycles at the end, of which the least counts: a thread that was just joined may still be listed, with what it has open.
const LAST: usize = 3;
/// Threads of the pools that are started only after the warm cycles, when more work waits. A thread left behind by each cycle is more.
const LATE_THREADS: u64 = 2;
/// Kernel objects that such threads, and four reads at a time, keep for the next one.
const LATE_OBJECTS: u64 = LATE_THREADS + 4;
/// Memory may be so much more than when it was warm: what the allocator keeps differs from cycle to cycle.
const SLACK: u64 = 64 << 20;

impl Held {
    /// Now, with the databases in `dir`.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn now(dir: &Path) -> Result<Held, String> {
        let named = |error: std::io::Error| format!("/proc/self: {error}");
        let text = std::fs::read_to_string("/proc/self/statm").map_err(named)?;
        let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
        let mut held = Held {
            memory: pages * 4096,
            threads: std::fs::read_dir("/proc/self/task").map_err(named)?.count() as u64,
            files: Vec::new(),
            kernel: 0,
            others: 0,
        };
        for entry in std::fs::read_dir("/proc/self/fd").map_err(named)?.flatten() {
            // The one that this directory is read by is gone by the time it is looked at, or counts each time.
            let Ok(target) = std::fs::read_link(entry.path()) else { continue };
            held.add(dir, &target.to_string_lossy());
        }
        Ok(held)
    }

    /// Counts a descriptor by what it is of.
    fn add(&mut self, dir: &Path, target: &str) {
        if Path::new(target).starts_with(dir) {
            self.files.push(target.to_string());
        } else if target.starts_with("anon_inode:") {
            self.kernel += 1;
        } else {
            self.others += 1;
        }
    }
}

/// Whether figures taken after each cycle grow.
///
/// # Errors
/// What grew, and the figures.
pub fn judge(held: &[Held]) -> Result<(), String> {
    if let Some((cycle, open)) = held.iter().enumerate().find(|(_, held)| !held.files.is_empty()) {
        return Err(format!(
            "descriptors are left open by closed databases after cycle {cycle}: {:?}",
            open.files
        ));
    }
    let Some((warm, later)) = held.split_at_checked(WARM) else { return Ok(()) };
    if later.len() < LAST {
        return Ok(());
    }
    let most = |of: fn(&Held) -> u64| warm.iter().map(of).max().unwrap_or(0);
    let least = |of: fn(&Held) -> u64| later.iter().rev().take(LAST).map(of).min().unwrap_or(0);
    let grew = |what: &str| Err(format!("{what} grow over {} cycles: {held:?}", held.len()));
    if least(|held| held.others) > most(|held| held.others) {
        return grew("descriptors");
    }
    if least(|held| held.kernel) > most(|held| held.kernel) + LATE_OBJECTS {
        return grew("descriptors of the kernel's objects");
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
        let held = |memory: u64, threads, kernel, others| Held {
            memory: memory << 20,
            threads,
            files: Vec::new(),
            kernel,
            others,
        };
        let steady = [50, 60, 70, 66, 72, 68, 71, 70].map(|memory| held(memory, 5 + memory % 2, 2, 9));
        assert_eq!(judge(&steady), Ok(()));
        assert_eq!(judge(&steady[..2]), Ok(()));
        let with = |last: Held| judge(&[&steady[..], &vec![last; LAST]].concat()).unwrap_err();
        assert!(with(held(70, 6, 2, 10)).starts_with("descriptors grow"));
        assert!(with(held(70, 6, 9, 9)).starts_with("descriptors of the kernel's objects grow"));
        assert_eq!(
            judge(&[&steady[..], &vec![held(70, 6, 8, 9); LAST]].concat()),
            Ok(()),
            "rings of late threads"
        );
        let leaking: Vec<Held> = (0..8).map(|cycle| held(70, 5 + cycle, 2, 9)).collect();
        assert!(judge(&leaking).unwrap_err().starts_with("threads"));
        let late: Vec<Held> = (0..8).map(|cycle| held(70, 5 + cycle / 4, 2, 9)).collect();
        assert_eq!(judge(&late), Ok(()));
        assert!(with(held(170, 6, 2, 9)).starts_with("resident"));
    }

    /// One file that stays open is told at once, however many cycles there are.
    #[test]
    fn a_file_of_a_closed_database_is_told_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("000012.sst");
        let file = std::fs::File::create(&path).unwrap();
        let open = Held::now(dir.path()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let removed = Held::now(dir.path()).unwrap();
        drop(file);
        let closed = Held::now(dir.path()).unwrap();
        assert!(judge(&[open]).unwrap_err().contains("000012.sst"));
        assert!(judge(&[removed]).unwrap_err().contains("000012.sst (deleted)"));
        assert_eq!(judge(&[closed]), Ok(()));
    }
}
