//! One reading: a number for each row of [`SERIES`], from the files of the kernel.

use rustix::param::page_size;
use std::collections::BTreeMap;
use std::sync::LazyLock;

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

/// Everything that is sampled: `COMMON`, and the busy time of each processor.
pub static SERIES: LazyLock<Vec<SeriesRow>> = LazyLock::new(|| {
    let processors = (0..processors()).map(|number| counter(format!("cpu{number}.busy").leak(), "ticks"));
    COMMON.iter().copied().chain(processors).collect()
});

/// Processors that the kernel has, whether or not this process may use them.
pub fn processors() -> usize {
    static COUNT: LazyLock<usize> = LazyLock::new(|| {
        text("/proc/stat").lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count()
    });
    *COUNT
}

/// The series that every machine has.
const COMMON: &[SeriesRow] = &[
    counter("cpu.user", "ticks"),
    counter("cpu.system", "ticks"),
    counter("cpu.idle", "ticks"),
    counter("cpu.wait", "ticks"),
    counter("cpu.steal", "ticks"),
    counter("context_switches", "1"),
    counter("interrupts", "1"),
    counter("forks", "1"),
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
    counter("device.discard_sectors", "512 B"),
    counter("device.discard_ms", "ms"),
    counter("device.flushes", "1"),
    counter("device.flush_ms", "ms"),
    counter("member.reads", "1"),
    counter("member.read_sectors", "512 B"),
    counter("member.writes", "1"),
    counter("member.write_sectors", "512 B"),
    counter("vm.pgpgin", "KB"),
    counter("vm.pgpgout", "KB"),
    counter("vm.pgfault", "1"),
    counter("vm.pgmajfault", "1"),
    counter("vm.pswpin", "pages"),
    counter("vm.pswpout", "pages"),
    counter("vm.pgsteal_direct", "pages"),
    counter("vm.allocstall", "1"),
    counter("vm.compact_stall", "1"),
    counter("vm.thp_fault_alloc", "1"),
    level("memory.free", "kB"),
    level("memory.cached", "kB"),
    level("memory.dirty", "kB"),
    level("memory.writeback", "kB"),
    level("memory.huge", "kB"),
    counter("pressure.cpu", "us"),
    counter("pressure.cpu_full", "us"),
    counter("pressure.io", "us"),
    counter("pressure.io_full", "us"),
    counter("pressure.memory", "us"),
    counter("pressure.memory_full", "us"),
    counter("process.user", "ticks"),
    counter("process.system", "ticks"),
    counter("process.minor_faults", "1"),
    counter("process.major_faults", "1"),
    level("process.threads", "threads"),
    level("process.rss", "kB"),
    level("process.vsz", "kB"),
    counter("process.read_bytes", "B"),
    counter("process.write_bytes", "B"),
    counter("process.cancelled_bytes", "B"),
    counter("process.read_calls", "1"),
    counter("process.write_calls", "1"),
    counter("cgroup.throttled", "1"),
    counter("cgroup.memory_limit", "1"),
    counter("cgroup.read_bytes", "B"),
    counter("cgroup.write_bytes", "B"),
    counter("loopback.bytes", "B"),
    level("cpu.mhz", "MHz"),
    level("cpu.mhz_least", "MHz"),
    level("cpu.mhz_most", "MHz"),
    level("temperature", "m°C"),
    counter("thermal_throttles", "1"),
];

/// The number in place of a value that is not known.
pub const ABSENT: i64 = i64::MIN;

/// Place of a series in a reading.
pub fn series_index(name: &str) -> Option<usize> {
    SERIES.iter().position(|row| row.name == name)
}

/// Ticks of `/proc` per second: what Linux shows to programs on every machine.
pub const TICKS_PER_SECOND: f64 = 100.0;

/// Numbers by name.
type Numbers = BTreeMap<&'static str, i64>;

