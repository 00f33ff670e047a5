//! Memory of the machine: how much there is, and making sure that it is really there.
//!
//! A virtual machine gets its memory from the host page by page, at the first touch, and may give free pages back.
//! A first touch then costs milliseconds a megabyte, and whichever engine runs first pays for both. So before a
//! session as much memory as it will use is touched and freed again.

use std::hint::black_box;

/// What is allocated at a time.
const CHUNK: usize = 64 << 20;
const PAGE: usize = 4096;

/// A line of /proc/meminfo in bytes.
fn meminfo(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// Bytes of memory in the machine; 4 GiB if nothing says.
pub fn total_bytes() -> u64 {
    meminfo("MemTotal").unwrap_or(4 << 30)
}

/// Touches `bytes` of memory, at most 80 % of what is available, and frees it.
pub fn make_present(bytes: u64) {
    let limit = meminfo("MemAvailable").unwrap_or(0) / 10 * 8;
    let mut chunks: Vec<Vec<u8>> = Vec::new();
    for _ in 0..(bytes.min(limit) as usize).div_ceil(CHUNK) {
        let mut chunk = vec![0u8; CHUNK];
        chunk.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
        chunks.push(black_box(chunk));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_memory_and_touching_some_leaves_it_free() {
        assert!(total_bytes() > 64 << 20);
        make_present(1);
        assert_eq!(meminfo("NoSuchLine"), None);
    }
}
