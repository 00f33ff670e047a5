"""Opening, options, column families, copies and what else concerns a database as a whole."""

import gc
import os
import pathlib
import weakref

import pytest

import outcrop


def test_closing_ends_everything_that_belongs_to_it(path):
    db = outcrop.Db(path)
    other = db.create_column_family("other")
    db[b"a"] = b"1"
    rows, cursor, moment, batch = db.items(), db.iter(), db.snapshot(), db.batch()
    cursor.seek_to_first()
    assert not db.closed
    db.close()
    db.close()
    assert db.closed and "closed" in repr(db)
    calls = [
        lambda: db[b"a"],
        lambda: db.put(b"a", b"2"),
        lambda: other.get(b"a"),
        lambda: next(rows),
        cursor.valid,
        cursor.key,
        cursor.next,
        cursor.seek_to_first,
        lambda: moment[b"a"],
        db.metrics,
        db.snapshot,
        db.iter,
        batch.commit,
        other.flush,
    ]
    for call in calls:
        with pytest.raises(outcrop.Closed):
            call()
    # What is left of them does not keep the directory.
    with outcrop.Db(path) as again:
        assert again[b"a"] == b"1"
        del rows, cursor, moment, batch
        again[b"b"] = b"2"
        again.flush()
    with outcrop.Db(path) as again:
        assert list(again) == [b"a", b"b"]


def test_a_database_that_nobody_holds_is_closed(path):
    db = outcrop.Db(path)
    known = weakref.ref(db)
    with pytest.raises(outcrop.IoError, match="LOCK"):
        outcrop.Db(path)
    family = db.column_family("default")
    del db
    gc.collect()
    assert known() is None
    family[b"a"] = b"1"  # A column family holds it.
    del family
    gc.collect()
    outcrop.Db(path).close()


def test_column_families(path):
    with outcrop.Db(path, column_families=["users"]) as db:
        log = db.create_column_family("log", {"write_buffer_size": 1 << 20})
        assert db.column_families() == ["default", "users", "log"]
        users = db.column_family("users")
        users[b"7"] = b"ann"
        log[b"1"] = b"in"
        assert b"7" not in db and (users.name, users.id, db.name) == ("users", 1, "default")
        assert log.options()["write_buffer_size"] == "1048576"
        with pytest.raises(outcrop.NotFound, match="there are default, users, log"):
            db.column_family("none")
        with pytest.raises(outcrop.InvalidArgument):
            db.create_column_family("log")
    assert outcrop.Db.list_column_families(path) == ["default", "users", "log"]
    # None need be named, and settings stay.
    with outcrop.Db(path) as db:
        assert db.column_family("log").options()["write_buffer_size"] == "1048576"
        assert db.column_family("users")[b"7"] == b"ann"
        users = db.column_family("users")
        db.drop_column_family("users")
        assert users[b"7"] == b"ann"  # Whoever holds it may still read.
        with pytest.raises(outcrop.InvalidArgument, match="users was dropped"):
            users[b"8"] = b""
        with pytest.raises(outcrop.ColumnFamilyDropped):
            users.flush()
    assert outcrop.Db.list_column_families(path) == ["default", "log"]


