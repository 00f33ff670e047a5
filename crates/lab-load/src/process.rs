//! The figures of the operating system about this process.

use crate::processor::{self, ProcessorCounts};
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// CPU time and memory of the process.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// Seconds in user mode.
    pub user_seconds: f64,
    /// Seconds in the kernel.
    pub system_seconds: f64,
    /// Resident bytes now.
    pub rss_bytes: u64,
    /// Times a thread gave its processor up to wait, of threads that ended too.
    #[serde(default)]
    pub voluntary_switches: u64,
    /// Times a thread was made to give it up.
    #[serde(default)]
    pub involuntary_switches: u64,
    /// Bytes that it had read from devices, and bytes that it gave to them less what it took back. Of a server's processes; of this
    /// one samplers know.
    #[serde(default)]
    pub device_bytes: Option<[u64; 2]>,
    /// The processor's counts, where it counts.
    #[serde(default)]
    pub processor: ProcessorCounts,
}

impl ProcessUsage {
    /// Times and switches of all children that have ended and were waited for; nothing else is known of them.
    pub fn of_children() -> ProcessUsage {
        ProcessUsage {
            rss_bytes: 0,
            processor: ProcessorCounts::default(),
            ..ProcessUsage::of(UsageWho::RUSAGE_CHILDREN)
        }
    }

    /// Reads memory from `/proc/self`, and asks the kernel for the rest: its files know switches of living threads alone, and
    /// times in hundredths of a second. Zero where that cannot be had.
    pub fn read() -> ProcessUsage {
        ProcessUsage::of(UsageWho::RUSAGE_SELF)
    }

    fn of(who: UsageWho) -> ProcessUsage {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages: u64 = statm.split_whitespace().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
        let usage = getrusage(who).ok();
        let seconds = |of: fn(&Usage) -> TimeVal| {
            usage.as_ref().map_or(0.0, |usage| of(usage).num_microseconds() as f64 / 1e6)
        };
        let count = |of: fn(&Usage) -> i64| usage.as_ref().map_or(0, |usage| of(usage).max(0) as u64);
        ProcessUsage {
            user_seconds: seconds(Usage::user_time),
            system_seconds: seconds(Usage::system_time),
            rss_bytes: pages * rustix::param::page_size() as u64,
            voluntary_switches: count(Usage::voluntary_context_switches),
            involuntary_switches: count(Usage::involuntary_context_switches),
            device_bytes: None,
            processor: processor::read(),
        }
    }

    /// The usage since `before`; memory is that of now.
    pub fn since(&self, before: &ProcessUsage) -> ProcessUsage {
        ProcessUsage {
            user_seconds: self.user_seconds - before.user_seconds,
            system_seconds: self.system_seconds - before.system_seconds,
            rss_bytes: self.rss_bytes,
            voluntary_switches: self.voluntary_switches - before.voluntary_switches,
            involuntary_switches: self.involuntary_switches - before.involuntary_switches,
            device_bytes: None,
            processor: self.processor.since(before.processor),
        }
    }

    /// The usage in this time and in `later`; memory is that of the later.
    pub fn followed_by(&self, later: &ProcessUsage) -> ProcessUsage {
        ProcessUsage {
            user_seconds: self.user_seconds + later.user_seconds,
            system_seconds: self.system_seconds + later.system_seconds,
            rss_bytes: later.rss_bytes,
            voluntary_switches: self.voluntary_switches + later.voluntary_switches,
            involuntary_switches: self.involuntary_switches + later.involuntary_switches,
            device_bytes: both(self.device_bytes, later.device_bytes, |so_far, later| so_far + later),
            processor: self.processor.followed_by(later.processor),
        }
    }
}

/// Two pairs of bytes made one, if both are known.
pub fn both(
    one: Option<[u64; 2]>,
    other: Option<[u64; 2]>,
    make: impl Fn(u64, u64) -> u64,
) -> Option<[u64; 2]> {
    one.zip(other).map(|([a, b], [c, d])| [make(a, c), make(b, d)])
}

/// The value of `LD_PRELOAD` by which `libraries` are loaded with a program, in this order. Those whose paths the dynamic
/// linker would take for several are left out.
///
/// A library that is loaded later finds its thread-local variables by a longer way than one that the program is linked to:
/// writes of RocksDB are 3 to 5 % slower. The measurement is to be of the library that users have.
pub fn preloaded<'p>(libraries: impl IntoIterator<Item = &'p Path>) -> OsString {
    let bytes = |path: &'p Path| path.as_os_str().as_encoded_bytes();
    let whole = |path: &&'p Path| !bytes(path).iter().any(|byte| matches!(byte, b':' | b' '));
    let paths: Vec<&OsStr> = libraries.into_iter().filter(whole).map(Path::as_os_str).collect();
    paths.join(OsStr::new(":"))
}

