"""Transactions of both kinds."""

import threading

import pytest

import outcrop


@pytest.fixture(params=["pessimistic", "optimistic"])
def txdb(request, path):
    with outcrop.Db(path, transactions=request.param) as db:
        yield db


def test_a_transaction_commits_or_does_not_happen(txdb):
    users = txdb.create_column_family("users")
    with txdb.begin() as txn:
        txn[b"a"] = b"1"
        txn.put(b"b", b"2", column_family=users)
        assert txn[b"a"] == b"1" and b"a" in txn and b"a" not in txdb
        assert txn.get([b"a", b"x"]) == [b"1", None]
        assert txn.get(b"b", column_family=users) == b"2"
        with pytest.raises(KeyError):
            txn[b"b"]
    assert (txdb[b"a"], users[b"b"]) == (b"1", b"2")
    with pytest.raises(ZeroDivisionError), txdb.begin() as txn:
        del txn[b"a"]
        1 / 0
    assert txdb[b"a"] == b"1"
    with txdb.begin() as txn:
        txn[b"c"] = b"3"
        txn.rollback()
    assert b"c" not in txdb


def test_save_points(txdb):
    with txdb.begin() as txn:
        txn[b"a"] = b"1"
        txn.set_savepoint()
        txn[b"b"] = b"2"
        txn.rollback_to_savepoint()
        with pytest.raises(outcrop.NotFound):
            txn.rollback_to_savepoint()
    assert list(txdb) == [b"a"]


def test_a_cursor_of_a_transaction_sees_its_writes(txdb):
    txdb.update({b"a": b"1", b"c": b"3"})
    txn = txdb.begin()
    txn[b"b"] = b"2"
    del txn[b"c"]
    cursor = txn.iter()
    cursor.seek_to_first()
    seen = []
    while cursor.valid():
        seen.append((cursor.key(), cursor.value()))
        cursor.next()
    assert seen == [(b"a", b"1"), (b"b", b"2")]
    cursor.seek_to_first()
    txn.commit()
    with pytest.raises(outcrop.Closed, match="committed or rolled back"):
        cursor.next()


def test_two_transactions_that_write_one_key(path):
    with outcrop.Db(path, transactions="optimistic") as db:
        one, other = db.begin(), db.begin()
        one[b"a"] = b"1"
        other[b"a"] = b"2"
        one.commit()
        with pytest.raises(outcrop.Busy):
            other.commit()
        assert db[b"a"] == b"1"
        with pytest.raises(outcrop.InvalidArgument, match="pessimistic"):
            db.begin(lock_timeout=1)


def test_a_lock_is_waited_for_and_times_out(path):
    with outcrop.Db(path, transactions="pessimistic") as db:
        one = db.begin()
        assert one.get_for_update(b"a") is None
        other = db.begin(lock_timeout=1)
        with pytest.raises(outcrop.TimedOut):
            other[b"a"] = b"2"
        other.rollback()
        # The interpreter is free while a thread waits for a lock: this one releases it.
        began, got = threading.Event(), []

        def wait():
            with db.begin(lock_timeout=-1) as txn:
                began.set()
                got.append(txn.get_for_update(b"a"))

        thread = threading.Thread(target=wait)
        thread.start()
        began.wait()
        one[b"a"] = b"1"
        one.commit()
        thread.join()
        assert got == [b"1"]
        with pytest.raises(outcrop.NotSupported, match="delete_range"):
            db.delete_range(b"a", b"b")


def test_a_prepared_transaction_survives(path):
    with outcrop.Db(path, transactions="pessimistic") as db:
        txn = db.begin(write_options=outcrop.WriteOptions(sync=True))
        txn.set_name(b"transfer")
        txn[b"a"] = b"1"
        txn.prepare()
        assert (txn.name, txn.state) == (b"transfer", "prepared")
    with pytest.raises(outcrop.Closed):
        txn.commit()
    with outcrop.Db(path, transactions="pessimistic") as db:
        (found,) = db.prepared_transactions()
        assert found.name == b"transfer" and b"a" not in db
        found.commit()
        assert found.state == "committed" and db[b"a"] == b"1"


def test_closing_ends_transactions(path):
    db = outcrop.Db(path, transactions="pessimistic")
    held = [db.begin() for _ in range(20)]
    for number, txn in enumerate(held):
        txn[b"%d" % number] = b""
    cursor = held[0].iter()
    db.close()
    for call in (held[0].commit, held[1].rollback, cursor.seek_to_first, lambda: held[2].get(b"a")):
        with pytest.raises(outcrop.Closed):
            call()
    # The directory is free, and nothing of them happened.
    with outcrop.Db(path) as again:
        assert list(again) == []
        with pytest.raises(outcrop.NotSupported, match="transactions="):
            again.begin()