def test_options_have_rocksdbs_names(path):
    options = {
        "write_buffer_size": 8 << 20,
        "compression": "kZSTD",
        "max_open_files": 100,
        "paranoid_checks": True,
        "max_bytes_for_level_multiplier_additional": [1, 2, 3],
        "block_based_table_factory": {"block_size": 8192, "cache_index_and_filter_blocks": True},
    }
    families = {"users": "write_buffer_size=2M;compression=kNoCompression", "log": None}
    with outcrop.Db(path, options, families) as db:
        shown = db.options()
        assert (shown["write_buffer_size"], shown["compression"]) == (str(8 << 20), "kZSTD")
        assert shown["block_size"] == "8192"
        assert shown["max_bytes_for_level_multiplier_additional"] == "1:2:3"
        assert db.db_options()["max_open_files"] == "100"
        assert db.column_family("users").options()["write_buffer_size"] == str(2 << 20)
        assert db.column_family("log").options()["write_buffer_size"] == str(64 << 20)
    text = max(pathlib.Path(path).glob("OPTIONS-*")).read_text()
    assert "block_size=8192" in text and "cache_index_and_filter_blocks=true" in text
    # The stored ones hold, but for what is given.
    with outcrop.Db(path, {"write_buffer_size": 4 << 20}) as db:
        shown = db.options()
        assert (shown["write_buffer_size"], shown["compression"]) == (str(4 << 20), "kZSTD")
        db.set_options({"write_buffer_size": 3 << 20, "disable_auto_compactions": True})
        assert db.options()["disable_auto_compactions"] == "true"
        db.set_db_options({"max_background_jobs": 3})
        assert db.db_options()["max_background_jobs"] == "3"
        with pytest.raises(outcrop.InvalidArgument, match="cannot change"):
            db.set_options({"num_levels": 3})


@pytest.mark.parametrize(
    "options, message",
    [
        ({"write_bufer_size": 1}, "unknown option write_bufer_size; did you mean write_buffer_size"),
        ({"write_buffer_size": "big"}, "write_buffer_size"),
        ("write_buffer_size", "="),
        ({"block_based_table_factory": {"blok_size": 1}}, "did you mean block_size"),
    ],
)
def test_an_option_that_cannot_be_is_refused_by_name(path, options, message):
    with pytest.raises(outcrop.InvalidArgument, match=message):
        outcrop.Db(path, options)
    assert not os.path.exists(path)


def test_options_of_the_wrong_kind_are_refused(path):
    with pytest.raises(TypeError, match="mapping"):
        outcrop.Db(path, [("write_buffer_size", 1)])
    with pytest.raises(TypeError, match="option compression"):
        outcrop.Db(path, {"compression": b"kZSTD"})
    with pytest.raises(outcrop.InvalidArgument, match="as a whole"):
        outcrop.Db(path, column_families={"users": {"max_open_files": 10}})
    for wrong in ({"mode": "rw"}, {"transactions": "some"}, {"encoding": "pickle"}, {"loads": len}):
        with pytest.raises(outcrop.InvalidArgument):
            outcrop.Db(path, **wrong)
    assert not os.path.exists(path)


def test_a_missing_database_is_created_unless_told_otherwise(path):
    with pytest.raises(outcrop.InvalidArgument, match="create_if_missing"):
        outcrop.Db(path, create_if_missing=False)
    outcrop.Db(path).close()
    with pytest.raises(outcrop.InvalidArgument, match="error_if_exists"):
        outcrop.Db(path, {"error_if_exists": True})
    # Not stored as the habit of this database.
    outcrop.Db(path).close()


def test_reading_only_and_following(path):
    with outcrop.Db(path) as db:
        db[b"a"] = b"1"
        with outcrop.Db(path, mode="read_only") as reader, outcrop.Db(path, mode="secondary") as follower:
            assert reader[b"a"] == follower[b"a"] == b"1"
            db[b"b"] = b"2"
            assert b"b" not in reader and b"b" not in follower
            follower.try_catch_up_with_primary()
            assert follower[b"b"] == b"2" and b"b" not in reader
            for one in (reader, follower):
                with pytest.raises(outcrop.OutcropError):
                    one[b"c"] = b"3"
            with pytest.raises(outcrop.NotSupported):
                reader.try_catch_up_with_primary()


