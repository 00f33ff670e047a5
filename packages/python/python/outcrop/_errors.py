"""The exceptions of outcrop: one class for each kind of error, so that a program can decide by it."""

from __future__ import annotations


class OutcropError(Exception):
    """The base of all that the engine raises. A missing key is a KeyError, as with any mapping."""


class NotFound(OutcropError, LookupError):
    """The named thing (database, column family, backup, save point) does not exist."""


class Corruption(OutcropError):
    """Bytes on disk do not decode or fail their checksum. Trying again will not help."""


class NotSupported(OutcropError):
    """The data or the call uses a feature that this engine does not have."""


class InvalidArgument(OutcropError, ValueError):
    """The caller passed something that cannot be used. Change the call."""


class IoError(OutcropError, OSError):
    """The file system refused an operation. After a failed write, writes are refused until Db.resume()."""


class NoSpace(IoError):
    """The device is full. Nothing acknowledged is lost: free space, then Db.resume()."""


class SpaceLimit(IoError):
    """The files take all the space that they may."""


class CompactionTooLarge(OutcropError):
    """A compaction would need more space than is allowed."""


class MergeInProgress(OutcropError):
    """A merge operand was met where its operator cannot be applied."""


class Incomplete(OutcropError):
    """The answer needs what the options of the call forbade: waiting, reading a file, or passing over more keys."""


class ShutdownInProgress(OutcropError):
    """The database is closing."""


class Closed(ShutdownInProgress):
    """The database, or the object that belongs to it, is closed."""


class TimedOut(OutcropError, TimeoutError):
    """A wait exceeded its limit: that of a lock, or a deadline."""


class Aborted(OutcropError):
    """The operation was stopped on request."""


class Busy(OutcropError):
    """A key was written meanwhile, or a deadlock was found: begin the transaction again."""


class Expired(OutcropError):
    """The transaction lived longer than it may."""


class TryAgain(OutcropError):
    """A conflict that passes: try again."""


class ColumnFamilyDropped(OutcropError):
    """The column family was dropped."""
