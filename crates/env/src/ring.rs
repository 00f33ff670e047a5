//! Opening an io_uring, and finding out whether it can do what is asked of it.

use io_uring::{IoUring, Probe, opcode};
use std::io;

/// Set to `0` or `off`, it keeps the engine from using io_uring.
const SWITCH: &str = "OUTCROP_IO_URING";

/// The threads that submit to a ring and wait for it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Users {
    /// Always the thread that opened it: completions are then worked off by that thread when it waits.
    OneThread,
    /// Any thread that owns it at the time.
    Any,
}

/// A ring for `entries` reads, or why there is none.
pub fn open(entries: u32, users: Users) -> Result<IoUring, String> {
    if std::env::var(SWITCH).is_ok_and(|value| value == "0" || value == "off") {
        return Err(format!("switched off by {SWITCH}"));
    }
    let describe = |error: io::Error| error.to_string();
    let modern = match users {
        Users::OneThread => IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(entries),
        Users::Any => IoUring::new(entries),
    };
    // Older kernels do without.
    let uring = modern.or_else(|_| IoUring::new(entries)).map_err(describe)?;
    let mut probe = Probe::new();
    uring.submitter().register_probe(&mut probe).map_err(describe)?;
    if !probe.is_supported(opcode::Read::CODE) {
        return Err("the kernel's has no reads".to_string());
    }
    Ok(uring)
}
