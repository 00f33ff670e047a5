"""Outcrop: an embedded key-value store that opens RocksDB databases, as a dictionary.

    >>> import outcrop, tempfile
    >>> with outcrop.Db(tempfile.mkdtemp()) as db:
    ...     db[b"apple"] = b"red"
    ...     db[b"apple"]
    b'red'

Keys and values are bytes, in the order of the keys. All objects may be used from any thread.
"""

from ._errors import (
    Aborted,
    Busy,
    Closed,
    ColumnFamilyDropped,
    CompactionTooLarge,
    Corruption,
    Expired,
    Incomplete,
    InvalidArgument,
    IoError,
    MergeInProgress,
    NoSpace,
    NotFound,
    NotSupported,
    OutcropError,
    ShutdownInProgress,
    SpaceLimit,
    TimedOut,
    TryAgain,
)
from ._outcrop import (
    BackupEngine,
    ColumnFamily,
    Cursor,
    Db,
    MemoryBudget,
    MergeOperator,
    ReadOptions,
    Rows,
    Snapshot,
    SstFileWriter,
    Transaction,
    WriteBatch,
    WriteOptions,
    __version__,
)

__all__ = [
    "Aborted",
    "BackupEngine",
    "Busy",
    "Closed",
    "ColumnFamily",
    "ColumnFamilyDropped",
    "CompactionTooLarge",
    "Corruption",
    "Cursor",
    "Db",
    "Expired",
    "Incomplete",
    "InvalidArgument",
    "IoError",
    "MemoryBudget",
    "MergeInProgress",
    "MergeOperator",
    "NoSpace",
    "NotFound",
    "NotSupported",
    "OutcropError",
    "ReadOptions",
    "Rows",
    "ShutdownInProgress",
    "Snapshot",
    "SpaceLimit",
    "SstFileWriter",
    "TimedOut",
    "Transaction",
    "TryAgain",
    "WriteBatch",
    "WriteOptions",
    "__version__",
]
