"""Reads, writes and scans of one column family."""

import pytest

import outcrop


def test_a_database_is_a_dictionary(db):
    db[b"apple"] = b"red"
    db[b"plum"] = b"blue"
    assert db[b"apple"] == b"red"
    assert b"apple" in db and b"fig" not in db
    with pytest.raises(KeyError) as missing:
        db[b"fig"]
    assert missing.value.args == (b"fig",)
    del db[b"apple"]
    del db[b"apple"]  # As in RocksDB, deleting what is not there is no error.
    assert list(db) == [b"plum"]


def test_get_takes_a_default_and_a_list(db):
    db.update({b"a": b"1", b"c": b"3"})
    assert db.get(b"a") == b"1"
    assert db.get(b"b") is None and db.get(b"b", b"none") == b"none"
    assert db.get([b"a", b"b", b"c"]) == [b"1", None, b"3"]
    assert db.get([b"b"], b"-") == [b"-"]
    assert db[[b"c", b"a"]] == [b"3", b"1"]
    assert db.get([]) == []


def test_keys_and_values_are_anything_that_is_bytes(db):
    db[bytearray(b"a")] = memoryview(b"123")[1:]
    assert db[b"a"] == b"23" and type(db[b"a"]) is bytes
    db[b""] = b""
    assert db[b""] == b""
    for wrong in ("text", 1, None, 1.5, [b"a"]):
        with pytest.raises(TypeError, match="bytes"):
            db.put(b"a", wrong)
    with pytest.raises(TypeError, match="encoding"):
        db["text"]


def test_scans_go_both_ways_from_any_key(db):
    rows = [(b"%02d" % number, b"v%d" % number) for number in range(20)]
    db.update(rows)
    assert list(db.items()) == rows
    assert list(db.items(True)) == rows[::-1]
    assert list(db.keys(from_key=b"05")) == [key for key, _ in rows[5:]]
    assert list(db.keys(from_key=b"045")) == [key for key, _ in rows[5:]]
    assert list(db.values(backwards=True, from_key=b"05")) == [value for _, value in rows[5::-1]]
    assert list(db.keys(backwards=True, from_key=b"055")) == [key for key, _ in rows[5::-1]]
    assert list(db.keys(prefix=b"1")) == [key for key, _ in rows[10:]]
    assert list(db.keys(True, prefix=b"1")) == [key for key, _ in rows[:9:-1]]
    bounds = outcrop.ReadOptions(iterate_lower_bound=b"03", iterate_upper_bound=b"06")
    assert list(db.keys(options=bounds)) == [b"03", b"04", b"05"]
    with pytest.raises(outcrop.InvalidArgument):
        db.items(from_key=b"1", prefix=b"1")


def test_a_scan_sees_the_moment_it_was_made(db, fill):
    fill(db, 1000)
    rows = db.keys()
    first = next(rows)
    db.delete_range(b"", b"z")
    db[b"later"] = b""
    assert [first, *rows] == [b"key%08d" % number for number in range(1000)]
    assert list(db) == [b"later"]


def test_a_long_scan_takes_rows_some_at_a_time(db):
    # Beyond the most rows and the most bytes that are taken at once, and through tables.
    db.update((b"%06d" % number, bytes(number % 5000)) for number in range(3000))
    db.flush()
    assert [len(value) for value in db.values()] == [number % 5000 for number in range(3000)]
    assert sum(1 for _ in db.items(True)) == 3000


def test_a_cursor_seeks(db):
    db.update({b"a": b"1", b"c": b"3", b"e": b"5"})
    cursor = db.iter()
    assert not cursor.valid()
    cursor.seek(b"b")
    assert cursor.valid() and (cursor.key(), cursor.value()) == (b"c", b"3")
    cursor.prev()
    assert cursor.key() == b"a"
    cursor.prev()
    assert not cursor.valid()
    for call in (cursor.key, cursor.value, cursor.next, cursor.prev):
        with pytest.raises(outcrop.InvalidArgument, match="valid"):
            call()
    cursor.seek_for_prev(b"d")
    assert cursor.key() == b"c"
    cursor.seek_to_last()
    assert cursor.key() == b"e"
    cursor.next()
    assert not cursor.valid()
    cursor.seek_to_first()
    assert cursor.key() == b"a"


