"""Files handed over between RocksDB, as the package `rocksdict` has it, and Outcrop; and its encoding of types."""

import json
import math
import pathlib
import pickle
import random

import pytest

import outcrop

rocksdict = pytest.importorskip("rocksdict")

TYPED = {
    1: 2,
    -5: 0,
    300: 1 << 70,
    -(1 << 70): -129,
    0: -1,
    127: 128,
    255: 256,
    -128: -127,
    1 << 63: (1 << 63) - 1,
    -(1 << 63): -(1 << 63) - 1,
    "é": "ü",
    "": "",
    b"b": b"c",
    b"": b"",
    1.5: -2.25,
    math.inf: -math.inf,
    -1e300: 5e-324,
    False: True,
}


def typed(rows):
    """Rows that differ where only their types differ: True == 1."""
    return [(type(key), key, type(value), value) for key, value in rows]


def raw(path, **keywords):
    return rocksdict.Rdict(path, rocksdict.Options(raw_mode=True), **keywords)


def test_bytes_go_from_rocksdb_to_outcrop_and_back(path):
    rows = {b"%05d" % number: random.Random(number).randbytes(number % 300) for number in range(3000)}
    theirs = raw(path)
    for key, value in rows.items():
        theirs[key] = value
    users = theirs.create_column_family("users", rocksdict.Options(raw_mode=True))
    users[b"7"] = b"ann"
    # Some in tables, some in the WAL.
    theirs.flush()
    theirs[b"99999"] = b"in the WAL"
    users.close()
    theirs.close()
    with outcrop.Db(path) as ours:
        assert dict(ours.items()) == {**rows, b"99999": b"in the WAL"}
        assert ours.column_family("users")[b"7"] == b"ann"
        ours.delete_range(b"00000", b"01000")
        ours.column_family("users")[b"8"] = b"bob"
        ours.flush()
        ours[b"ours"] = b"in the WAL"
    options = rocksdict.Options(raw_mode=True)
    theirs = rocksdict.Rdict(path, options, {"default": options, "users": options})
    left = {key: value for key, value in rows.items() if key >= b"01000"}
    assert dict(theirs.items()) == {**left, b"99999": b"in the WAL", b"ours": b"in the WAL"}
    users = theirs.get_column_family("users")
    assert list(users.items()) == [(b"7", b"ann"), (b"8", b"bob")]
    theirs[b"theirs"] = b"again"
    users.close()
    theirs.close()
    with outcrop.Db(path) as ours:
        assert ours[b"theirs"] == b"again"


def test_their_types_are_read_and_written(path):
    theirs = rocksdict.Rdict(path)
    for key, value in TYPED.items():
        theirs[key] = value
    expected = typed(theirs.items())
    theirs.close()
    with pytest.raises(outcrop.InvalidArgument, match='encoding="rocksdict"'):
        outcrop.Db(path)
    with outcrop.Db(path, encoding="rocksdict") as ours:
        assert typed(ours.items()) == expected
        assert typed(ours.items(backwards=True)) == expected[::-1]
        assert all(ours[key] == value for key, value in TYPED.items())
        assert ours.get([1, "é", "none"]) == [2, "ü", None]
        assert list(ours.keys(from_key=127))[:3] == [127, 255, 300]
        ours["ours"] = 10**30
        ours.create_column_family("numbers")[-7] = -(10**30)
        ours.flush()
        ours.compact_range(force=True)
    with outcrop.Db(path, encoding="bytes") as ours:
        assert ours[b"\x03\x01"] == b"\x03\x02"
    theirs = rocksdict.Rdict(path)
    assert theirs["ours"] == 10**30 and len(list(theirs.items())) == len(expected) + 1
    numbers = theirs.get_column_family("numbers")
    assert typed(numbers.items()) == typed([(-7, -(10**30))])
    numbers.close()
    theirs.close()


def test_what_we_made_in_their_encoding_is_theirs(path):
    numbers = [random.Random(7).randrange(-(1 << bits), 1 << bits) for bits in range(1, 140)]
    with outcrop.Db(path, encoding="rocksdict") as ours:
        ours.update((number, str(number)) for number in numbers)
        ours.update(TYPED)
        assert [key for key in ours if type(key) is int] == sorted({*numbers, *(k for k in TYPED if type(k) is int)})
        expected = typed(ours.items())
        ours.flush()
    assert json.loads(pathlib.Path(path, "rocksdict-config.json").read_text())["raw_mode"] is False
    theirs = rocksdict.Rdict(path)
    assert typed(theirs.items()) == expected
    assert theirs[numbers[5]] == str(numbers[5]) or numbers[5] in TYPED
    theirs.close()


def test_pickled_objects_are_loaded_only_on_request(path):
    theirs = rocksdict.Rdict(path)
    theirs["object"] = [1, {"a": None}]
    theirs.close()
    with outcrop.Db(path, encoding="rocksdict") as ours:
        with pytest.raises(outcrop.NotSupported, match="loads=pickle.loads"):
            ours["object"]
        with pytest.raises(TypeError, match="dumps=pickle.dumps"):
            ours["other"] = {1, 2}
        assert list(ours.keys()) == ["object"]
    with outcrop.Db(path, encoding="rocksdict", dumps=pickle.dumps, loads=pickle.loads) as ours:
        assert ours["object"] == [1, {"a": None}]
        ours["other"] = {1, 2}
        with pytest.raises(TypeError, match="a key is"):
            ours[(1, 2)] = 1
    theirs = rocksdict.Rdict(path)
    assert theirs["other"] == {1, 2}
    theirs.close()


def test_bytes_that_are_in_no_encoding_are_corrupt(path):
    with outcrop.Db(path) as db:
        db.update({b"": b"", b"\x09x": b"", b"\x02\xff": b"", b"\x04short": b"", b"\x05\x07": b""})
    with outcrop.Db(path, encoding="rocksdict") as db:
        cursor = db.iter()
        cursor.seek_to_first()
        seen = 0
        while cursor.valid():
            with pytest.raises(outcrop.Corruption):
                cursor.key()
            seen += 1
            cursor.next()
        assert seen == 5


def test_tables_that_one_writes_the_other_ingests(path, tmp_path):
    ours = outcrop.SstFileWriter(tmp_path / "ours.sst")
    ours[b"a"] = b"1"
    ours.finish()
    options = rocksdict.Options(raw_mode=True)
    writer = rocksdict.SstFileWriter(options)
    writer.open(str(tmp_path / "theirs.sst"))
    writer[b"b"] = b"2"
    writer.finish()
    theirs = raw(path)
    theirs.ingest_external_file([str(tmp_path / "ours.sst")])
    assert theirs[b"a"] == b"1"
    theirs.close()
    with outcrop.Db(path) as db:
        db.ingest_external_files([tmp_path / "theirs.sst"])
        assert dict(db.items()) == {b"a": b"1", b"b": b"2"}
