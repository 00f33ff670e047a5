//! What the operating system says of this process.

use serde::{Deserialize, Serialize};

/// CPU time and memory of the process.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// Seconds in user mode.
    pub user_seconds: f64,
    /// Seconds in the kernel.
    pub system_seconds: f64,
    /// Resident bytes now.
    pub rss_bytes: u64,
}

impl ProcessUsage {
    /// Reads `/proc/self`. Zero where that cannot be read.
    pub fn read() -> ProcessUsage {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // The second field is the program's name in parentheses and may hold spaces.
        let fields: Vec<&str> =
            stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        let ticks =
            |index: usize| fields.get(index).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0) / 100.0;
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages: u64 = statm.split_whitespace().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
        ProcessUsage { user_seconds: ticks(11), system_seconds: ticks(12), rss_bytes: pages * 4096 }
    }
}
