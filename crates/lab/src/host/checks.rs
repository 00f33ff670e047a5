//! How the machine is set up, what was wanted, why, and what would change it. One function per setting.
//!
//! Settings that a machine does not have, or that its hypervisor decides, are notes: they are recorded and
//! nobody can mend them.

use super::facts::{Facts, Root};
use serde::{Deserialize, Serialize};

/// Whether a setting is as wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As wanted.
    Pass,
    /// Recorded; nothing is wanted, or nothing can be done.
    Note,
    /// Costs precision.
    Warn,
    /// Makes numbers wrong.
    Fail,
}

impl Status {
    /// Four letters.
    pub fn word(self) -> &'static str {
        match self {
            Status::Pass => "ok  ",
            Status::Note => "note",
            Status::Warn => "warn",
            Status::Fail => "FAIL",
        }
    }
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What it is called.
    pub name: String,
    /// What it is.
    pub value: String,
    /// What it should be.
    pub wanted: String,
    /// Whether it is.
    pub status: Status,
    /// Why it matters.
    pub why: String,
    /// The command that would change it; empty if there is none.
    pub fix: String,
}

/// Cells of the table are at most this long.
const CELL: usize = 24;

fn checked(
    name: &str,
    value: impl Into<String>,
    wanted: &str,
    status: Status,
    why: &str,
    fix: &str,
) -> Check {
    let mut value: String = value.into();
    if value.chars().count() > CELL {
        value = value.chars().take(CELL - 1).chain(['~']).collect();
    }
    let [name, wanted, why, fix] = [name, wanted, why, fix].map(str::to_string);
    Check { name, value, wanted, status, why, fix }
}

/// Looks at every setting.
pub fn check(root: &Root, facts: &Facts) -> Vec<Check> {
    let mut checks = processor(root, facts);
    checks.extend(memory(root));
    checks.extend(device(root, facts));
    checks.extend(load(root));
    checks
}

/// Value, or "not known" as a note.
fn expect(
    name: &str,
    value: Option<String>,
    wanted: &str,
    good: impl Fn(&str) -> bool,
    bad: Status,
    why_fix: (&str, &str),
) -> Check {
    match value {
        None => checked(name, "not known", wanted, Status::Note, why_fix.0, ""),
        Some(value) => {
            let status = if good(&value) { Status::Pass } else { bad };
            checked(name, value, wanted, status, why_fix.0, why_fix.1)
        }
    }
}

