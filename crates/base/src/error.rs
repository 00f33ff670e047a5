//! The one error type of the engine half.
//!
//! The printed prefix before the first colon is a contract: users of the C API and of the bindings
//! parse it, so it is spelled as RocksDB's `Status::ToString` spells it.

use std::fmt;
use std::sync::Arc;

/// The result of every fallible engine call.
///
/// ```
/// # use outcrop_base as outcrop;
/// fn half(number: u32) -> outcrop::Result<u32> {
///     match number % 2 {
///         0 => Ok(number / 2),
///         _ => Err(outcrop::Error::invalid_argument(format!("{number} is odd"))),
///     }
/// }
/// # assert!(half(3).is_err());
/// ```
pub type Result<T> = std::result::Result<T, Error>;

/// The class of an [`Error`], by which a caller decides how to react; the set of RocksDB's `Status::Code`,
/// plus [`ErrorKind::NoSpace`], which RocksDB keeps as a sub-code of its IO error.
///
/// ```
/// # use outcrop_base as outcrop;
/// use outcrop::ErrorKind;
///
/// fn worth_trying_again(kind: ErrorKind) -> bool {
///     matches!(kind, ErrorKind::Busy | ErrorKind::TryAgain | ErrorKind::TimedOut | ErrorKind::Incomplete)
/// }
/// # assert!(!worth_trying_again(ErrorKind::Corruption));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The named thing (database, column family, file, property) does not exist.
    NotFound,
    /// Bytes on disk do not decode or fail their checksum. Retrying will not help.
    Corruption,
    /// The data or the call uses a feature this build does not implement.
    NotSupported,
    /// The caller passed something unusable. Fix the call.
    InvalidArgument,
    /// The file system refused an operation. Writes stay refused until the database is resumed or reopened.
    IoError,
    /// The device is full. Nothing acknowledged is lost; free space, then resume or reopen.
    NoSpace,
    /// Tables and blob files take all the space that an `SstFileManager` allows. Nothing acknowledged is lost; allow more, or remove
    /// data, then resume: the database looks every 5 s, too.
    SpaceLimit,
    /// A compaction would need more space than is allowed.
    CompactionTooLarge,
    /// A merge operand was met where its operator cannot be applied.
    MergeInProgress,
    /// The answer needs IO that the call's options forbade.
    Incomplete,
    /// The database is closing.
    ShutdownInProgress,
    /// A wait exceeded its limit.
    TimedOut,
    /// The operation was stopped on request.
    Aborted,
    /// A resource is in use; retry later.
    Busy,
    /// A lock or transaction expired.
    Expired,
    /// A transient conflict; retry.
    TryAgain,
    /// The column family was dropped.
    ColumnFamilyDropped,
}

impl ErrorKind {
    /// The text RocksDB prints before the first colon for this kind.
    pub fn prefix(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "NotFound: ",
            ErrorKind::Corruption => "Corruption: ",
            ErrorKind::NotSupported => "Not implemented: ",
            ErrorKind::InvalidArgument => "Invalid argument: ",
            ErrorKind::IoError => "IO error: ",
            ErrorKind::NoSpace => "IO error: No space left on device: ",
            ErrorKind::SpaceLimit => "IO error: Space limit reached: ",
            ErrorKind::CompactionTooLarge => "Compaction too large: ",
            ErrorKind::MergeInProgress => "Merge in progress: ",
            ErrorKind::Incomplete => "Result incomplete: ",
            ErrorKind::ShutdownInProgress => "Shutdown in progress: ",
            ErrorKind::TimedOut => "Operation timed out: ",
            ErrorKind::Aborted => "Operation aborted: ",
            ErrorKind::Busy => "Resource busy: ",
            ErrorKind::Expired => "Operation expired: ",
            ErrorKind::TryAgain => "Operation failed. Try again.: ",
            ErrorKind::ColumnFamilyDropped => "Column family dropped: ",
        }
    }
}

