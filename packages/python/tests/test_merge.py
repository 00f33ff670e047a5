"""Merge operators written in Python."""

import sys

import pytest

import outcrop


def append(key, existing, operands):
    return b",".join([existing] * (existing is not None) + operands)


JOIN = outcrop.MergeOperator("test.join", append, lambda key, operands: b",".join(operands))


def test_operands_are_merged_by_reads_flushes_and_compactions(path):
    with outcrop.Db(path, merge_operator=JOIN) as db:
        db.merge(b"a", b"1")
        db.merge(b"a", b"2")
        assert db[b"a"] == b"1,2" and list(db.items()) == [(b"a", b"1,2")]
        for number in range(3, 6):
            db.merge(b"a", b"%d" % number)
            db.flush()
        db.compact_range(force=True)
        with db.batch() as batch:
            batch.merge(b"a", b"6")
        assert db[b"a"] == b"1,2,3,4,5,6" and JOIN.name == "test.join"
    # Functions are not stored: they have to be brought again to read operands.
    with outcrop.Db(path) as db:
        with pytest.raises(outcrop.InvalidArgument, match="merge_operator"):
            db[b"a"]
    with outcrop.Db(path, merge_operator={"default": JOIN}) as db:
        assert db[b"a"] == b"1,2,3,4,5,6"


def test_an_operator_of_one_column_family(path):
    with outcrop.Db(path) as db:
        counts = db.create_column_family("counts", {"merge_operator": "uint64add"})
        words = db.create_column_family("words", merge_operator=JOIN)
        counts.merge(b"n", (5).to_bytes(8, "little"))
        counts.merge(b"n", (7).to_bytes(8, "little"))
        words.merge(b"w", b"x")
        assert (int.from_bytes(counts[b"n"], "little"), words[b"w"]) == (12, b"x")
        with pytest.raises(outcrop.OutcropError):
            db.merge(b"a", b"1")
    with outcrop.Db(path, merge_operator={"words": JOIN}) as db:
        assert db.column_family("words")[b"w"] == b"x"


def test_an_exception_of_an_operator_is_told_and_the_read_fails(path, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)

    def fail(key, existing, operands):
        raise ZeroDivisionError(key)

    with outcrop.Db(path, merge_operator=outcrop.MergeOperator("test.fail", fail)) as db:
        db.merge(b"a", b"1")
        with pytest.raises(outcrop.Corruption):
            db[b"a"]
    assert told and told[0].exc_type is ZeroDivisionError


def test_an_operator_may_read_the_database(path):
    holder = []

    def prefixed(key, existing, operands):
        return holder[0][b"prefix"] + b"".join(operands)

    db = outcrop.Db(path, merge_operator=outcrop.MergeOperator("test.prefixed", prefixed))
    holder.append(db)
    db[b"prefix"] = b">"
    db.merge(b"a", b"1")
    assert db[b"a"] == b">1"
    db.close()
