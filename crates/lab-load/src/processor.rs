//! The processor's counts for this process: instructions, cycles, cache and TLB misses, where the machine lets it.
//!
//! Virtual machines and containers often have no such counters; each is there or not by itself, with the kernel's reason.
//! They are opened once, before the engine starts its threads, and every thread after that inherits them. Only user mode is
//! counted, which `perf_event_paranoid` 2 allows.
//! Concurrency: opened once; reading is a system call per counter.
//!
//! Source: Linux `include/uapi/linux/perf_event.h`, perf_event_open(2).

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::sync::OnceLock;

/// Counts of the process since its counters were opened, or between two moments; `None`: not counted here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorCounts {
    /// Instructions that were carried out in user mode.
    pub instructions: Option<u64>,
    /// Cycles in user mode.
    pub cycles: Option<u64>,
    /// Misses of the last-level cache.
    pub cache_misses: Option<u64>,
    /// Loads that missed the data TLB.
    pub tlb_misses: Option<u64>,
}

impl ProcessorCounts {
    /// Counter by counter, what both have.
    fn each(self, other: ProcessorCounts, of: fn(u64, u64) -> u64) -> ProcessorCounts {
        let both = |a: Option<u64>, b: Option<u64>| Some(of(a?, b?));
        ProcessorCounts {
            instructions: both(self.instructions, other.instructions),
            cycles: both(self.cycles, other.cycles),
            cache_misses: both(self.cache_misses, other.cache_misses),
            tlb_misses: both(self.tlb_misses, other.tlb_misses),
        }
    }

    /// The counts since `before`.
    pub fn since(self, before: ProcessorCounts) -> ProcessorCounts {
        self.each(before, u64::saturating_sub)
    }

    /// The counts in this time and in `later`.
    pub fn followed_by(self, later: ProcessorCounts) -> ProcessorCounts {
        self.each(later, u64::saturating_add)
    }
}

/// Names, and the kernel's type and number of each event.
const EVENTS: [(&str, u32, u64); 4] = [
    ("instructions", HARDWARE, 1),
    ("cycles", HARDWARE, 0),
    ("cache misses", HARDWARE, 3),
    // Data TLB (3), loads (0), misses (1).
    ("TLB misses", HARDWARE_CACHE, 3 | (1 << 16)),
];
const HARDWARE: u32 = 0;
const HARDWARE_CACHE: u32 = 3;

static COUNTERS: OnceLock<[Result<File, String>; 4]> = OnceLock::new();

/// Opens the counters of this process, for threads that begin from here on. Those that are not to be had stay `None`.
pub fn start() {
    COUNTERS.get_or_init(|| EVENTS.map(|(_, kind, config)| open(kind, config)));
}

/// Names of the counters that are not to be had here, each with the kernel's reason. Opens them for a moment only.
pub fn missing() -> Vec<(&'static str, String)> {
    EVENTS.iter().filter_map(|(name, kind, config)| Some((*name, open(*kind, *config).err()?))).collect()
}

/// The counts so far; nothing before [`start`].
pub fn read() -> ProcessorCounts {
    let Some(counters) = COUNTERS.get() else { return ProcessorCounts::default() };
    let [instructions, cycles, cache_misses, tlb_misses] =
        counters.each_ref().map(|counter| value(counter.as_ref().ok()?));
    ProcessorCounts { instructions, cycles, cache_misses, tlb_misses }
}

/// A counter's value, as if it had been on the processor all the time: where there are more than it has room for, they take turns.
fn value(mut counter: &File) -> Option<u64> {
    let mut bytes = [0; 24];
    counter.read_exact(&mut bytes).ok()?;
    let number =
        |place: usize| u64::from_ne_bytes(bytes[8 * place..8 * place + 8].try_into().expect("eight bytes"));
    let (count, enabled, running) = (number(0), number(1), number(2));
    match running {
        0 if enabled > 0 => None,
        0 => Some(0),
        _ => Some((count as f64 * enabled as f64 / running as f64) as u64),
    }
}

/// The kernel's description of an event, in its first published size.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint: u32,
    config_1: u64,
}

#[allow(unsafe_code, reason = "there is no safe call for it")]
fn open(kind: u32, config: u64) -> Result<File, String> {
    const INHERIT: u64 = 1 << 1;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    /// Times enabled and running are read beside the value.
    const TIMES: u64 = 3;
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        read_format: TIMES,
        flags: INHERIT | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        ..Attributes::default()
    };
    // SAFETY: the kernel reads as many bytes as the structure says it has, and it lives through the call; 0 and -1 are this
    // process on any processor, -1 no group.
    let descriptor =
        unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attributes, 0, -1, -1, CLOSE_ON_EXEC) };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error().to_string());
    }
    // SAFETY: the kernel just made this descriptor, and nobody else has it.
    Ok(unsafe { File::from_raw_fd(descriptor as libc::c_int) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_grows_with_work_and_what_is_not_has_a_reason() {
        start();
        let missing = missing();
        assert!(missing.iter().all(|(_, why)| !why.is_empty()), "{missing:?}");
        let before = read();
        let sum = std::thread::spawn(|| {
            (0..3_000_000u64).fold(0, |sum, number| std::hint::black_box(sum ^ number))
        });
        sum.join().unwrap();
        let done = read().since(before);
        let is_missing = |name: &str| missing.iter().any(|(other, _)| *other == name);
        assert_eq!(done.instructions.is_none(), is_missing("instructions"), "{done:?} {missing:?}");
        assert!(done.instructions.is_none_or(|count| count > 3_000_000), "threads count: {done:?}");
    }

    #[test]
    fn counts_are_taken_apart_and_put_together_one_by_one() {
        let counts =
            |instructions, cycles| ProcessorCounts { instructions, cycles, ..ProcessorCounts::default() };
        assert_eq!(counts(Some(7), None).since(counts(Some(5), Some(1))), counts(Some(2), None));
        assert_eq!(counts(Some(7), Some(1)).followed_by(counts(Some(5), Some(1))), counts(Some(12), Some(2)));
    }

    #[test]
    fn the_description_has_the_size_that_the_kernel_knows() {
        assert_eq!(size_of::<Attributes>(), 64);
    }
}
