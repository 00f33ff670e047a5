//! Panics of the application's comparators, merge operators and filters: they become errors of the operation that met them.

use outcrop_base::{Error, ErrorKind, Result};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a job; a panic in it becomes its error, so that nobody waits for ever for its end.
pub fn caught<T>(what: &str, job: impl FnOnce() -> Result<T>) -> Result<T> {
    // The job's shared data is in locks that do not poison, and is left consistent between their holds.
    catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|panic| Err(panicked(what, &*panic)))
}

/// The error of `what`, which ended by `panic`.
#[cold]
pub fn panicked(what: &str, panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Error::new(ErrorKind::Aborted, format!("{what} panicked: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_that_says_who_and_why() {
        let text = |result: Result<()>| result.unwrap_err().to_string();
        assert!(text(caught("flush", || panic!("fixed"))).contains("flush panicked: fixed"));
        assert!(text(caught("flush", || panic!("{}", 7))).contains("flush panicked: 7"));
        assert!(text(caught("flush", || std::panic::panic_any(7))).ends_with("flush panicked: "));
        assert_eq!(caught("flush", || Ok(3)).unwrap(), 3);
    }
}
