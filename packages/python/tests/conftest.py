"""What the tests share: a database in a directory of its own."""

import pathlib
from typing import Callable, Iterator

import pytest

import outcrop


@pytest.fixture
def path(tmp_path: pathlib.Path) -> str:
    """A directory for a database, which does not exist yet."""
    return str(tmp_path / "db")


@pytest.fixture
def db(path: str) -> Iterator[outcrop.Db]:
    """An empty database of bytes."""
    with outcrop.Db(path) as db:
        yield db


@pytest.fixture
def fill() -> Callable[[outcrop.ColumnFamily, int], None]:
    """Puts so many rows."""

    def put(family: outcrop.ColumnFamily, count: int) -> None:
        family.update((b"key%08d" % number, b"value%d" % number) for number in range(count))

    return put