def test_deletions_of_ranges_and_of_single_writes(db, fill):
    fill(db, 10)
    db.delete_range(b"key00000002", b"key00000008")
    assert [int(key[3:]) for key in db] == [0, 1, 8, 9]
    db.single_delete(b"key00000009")
    assert b"key00000009" not in db


def test_a_batch_is_all_or_nothing(db):
    other = db.create_column_family("other")
    batch = db.batch()
    batch[b"a"] = b"1"
    batch.put(b"b", b"2", other)
    del batch[b"c"]
    batch.delete_range(b"x", b"y")
    assert len(batch) == 4 and batch.size_in_bytes() > 12
    assert b"a" not in db
    db.write(batch, options=outcrop.WriteOptions(sync=True))
    assert (db[b"a"], other[b"b"], b"b" in db) == (b"1", b"2", False)
    batch.clear()
    assert len(batch) == 0
    with db.batch() as batch:
        batch[b"d"] = b"4"
    assert db[b"d"] == b"4"
    with pytest.raises(ZeroDivisionError), db.batch() as batch:
        batch[b"e"] = b"5"
        1 / 0
    assert b"e" not in db
    in_other = outcrop.WriteBatch(other)
    in_other.put(b"f", b"6")
    in_other.commit()
    assert b"f" in other and b"f" not in db


def test_a_batch_and_a_column_family_belong_to_one_database(db, tmp_path):
    with outcrop.Db(tmp_path / "other") as other:
        with pytest.raises(outcrop.InvalidArgument, match="another database"):
            db.write(other.batch())
        with pytest.raises(outcrop.InvalidArgument, match="another database"):
            db.batch().put(b"a", b"1", other)


def test_a_snapshot_stays(db):
    other = db.create_column_family("other")
    db[b"a"] = other[b"a"] = b"old"
    with db.snapshot() as moment:
        db[b"a"] = other[b"a"] = b"new"
        db[b"b"] = b""
        assert (moment[b"a"], moment.get(b"b"), b"b" in moment) == (b"old", None, False)
        assert moment.column_family(other)[b"a"] == b"old"
        assert list(moment.items()) == [(b"a", b"old")]
        assert list(moment) == list(moment.keys(True)) == [b"a"]
        assert list(moment.values(from_key=b"a")) == [b"old"]
        cursor = moment.iter()
        cursor.seek_to_first()
        assert cursor.value() == b"old"
        assert db.get(b"a", options=outcrop.ReadOptions(snapshot=moment)) == b"old"
        assert db[b"a"] == b"new"
        assert moment.sequence_number < db.latest_sequence_number()
    with pytest.raises(outcrop.Closed, match="snapshot"):
        moment[b"a"]


def test_wide_columns(db):
    db.put_entity(b"7", {b"name": b"ann", b"born": b"1970"})
    assert db.get_entity(b"7") == {b"born": b"1970", b"name": b"ann"}
    db[b"8"] = b"plain"
    assert db.get_entity(b"8") == {b"": b"plain"}
    assert db.get_entity(b"9") is None and db.get_entity(b"9", 1) == 1


def test_a_read_may_be_kept_to_memory(path):
    with outcrop.Db(path) as db:
        db[b"a"] = b"1"
        db.flush()
    with outcrop.Db(path) as db:
        cached = outcrop.ReadOptions(read_tier=1)
        with pytest.raises(outcrop.Incomplete):
            db.get(b"a", options=cached)
        assert db[b"a"] == db.get(b"a", options=cached) == b"1"
    with pytest.raises(outcrop.NotSupported, match="read_tier 4"):
        outcrop.ReadOptions(read_tier=4)


def test_a_read_may_be_kept_to_what_is_persisted_and_a_scan_to_memtables(path):
    with outcrop.Db(path) as db:
        db[b"a"] = b"1"
        db.flush()
        db[b"b"] = b"2"
        persisted = outcrop.ReadOptions(read_tier=2)
        assert db.get(b"b", options=persisted) == b"2"
        db.put(b"c", b"3", options=outcrop.WriteOptions(disable_wal=True))
        assert db.get(b"c", options=persisted) is None and db.get(b"a", options=persisted) == b"1"
        with pytest.raises(outcrop.NotSupported):
            list(db.items(options=persisted))
        memory = outcrop.ReadOptions(read_tier=3)
        assert [key for key, _ in db.items(options=memory)] == [b"b", b"c"]
        assert db.get(b"a", options=memory) == b"1"
