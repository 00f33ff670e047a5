//! From errors of the engine to exceptions of Python, whose classes `outcrop/_errors.py` has.

use outcrop::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// Why an operation did not happen.
pub enum Failure {
    /// The database, or the object that belongs to it, was closed.
    Closed(&'static str),
    /// The engine refused, or failed.
    Engine(Error),
}

/// The result of work that is done without the interpreter.
pub type Outcome<T> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Engine(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        match failure {
            Failure::Closed(what) => exception("Closed", format!("the {what} is closed")),
            Failure::Engine(error) => exception(class(error.kind()), error.to_string()),
        }
    }
}

/// `error` as an exception.
pub fn raised(error: Error) -> PyErr {
    Failure::Engine(error).into()
}

/// InvalidArgument with `why`.
pub fn invalid(why: impl Into<String>) -> PyErr {
    raised(Error::invalid_argument(why))
}

/// NotSupported with `why`.
pub fn not_supported(why: impl Into<String>) -> PyErr {
    raised(Error::not_supported(why))
}

fn class(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "NotFound",
        ErrorKind::Corruption => "Corruption",
        ErrorKind::NotSupported => "NotSupported",
        ErrorKind::InvalidArgument => "InvalidArgument",
        ErrorKind::IoError => "IoError",
        ErrorKind::NoSpace => "NoSpace",
        ErrorKind::SpaceLimit => "SpaceLimit",
        ErrorKind::CompactionTooLarge => "CompactionTooLarge",
        ErrorKind::MergeInProgress => "MergeInProgress",
        ErrorKind::Incomplete => "Incomplete",
        ErrorKind::ShutdownInProgress => "ShutdownInProgress",
        ErrorKind::TimedOut => "TimedOut",
        ErrorKind::Aborted => "Aborted",
        ErrorKind::Busy => "Busy",
        ErrorKind::Expired => "Expired",
        ErrorKind::TryAgain => "TryAgain",
        ErrorKind::ColumnFamilyDropped => "ColumnFamilyDropped",
        _ => "OutcropError",
    }
}

fn exception(class: &str, text: String) -> PyErr {
    static CLASSES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    Python::attach(|py| {
        let classes = CLASSES.get_or_try_init(py, || py.import("outcrop._errors").map(Bound::unbind));
        let class = classes.and_then(|classes| Ok(classes.bind(py).getattr(class)?.cast_into::<PyType>()?));
        match class {
            Ok(class) => PyErr::from_type(class, text),
            Err(error) => error,
        }
    })
}