fn text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Reads everything; `device` is a name such as `sda`, `process` the child's number.
pub fn read(device: &str, process: Option<u32>) -> Vec<i64> {
    let mut numbers = Numbers::new();
    let mut busy = vec![ABSENT; processors()];
    parse_stat(&text("/proc/stat"), &mut numbers, &mut busy);
    if !device.is_empty() {
        parse_device(&text(&format!("/sys/block/{device}/stat")), &mut numbers);
        read_members(&format!("/sys/block/{device}/slaves"), &mut numbers);
    }
    parse_vmstat(&text("/proc/vmstat"), &mut numbers);
    parse_named(&text("/proc/meminfo"), MEMORY, &mut numbers);
    for (file, some, full) in PRESSURE {
        parse_pressure(&text(file), some, full, &mut numbers);
    }
    parse_named(&text("/sys/fs/cgroup/cpu.stat"), &[("nr_throttled", "cgroup.throttled")], &mut numbers);
    parse_named(&text("/sys/fs/cgroup/memory.events"), &[("max", "cgroup.memory_limit")], &mut numbers);
    parse_cgroup_io(&text("/sys/fs/cgroup/io.stat"), &mut numbers);
    parse_loopback(&text("/proc/net/dev"), &mut numbers);
    read_clocks(&mut numbers);
    if let Some(id) = process {
        parse_process(&text(&format!("/proc/{id}/stat")), &mut numbers);
        parse_named(&text(&format!("/proc/{id}/io")), PROCESS_IO, &mut numbers);
    }
    let common = COMMON.iter().map(|row| numbers.get(row.name).copied().unwrap_or(ABSENT));
    common.chain(busy).collect()
}

const VM: &[(&str, &str)] = &[
    ("pgpgin", "vm.pgpgin"),
    ("pgpgout", "vm.pgpgout"),
    ("compact_stall", "vm.compact_stall"),
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
    ("AnonHugePages:", "memory.huge"),
];
const PROCESS_IO: &[(&str, &str)] = &[
    ("read_bytes:", "process.read_bytes"),
    ("write_bytes:", "process.write_bytes"),
    ("cancelled_write_bytes:", "process.cancelled_bytes"),
    ("syscr:", "process.read_calls"),
    ("syscw:", "process.write_calls"),
];
const PRESSURE: [(&str, &str, &str); 3] = [
    ("/proc/pressure/cpu", "pressure.cpu", "pressure.cpu_full"),
    ("/proc/pressure/io", "pressure.io", "pressure.io_full"),
    ("/proc/pressure/memory", "pressure.memory", "pressure.memory_full"),
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

/// Direct reclaim is counted by zone.
fn parse_vmstat(text: &str, numbers: &mut Numbers) {
    parse_named(text, VM, numbers);
    let zones = text.lines().filter(|line| line.starts_with("allocstall_"));
    let counts: Vec<i64> = zones.filter_map(|line| line.split_whitespace().nth(1)?.parse().ok()).collect();
    if !counts.is_empty() {
        numbers.insert("vm.allocstall", counts.iter().sum());
    }
}

/// Totals, and into `busy` the time of each processor that was not idle.
fn parse_stat(text: &str, numbers: &mut Numbers, busy: &mut [i64]) {
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
            name if name.starts_with("cpu") => {
                let number = name[3..].parse().unwrap_or(usize::MAX);
                if let Some(place) = busy.get_mut(number) {
                    *place = at(0) + at(1) + at(2) + at(5) + at(6);
                }
            }
            "ctxt" => _ = numbers.insert("context_switches", at(0)),
            "intr" => _ = numbers.insert("interrupts", at(0)),
            "processes" => _ = numbers.insert("forks", at(0)),
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
        "device.discard_sectors",
        "device.discard_ms",
        "device.flushes",
        "device.flush_ms",
    ];
    let words = text.split_whitespace().map_while(|word| word.parse().ok());
    for (name, number) in FIELDS.into_iter().zip(words).filter(|(name, _)| !name.is_empty()) {
        numbers.insert(name, number);
    }
}

/// The devices that a stacked one (md, dm) is made of, together: what they do beyond it is the stack's cost.
fn read_members(directory: &str, numbers: &mut Numbers) {
    const SUMS: [(&str, &str); 4] = [
        ("device.reads", "member.reads"),
        ("device.read_sectors", "member.read_sectors"),
        ("device.writes", "member.writes"),
        ("device.write_sectors", "member.write_sectors"),
    ];
    let members = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for member in members {
        let mut own = Numbers::new();
        parse_device(&std::fs::read_to_string(member.path().join("stat")).unwrap_or_default(), &mut own);
        for (name, sum) in SUMS {
            own.get(name).into_iter().for_each(|number| *numbers.entry(sum).or_default() += number);
        }
    }
}

