//! The file system and the device under the data.

use super::{Check, Status, checked, chosen, expect, recorded};
use crate::host::facts::{Facts, Root};

pub(super) fn checks(root: &Root, facts: &Facts) -> Vec<Check> {
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
        recorded(
            "sectors",
            queue("logical_block_size").map(|logical| {
                let other = |name: &str| queue(name).unwrap_or_else(|| "?".into());
                format!("{logical} / {} B", other("physical_block_size"))
            }),
            "smaller writes than a physical sector are reads as well",
        ),
        recorded(
            "least IO, discard unit",
            queue("minimum_io_size").map(|least| {
                format!("{least} / {} B", queue("discard_granularity").unwrap_or_else(|| "?".into()))
            }),
            "what the device reads, writes and frees at least",
        ),
        one_disk(facts),
        wear(facts),
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

/// A disk of its own for data: databases wear devices out, and the system's own traffic is measured with theirs.
fn one_disk(facts: &Facts) -> Check {
    let shared = facts.device == facts.system_device && !facts.device.is_empty();
    checked(
        "disk of the data",
        match (facts.device.is_empty(), shared) {
            (true, _) => "not known",
            (_, true) => "the system's",
            _ => "its own",
        },
        "its own",
        if !facts.device.is_empty() && !shared { Status::Pass } else { Status::Note },
        "the system's own reads and writes are measured too, and databases wear a device out",
        "",
    )
}

/// The health that an NVMe device reports.
fn wear(facts: &Facts) -> Check {
    let (wanted, why) = ("used < 100 %, no errors", "worn or hot devices slow down, and then fail");
    let Some(health) = &facts.device_health else {
        return checked("device wear", "not known", wanted, Status::Note, why, "");
    };
    let status = if health.critical_warning != 0 {
        Status::Fail
    } else if health.percentage_used >= 100 || health.media_errors > 0 {
        Status::Warn
    } else {
        Status::Pass
    };
    let value =
        format!("{} %, {} errors, {} C", health.percentage_used, health.media_errors, health.temperature);
    checked("device wear", value, wanted, status, why, "another device for --data")
}
