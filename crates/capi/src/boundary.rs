//! The boundary to C: the one place that catches panics, and that states the contract all functions here rely on.
//!
//! The body of every exported function stands in [`boundary!`]: it may do what is unsafe, for the reason given there, and
//! if it panics the caller gets an error and null or 0. A panic that crossed the boundary would end the process.
//!
//! ```text
//! boundary!(errptr, body)   the function has an errptr: the panic becomes its error, of class "Operation aborted"
//! boundary!(object, body)   the object keeps the error for a later call that can report it: iterators, batches;
//!                           each key of several gets it: `multi_get`
//! boundary!(body)           nothing can take the error: one line on standard error
//! ```
//! Callbacks are declared `C-unwind`: one that unwinds, such as a Rust panic in a binding's closure, becomes an error too.

use crate::memory::{Errptr, set_error};
use crate::settings::Nothing;
use outcrop::{Error, ErrorKind, Result};
use std::any::Any;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The body of an exported function; see the module.
macro_rules! boundary {
    ($body:expr $(,)?) => {
        boundary!($crate::boundary::StandardError, $body)
    };
    ($told:expr, $body:expr $(,)?) => {
        $crate::boundary::caught($told, move || {
            // SAFETY: the contract of the C API, which every caller upholds: an object is alive, of the type that is
            // declared, and came from the matching create or open function; a text ends with NUL; a pointer with a length
            // or a count has as many readable elements that nobody changes meanwhile; a place for a result is writable;
            // `*errptr` is null or a message that this library gave; nobody uses an object that a destroy function has, or
            // changes one from two threads at once.
            #[allow(unused_unsafe, reason = "not every body needs it")]
            let given = unsafe { $body };
            given
        })
    };
}

/// The receiver of a panic's error.
pub(crate) trait ErrorSink: Copy {
    /// Takes note of `error`.
    ///
    /// # Safety
    /// A pointer is valid, as the contract of the C API demands of the call that panicked.
    unsafe fn tell(self, error: &Error);
}

/// Receives the error of a function that has no place for one.
#[derive(Clone, Copy)]
pub(crate) struct StandardError;

impl ErrorSink for StandardError {
    unsafe fn tell(self, error: &Error) {
        warn(error);
    }
}

/// One line on standard error.
pub(crate) fn warn(what: impl std::fmt::Display) {
    // A closed standard error is no reason to fail.
    let _ = writeln!(std::io::stderr(), "outcrop: {what}");
}

impl ErrorSink for Errptr {
    unsafe fn tell(self, error: &Error) {
        // SAFETY: the caller's contract.
        unsafe { set_error(self, error) };
    }
}

/// Gives what `call` gives; null or 0 if it panics, which `told` is told.
#[inline(always)]
pub(crate) fn caught<T: Nothing, F: FnOnce() -> T>(told: impl ErrorSink, call: F) -> T {
    // The engine itself puts in order the work that a panic left half done: it catches what it must.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(given) => given,
        Err(panic) => {
            let error = panicked(std::any::type_name::<F>(), panic);
            // Objects that are dropped on the way can panic as the call did; their panics are of no use then.
            std::mem::forget(catch_unwind(AssertUnwindSafe(|| {
                // SAFETY: `told` is an argument of the call, valid as its contract says.
                unsafe { told.tell(&error) };
            })));
            T::NOTHING
        }
    }
}

/// Gives what `call` gives, and its panic as the error of `function`.
pub(crate) fn as_result<T>(function: &str, call: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(panicked(function, panic)))
}

/// The error for a panic of the function that `closure` is in, whose type's name is given.
#[cold]
#[inline(never)]
fn panicked(closure: &str, panic: Box<dyn Any + Send>) -> Error {
    let function = closure.split("::").find(|part| part.starts_with("rocksdb_")).unwrap_or(closure);
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    if !panic.is::<&str>() && !panic.is::<String>() {
        // An unknown payload is leaked: its destructor could panic again, here with nobody to catch it.
        std::mem::forget(panic);
    }
    Error::new(ErrorKind::Aborted, format!("{function} panicked: {text}"))
}