/// The totals of the lines "some" and "full", in microseconds.
fn parse_pressure(text: &str, some: &'static str, full: &'static str, numbers: &mut Numbers) {
    for (start, name) in [("some", some), ("full", full)] {
        let line = text.lines().find(|line| line.starts_with(start));
        let total =
            line.and_then(|line| line.rsplit_once("total=")).and_then(|(_, rest)| rest.trim().parse().ok());
        if let Some(total) = total {
            numbers.insert(name, total);
        }
    }
}

/// Bytes over all devices: `8:0 rbytes=1 wbytes=2 rios=3 ...`.
fn parse_cgroup_io(text: &str, numbers: &mut Numbers) {
    for (key, name) in [("rbytes=", "cgroup.read_bytes"), ("wbytes=", "cgroup.write_bytes")] {
        let words = text.split_whitespace().filter_map(|word| word.strip_prefix(key)?.parse::<i64>().ok());
        if let Some(sum) = words.reduce(|sum, bytes| sum + bytes) {
            numbers.insert(name, sum);
        }
    }
}

/// Bytes that were sent over the loopback device: traffic to a server over TCP shows here, traffic over a
/// socket does not.
fn parse_loopback(text: &str, numbers: &mut Numbers) {
    let received = text.lines().find_map(|line| line.trim().strip_prefix("lo:")?.split_whitespace().next());
    if let Some(bytes) = received.and_then(|word| word.parse().ok()) {
        numbers.insert("loopback.bytes", bytes);
    }
}

/// Clock rates of all processors, the highest temperature of any sensor, and how often heat slowed a core.
fn read_clocks(numbers: &mut Numbers) {
    let number = |path: String| text(&path).trim().parse::<i64>().ok();
    let cpu = |index: usize| format!("/sys/devices/system/cpu/cpu{index}");
    let rates: Vec<i64> = (0..processors())
        .filter_map(|index| number(format!("{}/cpufreq/scaling_cur_freq", cpu(index))))
        .map(|kilohertz| kilohertz / 1000)
        .collect();
    if let (Some(least), Some(most)) = (rates.iter().min(), rates.iter().max()) {
        numbers.insert("cpu.mhz", rates.iter().sum::<i64>() / rates.len() as i64);
        numbers.insert("cpu.mhz_least", *least);
        numbers.insert("cpu.mhz_most", *most);
    }
    static SENSORS: LazyLock<Vec<String>> = LazyLock::new(sensors);
    if let Some(hottest) = SENSORS.iter().filter_map(|path| number(path.clone())).max() {
        numbers.insert("temperature", hottest);
    }
    let throttles = (0..processors())
        .filter_map(|index| number(format!("{}/thermal_throttle/core_throttle_count", cpu(index))));
    if let Some(sum) = throttles.reduce(|sum, count| sum + count) {
        numbers.insert("thermal_throttles", sum);
    }
}

