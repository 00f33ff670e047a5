//! The rest of the system: other users of the machine, rights of profilers, and faults.

use super::{Check, Status, checked, chosen, expect, recorded};
use crate::host::facts::Root;

pub(super) fn checks(root: &Root) -> Vec<Check> {
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
        pressure(root),
        throttled(root),
        pcie_errors(root),
        recorded(
            "PCIe power saving",
            root.text("/sys/module/pcie_aspm/parameters/policy").map(|text| chosen(&text)),
            "links that sleep wake up late",
        ),
        perf_access(root),
        remove_ipc(root),
        expect(
            "clock synchronised",
            root.exists("/run/systemd/timesync").then(|| {
                let yes = root.exists("/run/systemd/timesync/synchronized");
                if yes { "yes" } else { "no" }.to_string()
            }),
            "yes",
            |value| value == "yes",
            Status::Note,
            (
                "dates of records and of other machines' logs are held against each other; times of steps need no clock",
                "",
            ),
        ),
    ]
}

/// Share of the last ten seconds in which somebody waited for a processor.
fn pressure(root: &Root) -> Check {
    let text = root.text("/proc/pressure/cpu").unwrap_or_default();
    let some =
        text.lines().find_map(|line| line.strip_prefix("some avg10=")?.split(' ').next().map(str::to_string));
    expect(
        "waits for processors",
        some.map(|share| format!("{share} %")),
        "below 2 %",
        |value| value.trim_end_matches(" %").parse::<f64>().is_ok_and(|share| share < 2.0),
        Status::Warn,
        ("other programs take turns with the measured one", "stop them; wait until the load is gone"),
    )
}

/// Whether the control group ran out of its time before: a limit that is met once is met again.
fn throttled(root: &Root) -> Check {
    let text = root.text("/sys/fs/cgroup/cpu.stat").unwrap_or_default();
    let times = text.lines().find_map(|line| line.strip_prefix("nr_throttled ").map(str::to_string));
    expect(
        "throttled by group",
        times,
        "0 times",
        |value| value == "0",
        Status::Warn,
        ("a step during which it happens is invalid", "run without a limit on processor time"),
    )
}

/// Errors that devices on the bus corrected.
fn pcie_errors(root: &Root) -> Check {
    let devices = "/sys/bus/pci/devices";
    let total = |name: &String| -> Option<u64> {
        let text = root.text(&format!("{devices}/{name}/aer_dev_correctable"))?;
        text.lines().find_map(|line| line.strip_prefix("TOTAL_ERR_COR ")?.parse().ok())
    };
    let errors = root.names(devices).iter().filter_map(total).reduce(|sum, errors| sum + errors);
    expect(
        "PCIe errors corrected",
        errors.map(|errors| errors.to_string()),
        "0",
        |value| value == "0",
        Status::Warn,
        ("each costs a retry, and thousands of them a processor", "another slot, or boot with pcie_aspm=off"),
    )
}

/// The rights of profilers and debuggers.
fn perf_access(root: &Root) -> Check {
    let of = |path: &str| root.text(&format!("/proc/sys/kernel/{path}")).unwrap_or_else(|| "?".into());
    let value = ["perf_event_paranoid", "kptr_restrict", "yama/ptrace_scope"].map(of).join(" / ");
    let status = if value == "-1 / 0 / 0" { Status::Pass } else { Status::Note };
    let why =
        "paranoid, kptr_restrict, ptrace_scope: decide who may take profiles and see the kernel's names";
    checked("perf access", value, "-1 / 0 / 0 for profiles", status, why, "")
}

/// Whether logging out deletes shared memory.
fn remove_ipc(root: &Root) -> Check {
    let text = root.text("/etc/systemd/logind.conf");
    let said = text.map(|text| {
        let set = text.lines().find_map(|line| line.trim().strip_prefix("RemoveIPC=").map(str::to_string));
        set.unwrap_or_else(|| "yes, by default".to_string())
    });
    expect(
        "RemoveIPC",
        said,
        "no",
        |value| value == "no",
        Status::Note,
        ("else logging out takes the shared memory of servers such as PostgreSQL away", ""),
    )
}
