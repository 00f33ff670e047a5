"""Outcrop beside RocksDB (the package rocksdict): operations a second from Python, for docs/python.md.

    python compare.py [--rounds 7] [--keys 100000]

Each round runs each step on both, one after the other, each in a fresh process on a fresh database; which is first changes with the round.
Keys of 16 bytes, values of 100, in random order; writes with WAL and without sync; reads of tables that were flushed and compacted, cached.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time

STEPS = ["put", "batch of 100", "get", "get, not there", "get of 100", "items()", "items(), backwards", "iter(): seek + 10 next"]


def rates(engine, count):
    """Operations a second by step."""
    keys = [b"key%013d" % number for number in range(count)]
    random.Random(1).shuffle(keys)
    value = random.Random(2).randbytes(100)
    directory = tempfile.TemporaryDirectory()
    if engine == "outcrop":
        import outcrop

        db = outcrop.Db(directory.name + "/db")
        compact = lambda: db.compact_range()

        def batch():
            return outcrop.WriteBatch(db)
    else:
        import rocksdict

        db = rocksdict.Rdict(directory.name + "/db", rocksdict.Options(raw_mode=True))
        compact = lambda: db.compact_range(None, None)

        def batch():
            return rocksdict.WriteBatch(raw_mode=True)

    found = {}

    def timed(step, operations, work):
        start = time.perf_counter()
        work()
        found[step] = operations / (time.perf_counter() - start)

    def put():
        for key in keys:
            db[key] = value

    def put_batches():
        for first in range(0, count, 100):
            one = batch()
            for key in keys[first : first + 100]:
                one[key] = value
            db.write(one)

    def get():
        for key in keys:
            db[key]

    def get_missing():
        for key in keys:
            db.get(key + b"x")

    def get_lists():
        for first in range(0, count, 100):
            db.get(keys[first : first + 100])

    def scan(backwards):
        assert sum(1 for _ in db.items(backwards=backwards)) == count

    def seeks():
        cursor = db.iter()
        for key in keys[: count // 10]:
            cursor.seek(key)
            for _ in range(10):
                if cursor.valid():
                    cursor.key(), cursor.value()
                    cursor.next()

    timed("put", count, put)
    timed("batch of 100", count, put_batches)
    db.flush()
    compact()
    for _ in db.items():
        pass
    timed("get", count, get)
    timed("get, not there", count, get_missing)
    timed("get of 100", count, get_lists)
    timed("items()", count, lambda: scan(False))
    timed("items(), backwards", count, lambda: scan(True))
    timed("iter(): seek + 10 next", count // 10, seeks)
    db.close()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.engine:
        print(json.dumps(rates(arguments.engine, arguments.keys)))
        return
    results = {"outcrop": [], "rocksdict": []}
    for number in range(arguments.rounds):
        for engine in sorted(results, reverse=number % 2 == 1):
            command = [sys.executable, __file__, "--engine", engine, "--keys", str(arguments.keys)]
            results[engine].append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
    print("| step | rocksdict, a second | Outcrop, a second | ratio: median (least to most) |\n|---|---:|---:|---:|")
    for step in STEPS:
        ours, theirs = ([one[step] for one in results[engine]] for engine in ("outcrop", "rocksdict"))
        ratios = [our / their for our, their in zip(ours, theirs)]
        print(
            f"| {step} | {statistics.median(theirs):,.0f} | {statistics.median(ours):,.0f} "
            f"| {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |"
        )


main()
