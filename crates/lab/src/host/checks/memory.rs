//! Memory: page sizes, swapping, and when writes are written back.

use super::{Check, Status, checked, chosen, expect, recorded};
use crate::host::facts::Root;

pub(super) fn checks(root: &Root) -> Vec<Check> {
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
        recorded(
            "huge page defrag",
            root.text("/sys/kernel/mm/transparent_hugepage/defrag").map(|text| chosen(&text)),
            "decides whether a page fault waits for memory to be compacted",
        ),
        recorded("overcommit", vm("overcommit_memory"), "decides whether large mappings are refused"),
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
                "{} / {} %, {} s",
                vm("dirty_background_ratio").unwrap_or_else(|| "?".into()),
                vm("dirty_ratio").unwrap_or_else(|| "?".into()),
                vm("dirty_expire_centisecs")
                    .and_then(|text| text.parse::<f64>().ok())
                    .map_or_else(|| "?".into(), |hundredths| (hundredths / 100.0).to_string())
            ),
            "recorded",
            Status::Note,
            "decide when buffered writes are written back",
            "",
        ),
    ]
}