fn processor(root: &Root, facts: &Facts) -> Vec<Check> {
    let cpufreq = "/sys/devices/system/cpu/cpu0/cpufreq";
    // The two drivers say it in opposite words.
    let boost = root.text("/sys/devices/system/cpu/cpufreq/boost").or_else(|| {
        let off = root.text("/sys/devices/system/cpu/intel_pstate/no_turbo")?;
        Some(if off == "1" { "0" } else { "1" }.to_string())
    });
    let clock = root.text("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let clock_status = if clock.as_deref() == Some("hpet") { Status::Fail } else { Status::Warn };
    let governor = root.text(&format!("{cpufreq}/scaling_governor"));
    let deep = root
        .names("/sys/devices/system/cpu/cpu0/cpuidle")
        .iter()
        .filter(|state| {
            root.number(&format!("/sys/devices/system/cpu/cpu0/cpuidle/{state}/disable")) == Some(0.0)
        })
        .count();
    let mut checks = vec![
        expect(
            "smt",
            root.text("/sys/devices/system/cpu/smt/active"),
            "0",
            |value| value == "0",
            Status::Warn,
            (
                "two threads of one core slow each other by what the scheduler happens to pair",
                "echo off > /sys/devices/system/cpu/smt/control",
            ),
        ),
        expect(
            "boost",
            boost,
            "0",
            |value| value == "0",
            Status::Warn,
            (
                "clock rates that follow heat make the first minutes faster than the rest",
                "echo 0 > /sys/devices/system/cpu/cpufreq/boost (or intel_pstate/no_turbo: 1)",
            ),
        ),
        expect(
            "governor",
            governor,
            "performance",
            |value| value == "performance",
            Status::Warn,
            ("other governors slow the clock in pauses", "cpupower frequency-set -g performance"),
        ),
        expect(
            "clocksource",
            clock,
            "tsc",
            |value| matches!(value, "tsc" | "kvm-clock" | "arch_sys_counter"),
            clock_status,
            ("reading a slow clock can take half of the processor", "boot with clocksource=tsc tsc=reliable"),
        ),
        checked(
            "idle states",
            if deep == 0 { "none or not known".into() } else { format!("{deep} enabled") },
            "recorded",
            Status::Note,
            "deep states add wake-up time to waits",
            "",
        ),
    ];
    if facts.virtual_machine {
        checks.push(checked(
            "hypervisor",
            "present",
            "none",
            Status::Note,
            "neighbours on the same machine show up as noise; see steal below",
            "",
        ));
    }
    if gives_free_pages_back(root) {
        checks.push(checked(
            "free page reporting",
            "on",
            "off",
            Status::Warn,
            "the host takes free pages back within seconds: growing memory then costs milliseconds a megabyte",
            "start the virtual machine without a balloon that reports free pages",
        ));
    }
    checks
}

/// Whether a balloon device tells the host which pages are free (feature bit 5 of virtio-balloon).
pub(super) fn gives_free_pages_back(root: &Root) -> bool {
    let driver = "/sys/bus/virtio/drivers/virtio_balloon";
    let reports = |device: &String| {
        let features = root.text(&format!("{driver}/{device}/features"));
        features.is_some_and(|bits| bits.as_bytes().get(5) == Some(&b'1'))
    };
    root.names(driver).iter().any(reports)
}

/// The chosen word of a file like `always [madvise] never`.
fn chosen(text: &str) -> String {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or_else(|| text.to_string(), |(word, _)| word.to_string())
}

fn memory(root: &Root) -> Vec<Check> {
    let huge = root.text("/sys/kernel/mm/transparent_hugepage/enabled").map(|text| chosen(&text));
    let vm = |name: &str| root.text(&format!("/proc/sys/vm/{name}"));
    let swap = root.text("/proc/swaps").map(|text| text.lines().count().saturating_sub(1).to_string());
    vec![
        expect(
            "huge pages",
            huge,
            "one value for all",
            |_| true,
            Status::Warn,
            ("worth several per cent either way; the same for all targets of a machine", ""),
        ),
        expect(
            "swappiness",
            vm("swappiness"),
            "at most 10",
            |value| value.parse::<u32>().is_ok_and(|number| number <= 10),
            Status::Warn,
            ("swapping the cache out turns hits into reads", "sysctl vm.swappiness=1"),
        ),
        expect(
            "swap areas",
            swap,
            "0",
            |value| value == "0",
            Status::Note,
            ("swapping the cache out turns hits into reads", "swapoff -a"),
        ),
        checked(
            "dirty limits",
            format!(
                "{} / {} %",
                vm("dirty_background_ratio").unwrap_or_else(|| "?".into()),
                vm("dirty_ratio").unwrap_or_else(|| "?".into())
            ),
            "recorded",
            Status::Note,
            "decide when buffered writes are written back",
            "",
        ),
    ]
}

fn device(root: &Root, facts: &Facts) -> Vec<Check> {
    let queue = |name: &str| {
        let path = format!("/sys/block/{}/queue/{name}", facts.device);
        if facts.device.is_empty() { None } else { root.text(&path) }
    };
    let scheduler = queue("scheduler").map(|text| chosen(&text));
    let (read_ahead, largest) = (queue("read_ahead_kb"), queue("max_sectors_kb"));
    let device = &facts.device;
    let used = 100.0 - facts.disk_free_bytes as f64 * 100.0 / facts.disk_bytes.max(1) as f64;
    vec![
        expect(
            "file system",
            Some(facts.filesystem.clone()).filter(|name| !name.is_empty()),
            "xfs or ext4",
            |value| matches!(value, "xfs" | "ext4"),
            Status::Warn,
            ("others measure themselves: copies on write, compression, layers", "put --data on xfs or ext4"),
        ),
        checked(
            "mount options",
            facts.mount_options.clone(),
            "noatime",
            if facts.mount_options.contains("noatime") { Status::Pass } else { Status::Note },
            "access times turn reads into writes; discard is recorded",
            "mount -o remount,noatime",
        ),
        expect(
            "io scheduler",
            scheduler,
            "none",
            |value| value == "none",
            Status::Warn,
            (
                "a queue in front of a fast device costs processor time",
                &format!("echo none > /sys/block/{device}/queue/scheduler"),
            ),
        ),
        checked(
            "read-ahead, largest IO",
            format!(
                "{} / {} kB",
                read_ahead.clone().unwrap_or_else(|| "?".into()),
                largest.clone().unwrap_or_else(|| "?".into())
            ),
            "ahead <= largest",
            match (
                read_ahead.and_then(|n| n.parse::<u64>().ok()),
                largest.and_then(|n| n.parse::<u64>().ok()),
            ) {
                (Some(ahead), Some(largest)) if ahead > largest => Status::Warn,
                (Some(_), Some(_)) => Status::Pass,
                _ => Status::Note,
            },
            "read-ahead beyond the largest request is split and slows compaction",
            &format!("echo 128 > /sys/block/{device}/queue/read_ahead_kb"),
        ),
        checked(
            "space used",
            format!("{used:.0} % of {} GB", facts.disk_bytes >> 30),
            "below 90 %",
            if used < 90.0 { Status::Pass } else { Status::Warn },
            "full file systems and devices slow down",
            "free space, or another --data",
        ),
    ]
}

fn load(root: &Root) -> Vec<Check> {
    let average = root.text("/proc/loadavg").and_then(|text| text.split(' ').next().map(str::to_string));
    let steal = root.text("/proc/stat").and_then(|text| {
        let fields: Vec<f64> = text.lines().next()?.split_whitespace().skip(1).flat_map(str::parse).collect();
        Some(format!("{:.2} %", fields.get(7)? * 100.0 / fields.iter().sum::<f64>().max(1.0)))
    });
    vec![
        expect(
            "other load",
            average,
            "below 0.2",
            |value| value.parse::<f64>().is_ok_and(|number| number < 0.2),
            Status::Warn,
            ("other programs take turns with the measured one", "stop them; wait until the load is gone"),
        ),
        expect(
            "steal since boot",
            steal,
            "0",
            |value| value.starts_with("0.0"),
            Status::Warn,
            ("time the hypervisor gave to others", "use a machine of your own"),
        ),
        expect(
            "perf events",
            root.text("/proc/sys/kernel/perf_event_paranoid"),
            "-1 for profiles",
            |_| true,
            Status::Note,
            ("decides whether profiles can be taken", ""),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let temp = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = temp.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root(temp.path().to_path_buf());
        (temp, root)
    }

    fn status(checks: &[Check], name: &str) -> Status {
        checks.iter().find(|check| check.name == name).unwrap_or_else(|| panic!("{name}")).status
    }

    #[test]
    fn a_machine_set_up_for_measuring_passes() {
        let (_temp, root) = machine(&[
            ("sys/devices/system/cpu/smt/active", "0\n"),
            ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
            ("sys/block/sda/queue/scheduler", "[none] mq-deadline\n"),
            ("proc/sys/vm/swappiness", "1\n"),
            ("proc/loadavg", "0.05 0.1 0.1 1/100 5\n"),
        ]);
        let facts = Facts { device: "sda".into(), filesystem: "xfs".into(), ..Facts::default() };
        let checks = check(&root, &facts);
        for name in [
            "smt",
            "boost",
            "governor",
            "clocksource",
            "io scheduler",
            "swappiness",
            "other load",
            "file system",
        ] {
            assert_eq!(status(&checks, name), Status::Pass, "{name}");
        }
    }

    #[test]
    fn hpet_fails_and_a_missing_file_is_only_noted() {
        let (_temp, root) =
            machine(&[("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet")]);
        let checks = check(&root, &Facts::default());
        assert_eq!(status(&checks, "clocksource"), Status::Fail);
        assert_eq!(status(&checks, "smt"), Status::Note);
        let clock = checks.iter().find(|check| check.name == "clocksource").unwrap();
        assert!(clock.fix.contains("tsc") && !clock.why.is_empty());
    }

    #[test]
    fn a_balloon_that_gives_free_pages_back_is_named() {
        let features = "sys/bus/virtio/drivers/virtio_balloon/virtio0/features";
        let facts = Facts { virtual_machine: true, ..Facts::default() };
        let (_temp, root) = machine(&[(features, "011001010000\n")]);
        assert_eq!(status(&check(&root, &facts), "free page reporting"), Status::Warn);
        let (_temp, root) = machine(&[(features, "011000010000\n")]);
        assert!(!check(&root, &facts).iter().any(|check| check.name == "free page reporting"));
    }

    #[test]
    fn the_chosen_word_is_the_one_in_brackets() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("none"), "none");
    }
}
