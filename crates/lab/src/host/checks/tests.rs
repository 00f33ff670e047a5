//! Trees of settings as machines have them.

use super::*;
use crate::host::facts::Health;

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
    for name in
        ["smt", "boost", "governor", "clocksource", "io scheduler", "swappiness", "other load", "file system"]
    {
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

#[test]
fn what_a_machine_has_two_of_is_named() {
    let (_temp, root) = machine(&[
        ("sys/devices/cpu_core/cpus", "0-7"),
        ("sys/devices/cpu_atom/cpus", "8-15"),
        ("sys/devices/system/node/node0/x", ""),
        ("sys/devices/system/node/node1/x", ""),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq", "800000"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq", "3000000"),
        ("sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected"),
        ("sys/devices/system/cpu/vulnerabilities/spectre_v1", "Mitigation: barriers"),
    ]);
    let checks = check(&root, &Facts::default());
    assert_eq!(status(&checks, "kinds of cores"), Status::Fail);
    assert_eq!(status(&checks, "memory nodes"), Status::Warn);
    let value = |name: &str| checks.iter().find(|check| check.name == name).unwrap().value.clone();
    assert_eq!((value("clock rates"), value("mitigations")), ("800 to 3000 MHz".into(), "1 of 2".into()));
    let (_temp, root) = machine(&[
        ("sys/devices/system/cpu/cpu0/cpu_capacity", "1024"),
        ("sys/devices/system/cpu/cpu1/cpu_capacity", "1024"),
        ("sys/devices/system/node/node0/x", ""),
        ("sys/devices/system/node/node1/x", ""),
        ("proc/self/numa_maps", "7f00 interleave:0-1 anon=1\n"),
    ]);
    let checks = check(&root, &Facts::default());
    assert_eq!(status(&checks, "kinds of cores"), Status::Pass);
    assert_eq!(status(&checks, "memory nodes"), Status::Pass);
}

#[test]
fn devices_are_judged_by_their_health_and_by_who_shares_them() {
    let health = |used, errors, warning| Facts {
        device: "nvme0n1".into(),
        system_device: "sda".into(),
        device_health: Some(Health {
            percentage_used: used,
            media_errors: errors,
            critical_warning: warning,
            ..Health::default()
        }),
        ..Facts::default()
    };
    let (_temp, root) = machine(&[
        ("sys/block/nvme0n1/queue/logical_block_size", "512"),
        ("sys/block/nvme0n1/queue/physical_block_size", "4096"),
    ]);
    let of = |facts: &Facts, name: &str| status(&check(&root, facts), name);
    assert_eq!(of(&health(3, 0, 0), "device wear"), Status::Pass);
    assert_eq!(of(&health(100, 0, 0), "device wear"), Status::Warn);
    assert_eq!(of(&health(3, 1, 0), "device wear"), Status::Warn);
    assert_eq!(of(&health(3, 0, 4), "device wear"), Status::Fail);
    assert_eq!(of(&Facts::default(), "device wear"), Status::Note);
    assert_eq!(of(&health(3, 0, 0), "disk of the data"), Status::Pass);
    let shared = Facts { system_device: "nvme0n1".into(), ..health(3, 0, 0) };
    assert_eq!(of(&shared, "disk of the data"), Status::Note);
    let checks = check(&root, &shared);
    assert_eq!(checks.iter().find(|check| check.name == "sectors").unwrap().value, "512 / 4096 B");
}

#[test]
fn who_else_is_there_and_what_is_broken_is_seen() {
    let files = |share: &str, times: &str, errors: &str, ipc: &str| {
        machine(&[
            ("proc/pressure/cpu", &format!("some avg10={share} avg60=0.00 avg300=0.00 total=1\n")),
            ("sys/fs/cgroup/cpu.stat", &format!("usage_usec 1\nnr_throttled {times}\n")),
            (
                "sys/bus/pci/devices/0000:00/aer_dev_correctable",
                &format!("RxErr 0\nTOTAL_ERR_COR {errors}\n"),
            ),
            ("etc/systemd/logind.conf", ipc),
            ("proc/sys/kernel/perf_event_paranoid", "-1"),
            ("proc/sys/kernel/kptr_restrict", "0"),
            ("proc/sys/kernel/yama/ptrace_scope", "0"),
            ("run/systemd/timesync/synchronized", ""),
        ])
    };
    let names = ["waits for processors", "throttled by group", "PCIe errors corrected"];
    let (_temp, root) = files("0.50", "0", "0", "[Login]\nRemoveIPC=no\n");
    let checks = check(&root, &Facts::default());
    for name in names.into_iter().chain(["RemoveIPC", "perf access", "clock synchronised"]) {
        assert_eq!(status(&checks, name), Status::Pass, "{name}");
    }
    let (_temp, root) = files("40.10", "7", "12", "#RemoveIPC=no\n");
    let checks = check(&root, &Facts::default());
    for name in names {
        assert_eq!(status(&checks, name), Status::Warn, "{name}");
    }
    assert_eq!(status(&checks, "RemoveIPC"), Status::Note);
}