/// Files of the machine's temperature sensors, NVMe devices' among them.
fn sensors() -> Vec<String> {
    let names = |path: &str| -> Vec<String> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    };
    let of_chip = |chip: String| {
        let directory = format!("/sys/class/hwmon/{chip}");
        let inputs = names(&directory).into_iter();
        inputs
            .filter(|name| name.starts_with("temp") && name.ends_with("_input"))
            .map(move |name| format!("{directory}/{name}"))
            .collect::<Vec<_>>()
    };
    names("/sys/class/hwmon").into_iter().flat_map(of_chip).collect()
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
    if let (Some(bytes), Some(pages)) = (fields.get(19), fields.get(20)) {
        numbers.insert("process.vsz", bytes / 1024);
        numbers.insert("process.rss", pages * (page_size() / 1024) as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_and_switches_are_read_by_name() {
        let mut numbers = Numbers::new();
        let text = "cpu  10 1 20 300 4 2 3 5 0 0\ncpu0 1 1 1 1\ncpu1 9 0 19 299 4 1 2 4 0 0\nintr 77 0 0\nctxt 99\n\
                    processes 8\nprocs_running 2\n";
        let mut busy = [ABSENT; 3];
        parse_stat(text, &mut numbers, &mut busy);
        assert_eq!((busy, numbers["forks"]), ([3, 31, ABSENT], 8));
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
        let names = [
            "device.discards",
            "device.discard_sectors",
            "device.discard_ms",
            "device.flushes",
            "device.flush_ms",
        ];
        assert_eq!(names.map(|name| numbers[name]), [12, 14, 15, 16, 17]);
    }

    #[test]
    fn a_process_with_spaces_in_its_name_is_read() {
        let mut numbers = Numbers::new();
        let text = "5 (a b) c) S 1 2 3 4 5 6 70 8 90 10 110 120 13 14 15 16 17 18 190000 210000 22";
        parse_process(text, &mut numbers);
        assert_eq!((numbers["process.minor_faults"], numbers["process.major_faults"]), (70, 90));
        assert_eq!((numbers["process.user"], numbers["process.system"]), (110, 120));
        let names = ["process.threads", "process.rss", "process.vsz"];
        assert_eq!(names.map(|name| numbers[name]), [17, 22 * (page_size() / 1024) as i64, 205]);
    }

    #[test]
    fn pressure_and_named_lines_survive_what_is_missing() {
        let mut numbers = Numbers::new();
        parse_pressure(
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=123\nfull total=9\n",
            "pressure.io",
            "pressure.io_full",
            &mut numbers,
        );
        parse_pressure("", "pressure.cpu", "pressure.cpu_full", &mut numbers);
        parse_vmstat("pgfault 7\npgfault_x 8\npgmajfault\n", &mut numbers);
        let known = [("pressure.io", 123), ("pressure.io_full", 9), ("vm.pgfault", 7)];
        assert_eq!(numbers, Numbers::from(known));
    }

    #[test]
    fn reclaim_is_summed_over_zones_control_groups_over_devices_and_only_the_loopback_counts() {
        let mut numbers = Numbers::new();
        parse_vmstat("allocstall_dma 1\nallocstall_normal 4\npgpgin 6\n", &mut numbers);
        parse_cgroup_io("8:0 rbytes=1 wbytes=20 rios=9\n9:0 rbytes=2 wbytes=30\n", &mut numbers);
        parse_cgroup_io("", &mut numbers);
        parse_loopback("Inter-|   Receive\n face |bytes\n  eth0: 5 5\n    lo: 77 1 0\n", &mut numbers);
        let known = [
            ("cgroup.read_bytes", 3),
            ("cgroup.write_bytes", 50),
            ("loopback.bytes", 77),
            ("vm.allocstall", 5),
            ("vm.pgpgin", 6),
        ];
        assert_eq!(numbers, Numbers::from(known));
    }

    #[test]
    fn members_of_a_stacked_device_are_summed() {
        let temp = tempfile::tempdir().unwrap();
        for (member, stat) in [("sda1", "1 0 8 0 2 0 16 0"), ("sdb1", "10 0 80 0 20 0 160 0")] {
            std::fs::create_dir(temp.path().join(member)).unwrap();
            std::fs::write(temp.path().join(member).join("stat"), stat).unwrap();
        }
        let mut numbers = Numbers::new();
        read_members(temp.path().to_str().unwrap(), &mut numbers);
        let names = ["member.reads", "member.read_sectors", "member.writes", "member.write_sectors"];
        assert_eq!(names.map(|name| numbers[name]), [11, 88, 22, 176]);
        let mut numbers = Numbers::new();
        read_members("/no/such/directory", &mut numbers);
        assert!(numbers.is_empty(), "a plain device has no members");
    }

    #[test]
    fn this_process_is_seen() {
        let reading = read("", Some(std::process::id()));
        assert!(reading[series_index("process.rss").unwrap()] > 0);
        assert_eq!(reading.len(), SERIES.len());
        assert!(reading[series_index("cpu0.busy").unwrap()] >= 0 && processors() > 0);
    }
}