/// Whether `library` is in this process.
///
/// # Errors
/// If the kernel does not say.
pub fn is_loaded(library: &Path) -> Result<bool, String> {
    let path = library.canonicalize().unwrap_or_else(|_| library.to_path_buf());
    let maps =
        std::fs::read_to_string("/proc/self/maps").map_err(|error| format!("/proc/self/maps: {error}"))?;
    Ok(path.to_str().is_some_and(|path| maps.lines().any(|line| line.ends_with(path))))
}

/// Starts this program again with `library` loaded from the start, unless it is. Returns if that cannot be done.
pub fn start_again_with(library: &Path) {
    let Ok(library) = library.canonicalize() else { return };
    let before = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let listed = |list: &OsStr| std::env::split_paths(list).any(|path| path == library);
    let wanted = preloaded(
        std::env::split_paths(&before).collect::<Vec<_>>().iter().map(PathBuf::as_path).chain([&*library]),
    );
    if listed(&before) || !listed(&wanted) {
        return;
    }
    let mut words = std::env::args_os();
    let mut command = Command::new("/proc/self/exe");
    command.arg0(words.next().unwrap_or_default()).args(words).env("LD_PRELOAD", wanted);
    let _ = command.exec();
}

/// Spreads the memory that this process takes from here on over all NUMA nodes, where there are several: else a cache lies
/// on the node of whoever filled it, and runs differ by where threads happen to be. Gives the number of nodes.
///
/// # Errors
/// The kernel's, which containers may cause.
pub fn interleave_memory() -> std::io::Result<usize> {
    let online = std::fs::read_to_string("/sys/devices/system/node/online").unwrap_or_default();
    let nodes = numbers(&online);
    if nodes.len() > 1 {
        interleave(&nodes)?;
    }
    Ok(nodes.len().max(1))
}

/// Numbers of a list such as `0-1,4`.
fn numbers(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        Some(first..=last.min(first + MOST_NODES))
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// Nodes that a mask has room for.
const MOST_NODES: usize = 1024;

#[allow(unsafe_code, reason = "there is no safe call for it")]
fn interleave(nodes: &[usize]) -> std::io::Result<()> {
    const MPOL_INTERLEAVE: libc::c_long = 3;
    let mut mask = [0u64; MOST_NODES / 64];
    nodes.iter().filter(|node| **node < MOST_NODES).for_each(|node| mask[node / 64] |= 1 << (node % 64));
    // SAFETY: the mask lives through the call; the kernel reads one bit less than it is told.
    let result = unsafe {
        libc::syscall(
            libc::SYS_set_mempolicy,
            MPOL_INTERLEAVE,
            mask.as_ptr(),
            MOST_NODES as libc::c_ulong + 1,
        )
    };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn switches_of_threads_that_ended_are_counted() {
        let before = ProcessUsage::read();
        let sleeper = || (0..50).for_each(|_| std::thread::sleep(Duration::from_micros(100)));
        std::thread::spawn(sleeper).join().unwrap();
        let after = ProcessUsage::read();
        assert!(after.voluntary_switches >= before.voluntary_switches + 50, "{before:?} {after:?}");
        assert!(after.involuntary_switches >= before.involuntary_switches);
    }

    #[test]
    fn libraries_that_the_linker_takes_for_several_are_left_out() {
        let list = |paths: &[&str]| preloaded(paths.iter().map(|path| Path::new(*path)));
        assert_eq!(list(&["/a/libx.so", "/b/liby.so"]), "/a/libx.so:/b/liby.so");
        assert_eq!(list(&["/a b/libx.so", "/b:c/liby.so", "/d.so"]), "/d.so");
        assert_eq!(list(&[]), "");
    }

    #[test]
    fn lists_of_nodes_are_read() {
        assert_eq!(numbers("0-1,4\n"), [0, 1, 4]);
        assert_eq!(numbers("0\n"), [0]);
        assert_eq!(numbers(""), Vec::<usize>::new());
        assert_eq!(numbers("x,3-y,2"), [2]);
    }
}
