"""Threads, processes that die, and memory."""

import os
import pathlib
import signal
import subprocess
import sys
import threading

import pytest

import outcrop


def test_threads_write_read_and_scan(db):
    failures = []

    def work(number):
        try:
            for step in range(500):
                key = b"%d/%04d" % (number, step)
                db[key] = key[::-1]
                assert db[key] == key[::-1]
            assert sum(1 for _ in db.keys(prefix=b"%d/" % number)) == 500
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and sum(1 for _ in db) == 8 * 500


def test_threads_share_a_cursor_and_a_scan(db, fill):
    fill(db, 2000)
    rows, cursor, seen, failures = db.keys(), db.iter(), [], []

    def work():
        try:
            for key in rows:
                seen.append(key)
                cursor.seek(key)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sorted(seen) == [b"key%08d" % number for number in range(2000)]


def test_other_threads_run_while_the_engine_works(path):
    """A merge operator is called from the thread of a compaction while the caller of compact_range waits in the engine."""
    called_from = set()

    def join(key, existing, operands):
        called_from.add(threading.get_ident())
        return b"".join([existing or b"", *operands])

    with outcrop.Db(path, merge_operator=outcrop.MergeOperator("test.join", join)) as db:
        for _ in range(2):
            for number in range(50):
                db.merge(b"%d" % number, b"x")
            db.flush()
        db.compact_range(force=True)
    assert called_from - {threading.get_ident()}


def test_closing_waits_for_calls_and_refuses_new_ones(path, fill):
    db = outcrop.Db(path)
    fill(db, 5000)
    begun = threading.Barrier(5)
    ends = []

    def work():
        begun.wait()
        try:
            while True:
                for _ in db.items():
                    pass
                db[b"x"] = b"y"
        except outcrop.Closed as error:
            ends.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    begun.wait()
    db.close()
    for thread in threads:
        thread.join()
    assert len(ends) == 4
    outcrop.Db(path).close()


WRITER = """
import sys, outcrop
db = outcrop.Db(sys.argv[1], {"write_buffer_size": 65536})
number = 0
while True:
    db[b"%08d" % number] = b"value" * 20
    number += 1
    if number % 1000 == 0:
        print(number, flush=True)
"""


def test_a_process_that_is_killed_loses_nothing_that_was_acknowledged(path):
    writer = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE)
    acknowledged = 0
    while acknowledged < 5000:
        acknowledged = int(writer.stdout.readline())
    writer.send_signal(signal.SIGKILL)
    rest = writer.stdout.read().split()
    acknowledged = int(rest[-1]) if rest else acknowledged
    assert writer.wait() == -signal.SIGKILL
    with outcrop.Db(path) as db:
        keys = list(db)
        assert keys == [b"%08d" % number for number in range(len(keys))]
        assert len(keys) >= acknowledged
        db.verify_checksums()


LEAVER = """
import sys, outcrop
db = outcrop.Db(sys.argv[1])
db.put(b"a", b"1", options=outcrop.WriteOptions(disable_wal=True))
"""


def test_a_process_that_ends_closes_its_databases(path):
    subprocess.run([sys.executable, "-c", LEAVER, path], check=True)
    with outcrop.Db(path, mode="read_only") as db:
        # It was in no WAL.
        assert db[b"a"] == b"1"


FORKER = """
import os, sys, outcrop
db = outcrop.Db(sys.argv[1])
db[b"a"] = b"1"
child = os.fork()
if child == 0:
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
db[b"b"] = b"2"
db.flush()
assert list(db) == [b"a", b"b"]
"""


def test_a_child_that_was_forked_leaves_the_database_alone(path):
    subprocess.run([sys.executable, "-c", FORKER, path], check=True)
    with outcrop.Db(path) as db:
        assert list(db) == [b"a", b"b"]


def resident_kib():
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="asks Linux for the resident memory")
def test_memory_of_scans_cursors_and_batches_does_not_grow(db):
    db.update((b"%06d" % number, bytes(400)) for number in range(5000))
    db.flush()

    def rounds(count):
        for _ in range(count):
            for _row in db.items():
                pass
            list(db.keys(True))
            cursor = db.iter()
            cursor.seek_to_first()
            for _step in range(100):
                cursor.next()
            with db.snapshot() as moment:
                moment.get([b"000001", b"none"])
            next(db.items())  # Dropped on its way.
            with db.batch() as batch:
                batch[b"000000"] = bytes(400)

    rounds(20)
    before = resident_kib()
    rounds(100)
    # A hundred rounds read 200 MB: one row in fifty that was kept would show.
    assert resident_kib() - before < 4096