def test_flushes_compactions_and_properties(db, fill):
    fill(db, 2000)
    db.flush()
    fill(db, 2000)
    db.flush()
    assert db.property("rocksdb.num-files-at-level0") == "2"
    db.compact_range(force=True)
    assert db.property("rocksdb.num-files-at-level0") == "0"
    assert db.property_int("rocksdb.estimate-num-keys") == 2000
    assert db.property("rocksdb.none") is None
    assert "cfstats" in db.property("rocksdb.cfstats") or db.property_map("rocksdb.cfstats")
    (file,) = db.live_files()
    assert file["num_entries"] == 2000 and file["smallest_key"] == b"key00000000" and file["level"] > 0
    assert 'outcrop_sealed_memtables{column_family="default"} 0' in db.metrics()
    assert db.statistics() is None
    db.wait_for_compact(flush=True, timeout=600)
    db.verify_checksums()
    db[b"z"] = b""
    db.flush_wal()
    db.flush_all()
    assert db.property("rocksdb.num-files-at-level0") == "1"


def test_statistics_count(path):
    with outcrop.Db(path, statistics=True) as db:
        db[b"a"] = b"1"
        db.get([b"a", b"b"])
        assert "rocksdb.number.keys.written COUNT : 1" in db.statistics()


def test_databases_share_a_memory_budget(tmp_path):
    with pytest.raises(outcrop.InvalidArgument, match="memory_budget"):
        outcrop.MemoryBudget(1 << 20)
    budget = outcrop.MemoryBudget(32 << 20)
    assert budget.bytes == 32 << 20 and budget.usage()["total"] == 0
    before = 0
    with outcrop.Db(tmp_path / "a", memory_budget=budget) as a, outcrop.Db(tmp_path / "b", memory_budget=budget) as b:
        for db in (a, b):
            for i in range(1000):
                db[b"%08d" % i] = b"v" * 1000
            assert budget.usage()["memtables"] >= before + 1_000_000
            before = budget.usage()["memtables"]
        a.flush()
        assert sum(1 for _ in a.items()) == 1000
        usage = budget.usage()
        assert usage["blocks"] > 0 and usage["tables"] > 0
        assert usage["total"] == sum(usage.values()) - usage["total"] <= budget.bytes
    # Objects of a closed database keep its memtables.
    del a, b, db
    gc.collect()
    assert budget.usage()["memtables"] == 0
    with pytest.raises(outcrop.InvalidArgument, match="contradicts memory_budget"):
        outcrop.Db(tmp_path / "c", {"db_write_buffer_size": 1 << 20}, memory_budget=budget)


def test_checkpoints_and_backups(db, fill, tmp_path):
    fill(db, 100)
    checkpoint = tmp_path / "checkpoint"
    db.create_checkpoint(checkpoint)
    with outcrop.BackupEngine(tmp_path / "backups") as backups:
        first = backups.create_backup(db, flush=True, metadata=b"before")
        db.delete_range(b"", b"z")
        second = backups.create_backup(db)
        assert [(info["id"], info["metadata"]) for info in backups.backups()] == [(first, b"before"), (second, b"")]
        backups.verify(first)
        backups.restore(tmp_path / "restored", first)
        backups.restore(tmp_path / "newest")
        backups.purge_old(1)
        assert [info["id"] for info in backups.backups()] == [second]
        with pytest.raises(outcrop.NotFound):
            backups.verify(first)
        backups.delete(second)
        with pytest.raises(outcrop.NotFound, match="no backup"):
            backups.restore(tmp_path / "none")
    with pytest.raises(outcrop.Closed):
        backups.backups()
    for copy, count in ((checkpoint, 100), (tmp_path / "restored", 100), (tmp_path / "newest", 0)):
        with outcrop.Db(copy, create_if_missing=False) as one:
            assert sum(1 for _ in one) == count


def test_tables_are_written_and_ingested(db, tmp_path):
    users = db.create_column_family("users")
    writer = outcrop.SstFileWriter(tmp_path / "rows.sst", {"compression": "kZSTD"})
    for number in range(1000):
        writer[b"%04d" % number] = b"v%d" % number
    with pytest.raises(outcrop.InvalidArgument):
        writer.put(b"0000", b"")
    assert writer.file_size() >= 0
    info = writer.finish()
    assert (info["num_entries"], info["smallest_key"], info["largest_key"]) == (1000, b"0000", b"0999")
    with pytest.raises(outcrop.InvalidArgument, match="finished"):
        writer.finish()
    with pytest.raises(outcrop.Closed):
        writer.put(b"a", b"b")
    users.ingest_external_files([tmp_path / "rows.sst"], move_files=True)
    assert users[b"0999"] == b"v999" and sum(1 for _ in users) == 1000 and list(db) == []


