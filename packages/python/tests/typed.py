"""A program with types: mypy reads it, strictly, and nobody runs it."""

import pathlib
from typing import Iterator, List, Optional, Tuple

import outcrop


def join(key: bytes, existing: Optional[bytes], operands: List[bytes]) -> bytes:
    return b",".join([existing or b"", *operands])


def names(directory: pathlib.Path) -> Iterator[str]:
    operator = outcrop.MergeOperator("example.join", join)
    budget = outcrop.MemoryBudget(64 << 20)
    used: int = budget.usage()["total"]
    assert used <= budget.bytes
    options = {"write_buffer_size": 8 << 20, "compression": "kZSTD", "block_based_table_factory": {"block_size": 8192}}
    with outcrop.Db(
        directory, options, ["users"], merge_operator=operator, transactions="pessimistic", memory_budget=budget
    ) as db:
        users: outcrop.ColumnFamily = db.column_family("users")
        users.update({b"7": b"ann"}, options=outcrop.WriteOptions(sync=True))
        with db.begin() as txn:
            txn[b"a"] = b"1"
        row: Tuple[bytes, bytes]
        for row in users.items(backwards=True, from_key=b"9"):
            yield row[1].decode()
        with db.snapshot() as moment:
            cursor = moment.iter(outcrop.ReadOptions(fill_cache=False))
            cursor.seek(b"a")
            while cursor.valid():
                yield repr(cursor.key())
                cursor.next()