/// Why an engine call failed: what to do ([`Error::kind`]) and what happened, for people.
///
/// Cheap to clone: one background failure is handed to every writer it stops.
///
/// ```
/// # use outcrop_base as outcrop;
/// use outcrop::{Error, ErrorKind};
///
/// let error = Error::corruption("000012.sst: block at 4096: bad checksum");
/// assert_eq!(error.kind(), ErrorKind::Corruption);
/// assert_eq!(error.to_string(), "Corruption: 000012.sst: block at 4096: bad checksum");
/// ```
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    kind: ErrorKind,
    context: String,
    source: Option<std::io::Error>,
}

impl Error {
    /// An error of `kind`; `context` names the file, offset, key or expectation concerned.
    pub fn new(kind: ErrorKind, context: impl Into<String>) -> Error {
        Error(Arc::new(Inner { kind, context: context.into(), source: None }))
    }

    /// [`ErrorKind::Corruption`]; `context` names file and offset.
    pub fn corruption(context: impl Into<String>) -> Error {
        Error::new(ErrorKind::Corruption, context)
    }

    /// [`ErrorKind::InvalidArgument`].
    pub fn invalid_argument(context: impl Into<String>) -> Error {
        Error::new(ErrorKind::InvalidArgument, context)
    }

    /// [`ErrorKind::NotSupported`]; `context` names the feature.
    pub fn not_supported(context: impl Into<String>) -> Error {
        Error::new(ErrorKind::NotSupported, context)
    }

    /// [`ErrorKind::NotFound`].
    pub fn not_found(context: impl Into<String>) -> Error {
        Error::new(ErrorKind::NotFound, context)
    }

    /// [`ErrorKind::IoError`], or [`ErrorKind::NoSpace`] when `source` says the device or quota is full.
    pub fn io(context: impl Into<String>, source: std::io::Error) -> Error {
        let kind = match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => ErrorKind::NoSpace,
            _ => ErrorKind::IoError,
        };
        Error(Arc::new(Inner { kind, context: context.into(), source: Some(source) }))
    }

    /// The class of the error, by which a caller decides how to react.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operating system's error, when there was one.
    pub fn io_source(&self) -> Option<&std::io::Error> {
        self.0.source.as_ref()
    }

    /// True if the operating system said that the file does not exist.
    pub fn is_missing_file(&self) -> bool {
        self.io_source().is_some_and(|e| e.kind() == std::io::ErrorKind::NotFound)
    }

    /// True if both are one error, handed on. Two failures of the same kind and text are two errors.
    pub fn is_same(&self, other: &Error) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The same error with `outer` written before its context.
    pub fn within(&self, outer: impl fmt::Display) -> Error {
        let source = self.0.source.as_ref().map(copy_io_error);
        Error(Arc::new(Inner { kind: self.0.kind, context: format!("{outer}: {}", self.0.context), source }))
    }
}

/// `std::io::Error` is not `Clone`; the operating system's code, or else kind and text, carry over.
fn copy_io_error(error: &std::io::Error) -> std::io::Error {
    match error.raw_os_error() {
        Some(code) => std::io::Error::from_raw_os_error(code),
        None => std::io::Error::new(error.kind(), error.to_string()),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.0.kind.prefix(), self.0.context)?;
        match &self.0.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|e| e as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_device_is_its_own_kind_with_rocksdb_prefix() {
        let error = Error::io("while appending to 000004.log", std::io::Error::from_raw_os_error(28));
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        assert!(
            error.to_string().starts_with("IO error: No space left on device: while appending to 000004.log")
        );
    }

    #[test]
    fn within_keeps_kind_and_operating_system_error() {
        let error = Error::io("open", std::io::Error::from_raw_os_error(2)).within("/db/CURRENT");
        assert!(error.is_missing_file());
        assert!(error.to_string().starts_with("IO error: /db/CURRENT: open: "));
    }
}