def test_a_damaged_database_is_refused_and_repaired(path, fill):
    with outcrop.Db(path) as db:
        fill(db, 100)
        db.flush()
    for manifest in pathlib.Path(path).glob("MANIFEST-*"):
        manifest.write_bytes(b"\0" * 100)
    with pytest.raises(outcrop.Corruption, match="MANIFEST"):
        outcrop.Db(path)
    report = outcrop.Db.repair(path)
    assert "default" in report
    with outcrop.Db(path) as db:
        assert sum(1 for _ in db) == 100
    outcrop.Db.destroy(path)
    assert not pathlib.Path(path, "CURRENT").exists()


def test_a_damaged_block_is_named(path, fill):
    with outcrop.Db(path, {"compression": "kNoCompression"}) as db:
        fill(db, 1000)
        db.flush()
    (table,) = pathlib.Path(path).glob("*.sst")
    contents = bytearray(table.read_bytes())
    contents[500] ^= 1
    table.write_bytes(contents)
    with outcrop.Db(path) as db:
        with pytest.raises(outcrop.Corruption, match="sst"):
            db[b"key%08d" % 1]
        rows = db.items()
        with pytest.raises(outcrop.Corruption, match="sst"):
            list(rows)
        with pytest.raises(StopIteration):
            next(rows)


def test_errors_are_what_python_knows_too(db):
    assert issubclass(outcrop.InvalidArgument, ValueError)
    assert issubclass(outcrop.IoError, OSError)
    assert issubclass(outcrop.TimedOut, TimeoutError)
    assert issubclass(outcrop.NoSpace, outcrop.IoError)
    kinds = {getattr(outcrop, name) for name in outcrop.__all__}
    errors = {kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception)}
    assert all(issubclass(kind, outcrop.OutcropError) and kind.__doc__ for kind in errors)


def test_everything_has_a_docstring():
    for name in outcrop.__all__:
        thing = getattr(outcrop, name)
        if not isinstance(thing, type):
            continue
        assert thing.__doc__, name
        own = [(key, value) for key, value in vars(thing).items() if not key.startswith("_")]
        for key, value in own:
            if not issubclass(thing, Exception):
                assert value.__doc__, f"{name}.{key}"


def test_values_expire(path, tmp_path):
    with outcrop.Db(path, ttl=3600) as db:
        db[b"a"] = b"token"
        assert (db[b"a"], list(db.items())) == (b"token", [(b"a", b"token")])
        cursor = db.iter()
        cursor.seek_to_first()
        assert cursor.value() == b"token"
        with db.batch() as batch:
            batch[b"b"] = b"other"
        assert db.get([b"a", b"b"]) == [b"token", b"other"]
        forever = db.create_column_family("forever", ttl=0)
        forever[b"a"] = b"1970"
        forever.set_ttl(60)
        for refused in (
            lambda: db.put_entity(b"c", {b"a": b"b"}),
            lambda: db.get_entity(b"a"),
            lambda: db.ingest_external_files([tmp_path / "x.sst"]),
        ):
            with pytest.raises(outcrop.NotSupported):
                refused()
    with outcrop.Db(path, ttl=0, mode="read_only") as db:
        assert db[b"a"] == b"token"
    # Without ttl the times show.
    with outcrop.Db(path) as db:
        assert len(db[b"a"]) == len(b"token") + 4
        with pytest.raises(outcrop.NotSupported):
            db.set_ttl(1)
        with pytest.raises(outcrop.NotSupported):
            db.create_column_family("x", ttl=1)
