//! One reading: a number for each row of [`SERIES`], from the files of the kernel.

use std::collections::BTreeMap;

/// How the numbers of a series are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Grows; differences mean something.
    Counter,
    /// Is what it is at the moment.
    Level,
}

/// One series.
#[derive(Clone, Copy, Debug)]
pub struct SeriesRow {
    /// Name in the store.
    pub name: &'static str,
    /// How to read it.
    pub kind: Kind,
    /// Unit of the numbers.
    pub unit: &'static str,
}

const fn counter(name: &'static str, unit: &'static str) -> SeriesRow {
    SeriesRow { name, kind: Kind::Counter, unit }
}

const fn level(name: &'static str, unit: &'static str) -> SeriesRow {
    SeriesRow { name, kind: Kind::Level, unit }
}

/// Everything that is sampled.
pub const SERIES: &[SeriesRow] = &[
    counter("cpu.user", "ticks"),
    counter("cpu.system", "ticks"),
    counter("cpu.idle", "ticks"),
    counter("cpu.wait", "ticks"),
    counter("cpu.steal", "ticks"),
    counter("context_switches", "1"),
    counter("interrupts", "1"),
    level("running", "threads"),
    level("blocked", "threads"),
    counter("device.reads", "1"),
    counter("device.read_merges", "1"),
    counter("device.read_sectors", "512 B"),
    counter("device.read_ms", "ms"),
    counter("device.writes", "1"),
    counter("device.write_merges", "1"),
    counter("device.write_sectors", "512 B"),
    counter("device.write_ms", "ms"),
    level("device.in_flight", "1"),
    counter("device.busy_ms", "ms"),
    counter("device.weighted_ms", "ms"),
    counter("device.discards", "1"),
    counter("device.flushes", "1"),
    counter("vm.pgfault", "1"),
    counter("vm.pgmajfault", "1"),
    counter("vm.pswpin", "pages"),
    counter("vm.pswpout", "pages"),
    counter("vm.pgsteal_direct", "pages"),
    counter("vm.thp_fault_alloc", "1"),
    level("memory.free", "kB"),
    level("memory.cached", "kB"),
    level("memory.dirty", "kB"),
    level("memory.writeback", "kB"),
    counter("pressure.cpu", "us"),
    counter("pressure.io", "us"),
    counter("pressure.memory", "us"),
    counter("process.user", "ticks"),
    counter("process.system", "ticks"),
    counter("process.minor_faults", "1"),
    counter("process.major_faults", "1"),
    level("process.threads", "threads"),
    level("process.rss", "kB"),
    counter("process.read_bytes", "B"),
    counter("process.write_bytes", "B"),
    counter("process.read_calls", "1"),
    counter("process.write_calls", "1"),
    counter("cgroup.throttled", "1"),
    level("cpu.mhz", "MHz"),
];

/// What stands for "not known".
pub const ABSENT: i64 = i64::MIN;

/// Place of a series in a reading.
pub fn series_index(name: &str) -> Option<usize> {
    SERIES.iter().position(|row| row.name == name)
}

/// Ticks of `/proc` per second: what Linux shows to programs on every machine.
pub const TICKS_PER_SECOND: f64 = 100.0;

/// Numbers by name.
pub type Numbers = BTreeMap<&'static str, i64>;

fn text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Reads everything; `device` is a name such as `sda`, `process` the child's number.
pub fn read(device: &str, process: Option<u32>) -> Vec<i64> {
    let mut numbers = Numbers::new();
    parse_stat(&text("/proc/stat"), &mut numbers);
    if !device.is_empty() {
        parse_device(&text(&format!("/sys/block/{device}/stat")), &mut numbers);
    }
    parse_named(&text("/proc/vmstat"), VM, &mut numbers);
    parse_named(&text("/proc/meminfo"), MEMORY, &mut numbers);
    for (file, name) in PRESSURE {
        parse_pressure(&text(file), name, &mut numbers);
    }
    parse_named(&text("/sys/fs/cgroup/cpu.stat"), &[("nr_throttled", "cgroup.throttled")], &mut numbers);
    let khz = text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq").trim().parse::<i64>();
    khz.into_iter().for_each(|khz| _ = numbers.insert("cpu.mhz", khz / 1000));
    if let Some(id) = process {
        parse_process(&text(&format!("/proc/{id}/stat")), &mut numbers);
        parse_named(&text(&format!("/proc/{id}/io")), PROCESS_IO, &mut numbers);
    }
    SERIES.iter().map(|row| numbers.get(row.name).copied().unwrap_or(ABSENT)).collect()
}

const VM: &[(&str, &str)] = &[
    ("pgfault", "vm.pgfault"),
    ("pgmajfault", "vm.pgmajfault"),
    ("pswpin", "vm.pswpin"),
    ("pswpout", "vm.pswpout"),
    ("pgsteal_direct", "vm.pgsteal_direct"),
    ("thp_fault_alloc", "vm.thp_fault_alloc"),
];
const MEMORY: &[(&str, &str)] = &[
    ("MemFree:", "memory.free"),
    ("Cached:", "memory.cached"),
    ("Dirty:", "memory.dirty"),
    ("Writeback:", "memory.writeback"),
];
const PROCESS_IO: &[(&str, &str)] = &[
    ("read_bytes:", "process.read_bytes"),
    ("write_bytes:", "process.write_bytes"),
    ("syscr:", "process.read_calls"),
    ("syscw:", "process.write_calls"),
];
const PRESSURE: [(&str, &str); 3] = [
    ("/proc/pressure/cpu", "pressure.cpu"),
    ("/proc/pressure/io", "pressure.io"),
    ("/proc/pressure/memory", "pressure.memory"),
];

