"""Compare the speed of the Python package with that of the Rust library and of `unisono bench`.

Prints ratios of medians: above 1, Python is faster. Both take turns in each round, on one instance.
Needs the package, the command on PATH, and the example `calls` of the crate `python`:

    make bench-python
"""

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time

import fsspec
import numpy as np

import unisono

LARGE = 256 << 20
CLIENTS = 4


def _rust(process, call, count, size):
    process.stdin.write(f"{call} {count} {size}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def _python(fs, call, count, size):
    data = bytes(b"\1") * size
    begun = time.perf_counter()
    for _ in range(count):
        if call == "pipe_file":
            fs.pipe_file("speed-of-python", data)
        elif call == "cat_file":
            assert len(fs.cat_file("speed-of-python")) == size
        else:
            fs.info("speed-of-python")
    return time.perf_counter() - begun


def _member(rank, elements, times, barrier, seconds):
    """Write and read a cyclic array of 8-byte elements, as one of the clients of `bench` does."""
    url = "unisono://speed-array"
    with unisono.open_array(url, "w", shape=(elements,), dtype="f8", distribution=["cyclic"], rank=rank, size=CLIENTS) as array:
        values, found = np.full(array.local_shape, rank, "f8"), np.zeros(array.local_shape)
        for _ in range(times):
            for way, call in enumerate((lambda: array.write(values), lambda: array.read(found))):
                barrier.wait()
                begun = time.perf_counter()
                call()
                seconds[way].append((rank, time.perf_counter() - begun))
        assert (found == rank).all()


def _collective(elements, times):
    """Median seconds of writes and reads, each as long as its slowest member."""
    context = multiprocessing.get_context("fork")
    with context.Manager() as manager:
        barrier, seconds = context.Barrier(CLIENTS), [manager.list(), manager.list()]
        members = [context.Process(target=_member, args=(rank, elements, times, barrier, seconds)) for rank in range(CLIENTS)]
        for member in members:
            member.start()
        for member in members:
            member.join()
            assert member.exitcode == 0
        by_rank = [[[took for who, took in way if who == rank] for rank in range(CLIENTS)] for way in seconds]
        return [statistics.median(max(call) for call in zip(*way)) for way in by_rank]


def _bench(size, times, instance):
    options = [f"--size={size}", "--pattern=wc,rc", "--record=8", "--strategy=disk-directed", f"--clients={CLIENTS}", f"--repeat={times}"]
    told = subprocess.run(["unisono", "bench", "--json", f"--instance={instance}", *options], check=True, capture_output=True)
    return [row["seconds"] for row in json.loads(told.stdout)["results"]]


def _import(statement):
    """Milliseconds of imports, as the interpreter counts them."""
    code = f"import time; begun = time.perf_counter(); {statement}; print(time.perf_counter() - begun)"
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout) * 1000


def _show(name, rust, python):
    rust, python = statistics.median(rust), statistics.median(python)
    print(f"{name:44} {rust:10.4f} s {python:10.4f} s  {rust / python:6.2f}", flush=True)


def main():
    """Start servers, measure, and stop them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calls", required=True, help="path of the example `calls`")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--small", type=int, default=10_000, help="number of small calls")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        instance = os.path.join(folder, "instance")
        os.environ |= {"UNISONO_INSTANCE": instance, "UNISONO_ALLOW_ROOT": "true"}
        subprocess.run(["unisono", "start", "--servers", "2"], check=True, capture_output=True)
        try:
            _measure(arguments, instance)
        finally:
            subprocess.run(["unisono", "stop"], check=True, capture_output=True)


def _measure(arguments, instance):
    rounds = arguments.rounds
    print(f"{'medians of ' + str(rounds) + ' rounds':44} {'Rust':>12} {'Python':>12}   ratio")
    # The members of the collective are forked before this process has a connection.
    whole, parts = [], []
    for _ in range(rounds):
        whole.append(_bench(LARGE, 3, instance))
        parts.append(_collective(LARGE // 8, 3))
    for way, name in enumerate(("write", "read")):
        _show(f"collective {name}, 8-byte records, 256 MiB", [of[way] for of in whole], [of[way] for of in parts])
    fs = fsspec.filesystem("unisono")
    with subprocess.Popen([arguments.calls], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for call, count, size in [("pipe_file", 1, LARGE), ("cat_file", 1, LARGE), ("pipe_file", 1, 100), ("info", arguments.small, 100), ("cat_file", arguments.small, 100)]:
            rust, python = [], []
            for _ in range(rounds):
                rust.append(_rust(process, call, count, size))
                python.append(_python(fs, call, count, size))
            _show(f"{call}, {count} of {size} bytes", rust, python)
        process.stdin.close()
    imports = {code: [] for code in ("import numpy", "import numpy, unisono", "import unisono")}
    for _ in range(rounds):
        for code, took in imports.items():
            took.append(_import(code))
    for code, took in imports.items():
        print(f"{code:44} {statistics.median(took):10.1f} ms")


main()
