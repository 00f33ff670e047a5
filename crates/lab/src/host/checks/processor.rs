//! Processors: the causes by which their speed changes, or differs.

use super::{Check, Status, checked, expect, recorded};
use crate::host::facts::{Facts, Root};

pub(super) fn checks(root: &Root, facts: &Facts) -> Vec<Check> {
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
    checks.extend([
        frequencies(root),
        core_types(root),
        nodes(root),
        recorded(
            "mitigations",
            mitigations(root),
            "decide what entering the kernel costs; equal for all targets of a machine",
        ),
    ]);
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
pub(in crate::host) fn gives_free_pages_back(root: &Root) -> bool {
    let driver = "/sys/bus/virtio/drivers/virtio_balloon";
    let reports = |device: &String| {
        let features = root.text(&format!("{driver}/{device}/features"));
        features.is_some_and(|bits| bits.as_bytes().get(5) == Some(&b'1'))
    };
    root.names(driver).iter().any(reports)
}

/// Lowest and highest clock rate that the governor may choose.
fn frequencies(root: &Root) -> Check {
    let rate = |name: &str| root.number(&format!("/sys/devices/system/cpu/cpu0/cpufreq/{name}"));
    let (wanted, why) = ("lowest = highest", "a rate that may change does, with heat and load");
    match (rate("scaling_min_freq"), rate("scaling_max_freq")) {
        (Some(least), Some(most)) => {
            let status = if least == most { Status::Pass } else { Status::Note };
            let value = format!("{:.0} to {:.0} MHz", least / 1000.0, most / 1000.0);
            checked("clock rates", value, wanted, status, why, "cpupower frequency-set -d RATE -u RATE")
        }
        _ => checked("clock rates", "not known", wanted, Status::Note, why, ""),
    }
}

/// Cores of different speed: Intel's two kinds have a device each, others say their capacity.
fn core_types(root: &Root) -> Check {
    let cpus = "/sys/devices/system/cpu";
    let is_cpu = |name: &String| name.strip_prefix("cpu").is_some_and(|rest| rest.parse::<u32>().is_ok());
    let names = root.names(cpus).into_iter().filter(is_cpu);
    let mut capacities: Vec<String> =
        names.filter_map(|name| root.text(&format!("{cpus}/{name}/cpu_capacity"))).collect();
    capacities.sort();
    capacities.dedup();
    let intel = ["cpu_core", "cpu_atom"]
        .iter()
        .filter(|name| root.text(&format!("/sys/devices/{name}/cpus")).is_some());
    let kinds = capacities.len().max(intel.count()).max(1);
    checked(
        "kinds of cores",
        kinds.to_string(),
        "1",
        if kinds == 1 { Status::Pass } else { Status::Fail },
        "which kind a thread lands on decides its speed",
        "pin the run to one kind: taskset -c CPUS outcrop lab run ...",
    )
}

/// Nodes of memory; more than one are to be interleaved, or the run to be kept on one.
fn nodes(root: &Root) -> Check {
    let is_node = |name: &String| name.strip_prefix("node").is_some_and(|rest| rest.parse::<u32>().is_ok());
    let count = root.names("/sys/devices/system/node").iter().filter(|name| is_node(name)).count().max(1);
    let bound = root.text("/proc/self/numa_maps").is_some_and(|maps| {
        maps.lines().any(|line| line.split(' ').nth(1).is_some_and(|policy| policy != "default"))
    });
    let value = if bound { format!("{count}, policy set") } else { count.to_string() };
    checked(
        "memory nodes",
        value,
        "1, or interleaved",
        if count == 1 || bound { Status::Pass } else { Status::Warn },
        "memory of another node is farther away, and where pages land is chance",
        "numactl --interleave=all outcrop lab run ...",
    )
}

/// How many of the processor's known weaknesses the kernel works around.
fn mitigations(root: &Root) -> Option<String> {
    let directory = "/sys/devices/system/cpu/vulnerabilities";
    let names = root.names(directory);
    let worked_around = |name: &&String| {
        root.text(&format!("{directory}/{name}")).is_some_and(|text| text.starts_with("Mitigation"))
    };
    (!names.is_empty()).then(|| format!("{} of {}", names.iter().filter(worked_around).count(), names.len()))
}
