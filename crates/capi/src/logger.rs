//! `rocksdb_logger_*`: where LOG's lines go instead of the file.

use crate::memory::{give_back, hand_out, text};
use crate::options::rocksdb_options_t;
use libc::{c_char, c_int, c_uint, c_void, size_t};
use outcrop::{LogLevel, Logger};
use std::io::Write;
use std::sync::Arc;

/// Null inside: that of options without a logger.
pub struct rocksdb_logger_t(pub Option<Arc<dyn Logger>>);

type Log = Option<unsafe extern "C-unwind" fn(*mut c_void, c_uint, *mut c_char, size_t)>;

/// A callback of the application's.
struct Callback {
    level: LogLevel,
    call: Log,
    state: *mut c_void,
}

// SAFETY: the contract of the C API: the callback may be called from any thread, by several at once, with the state it was given.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

impl Logger for Callback {
    fn level(&self) -> LogLevel {
        self.level
    }

    fn log(&self, level: LogLevel, text: &str) {
        let Some(call) = self.call.filter(|_| !text.is_empty()) else { return };
        // With a NUL at its end, for callbacks that do not look at the length.
        let level = if level == LogLevel::Header { LogLevel::Info } else { level };
        let mut text = [text.as_bytes(), b"\0"].concat();
        let len = text.len() - 1;
        // An exception or a panic of the callback goes through to the engine, which catches those of every logger.
        // SAFETY: the contract of the C API; the text lives until the call returns.
        unsafe { call(self.state, level as c_uint, text.as_mut_ptr().cast(), len) }
    }
}

/// Standard error, with a prefix.
struct StandardErrorLogger {
    level: LogLevel,
    prefix: String,
}

impl Logger for StandardErrorLogger {
    fn level(&self) -> LogLevel {
        self.level
    }

    fn log(&self, level: LogLevel, text: &str) {
        // RocksDB's takes headers for information.
        if level == LogLevel::Header && self.level > LogLevel::Info {
            return;
        }
        let line = format!("{} {}{text}\n", outcrop::log_stamp(), self.prefix);
        // In one call, so that lines do not interleave. A closed standard error loses the line, and nothing else.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

fn level_of(level: c_int) -> LogLevel {
    LogLevel::from_number(level.into()).unwrap_or(if level < 0 { LogLevel::Debug } else { LogLevel::Header })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_logger_create_stderr_logger(
    log_level: c_int,
    prefix: *const c_char,
) -> *mut rocksdb_logger_t {
    boundary!({
        let prefix = if prefix.is_null() { String::new() } else { text(prefix) };
        let logger = StandardErrorLogger { level: level_of(log_level), prefix };
        hand_out(rocksdb_logger_t(Some(Arc::new(logger))))
    })
}

/// The callback gets level, text and its length; lines below `log_level` do not reach it.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_logger_create_callback_logger(
    log_level: c_int,
    callback: Log,
    state: *mut c_void,
) -> *mut rocksdb_logger_t {
    boundary!({
        let logger = Callback { level: level_of(log_level), call: callback, state };
        hand_out(rocksdb_logger_t(Some(Arc::new(logger))))
    })
}

/// Databases and options that have it keep it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_logger_destroy(logger: *mut rocksdb_logger_t) {
    boundary!(give_back(logger))
}

/// Null takes it away: LOG is a file again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_info_log(
    options: *mut rocksdb_options_t,
    logger: *mut rocksdb_logger_t,
) {
    boundary!((*options).objects.logger = logger.as_ref().and_then(|logger| logger.0.clone()))
}

/// A logger to be destroyed by the caller, never null: another handle of the one that was set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_get_info_log(
    options: *mut rocksdb_options_t,
) -> *mut rocksdb_logger_t {
    boundary!(hand_out(rocksdb_logger_t((*options).objects.logger.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Set for the process whose standard error takes nothing.
    const FULL: &str = "OUTCROP_STANDARD_ERROR_IS_FULL";

    #[test]
    fn a_standard_error_that_takes_nothing_loses_the_line() {
        if std::env::var_os(FULL).is_some() {
            StandardErrorLogger { level: LogLevel::Info, prefix: String::new() }.log(LogLevel::Info, "lost");
            return;
        }
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let name = "a_standard_error_that_takes_nothing_loses_the_line";
        let mut child = Command::new(std::env::current_exe().unwrap());
        let ended = child.args([name, "--nocapture"]).env(FULL, "1").stderr(full).output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
        assert!(String::from_utf8_lossy(&ended.stdout).contains("1 passed"), "the child has run it");
    }
}