/// Lines of a name and a number.
fn parse_named(text: &str, wanted: &[(&str, &'static str)], numbers: &mut Numbers) {
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        if let Some((_, ours)) = wanted.iter().find(|(theirs, _)| *theirs == name)
            && let Some(number) = words.next().and_then(|word| word.parse().ok())
        {
            numbers.insert(ours, number);
        }
    }
}

fn parse_stat(text: &str, numbers: &mut Numbers) {
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let fields: Vec<i64> = words.map_while(|word| word.parse().ok()).collect();
        let at = |index: usize| fields.get(index).copied().unwrap_or(0);
        match name {
            // user nice system idle iowait irq softirq steal
            "cpu" => {
                numbers.insert("cpu.user", at(0) + at(1));
                numbers.insert("cpu.system", at(2) + at(5) + at(6));
                numbers.insert("cpu.idle", at(3));
                numbers.insert("cpu.wait", at(4));
                numbers.insert("cpu.steal", at(7));
            }
            "ctxt" => _ = numbers.insert("context_switches", at(0)),
            "intr" => _ = numbers.insert("interrupts", at(0)),
            "procs_running" => _ = numbers.insert("running", at(0)),
            "procs_blocked" => _ = numbers.insert("blocked", at(0)),
            _ => {}
        }
    }
}

/// Source: Linux `Documentation/block/stat.rst`.
fn parse_device(text: &str, numbers: &mut Numbers) {
    const FIELDS: [&str; 17] = [
        "device.reads",
        "device.read_merges",
        "device.read_sectors",
        "device.read_ms",
        "device.writes",
        "device.write_merges",
        "device.write_sectors",
        "device.write_ms",
        "device.in_flight",
        "device.busy_ms",
        "device.weighted_ms",
        "device.discards",
        "",
        "",
        "",
        "device.flushes",
        "",
    ];
    let words = text.split_whitespace().map_while(|word| word.parse().ok());
    for (name, number) in FIELDS.into_iter().zip(words).filter(|(name, _)| !name.is_empty()) {
        numbers.insert(name, number);
    }
}

/// The total of the line "some", in microseconds.
fn parse_pressure(text: &str, name: &'static str, numbers: &mut Numbers) {
    let some = text.lines().find(|line| line.starts_with("some"));
    let total =
        some.and_then(|line| line.rsplit_once("total=")).and_then(|(_, rest)| rest.trim().parse().ok());
    if let Some(total) = total {
        numbers.insert(name, total);
    }
}

fn parse_process(text: &str, numbers: &mut Numbers) {
    // The program's name is in parentheses and may hold spaces.
    let Some((_, rest)) = text.rsplit_once(')') else { return };
    let fields: Vec<i64> = rest.split_whitespace().skip(1).map(|word| word.parse().unwrap_or(0)).collect();
    // Numbered from ppid, the fourth field of the line.
    let wanted = [
        (6, "process.minor_faults"),
        (8, "process.major_faults"),
        (10, "process.user"),
        (11, "process.system"),
        (16, "process.threads"),
    ];
    for (index, name) in wanted {
        fields.get(index).into_iter().for_each(|number| _ = numbers.insert(name, *number));
    }
    if let Some(pages) = fields.get(20) {
        numbers.insert("process.rss", pages * 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_and_switches_are_read_by_name() {
        let mut numbers = Numbers::new();
        let text = "cpu  10 1 20 300 4 2 3 5 0 0\ncpu0 1 1 1 1\nintr 77 0 0\nctxt 99\nprocs_running 2\n";
        parse_stat(text, &mut numbers);
        assert_eq!((numbers["cpu.user"], numbers["cpu.system"], numbers["cpu.steal"]), (11, 25, 5));
        assert_eq!((numbers["context_switches"], numbers["interrupts"], numbers["running"]), (99, 77, 2));
    }

    #[test]
    fn devices_of_old_kernels_have_fewer_fields() {
        let mut numbers = Numbers::new();
        parse_device("1 2 3 4 5 6 7 8 9 10 11\n", &mut numbers);
        assert_eq!(
            (numbers["device.reads"], numbers["device.write_sectors"], numbers["device.weighted_ms"]),
            (1, 7, 11)
        );
        assert!(!numbers.contains_key("device.flushes"));
        parse_device("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n", &mut numbers);
        assert_eq!((numbers["device.discards"], numbers["device.flushes"]), (12, 16));
    }

    #[test]
    fn a_process_with_spaces_in_its_name_is_read() {
        let mut numbers = Numbers::new();
        let text = "5 (a b) c) S 1 2 3 4 5 6 70 8 90 10 110 120 13 14 15 16 17 18 190000 210 22";
        parse_process(text, &mut numbers);
        assert_eq!((numbers["process.minor_faults"], numbers["process.major_faults"]), (70, 90));
        assert_eq!((numbers["process.user"], numbers["process.system"]), (110, 120));
        assert_eq!((numbers["process.threads"], numbers["process.rss"]), (17, 88));
    }

    #[test]
    fn pressure_and_named_lines_survive_what_is_missing() {
        let mut numbers = Numbers::new();
        parse_pressure(
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=123\nfull total=9\n",
            "pressure.io",
            &mut numbers,
        );
        parse_pressure("", "pressure.cpu", &mut numbers);
        parse_named("pgfault 7\npgfault_x 8\npgmajfault\n", VM, &mut numbers);
        assert_eq!(numbers, Numbers::from([("pressure.io", 123), ("vm.pgfault", 7)]));
    }

    #[test]
    fn this_process_is_seen() {
        let reading = read("", Some(std::process::id()));
        assert!(reading[series_index("process.rss").unwrap()] > 0);
        assert_eq!(reading.len(), SERIES.len());
    }
}
