"""Compare selections by the servers with reading everything and selecting in the program.

Prints ratios of medians, side by side on one instance in interleaved rounds: above 1, the servers are faster.
Records have 64 bytes; the file has 1 GiB (``--gib``), and is in the page cache. Needs the package, and `unisono` on PATH:

    python3 python/bench/records.py
    mpiexec -n 4 python3 python/bench/records.py --redistribute      needs mpi4py
    scripts/bench-limited-network                                    the servers behind a network of limited rate
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import unisono

DTYPE = np.dtype([("id", "<u8"), ("energy", "<f8"), ("sorted", "<f8"), ("rest", "<u8", 5)])
PIECE = 1 << 20


@contextlib.contextmanager
def _instance(servers):
    """Start servers, unless UNISONO_INSTANCE names some; return the directory of the instance."""
    if "UNISONO_INSTANCE" in os.environ:
        yield os.environ["UNISONO_INSTANCE"]
        return
    with tempfile.TemporaryDirectory() as directory:
        instance = os.path.join(directory, "instance")
        command = ["unisono", "start", "--servers", str(servers), "--instance", instance]
        subprocess.run(command, check=True, capture_output=True)
        try:
            yield instance
        finally:
            subprocess.run(["unisono", "stop", "--instance", instance], check=False, capture_output=True)


def _fill(name, count, instance):
    """Make the file, piece by piece."""
    numbers = np.random.default_rng(1)
    with unisono.open_array(name, "w", shape=(count,), dtype=DTYPE, instance=instance):
        pass
    offset = unisono.open_records(name, instance=instance).offset
    with unisono.connect(instance).open(name, "a") as file:
        for first in range(0, count, PIECE):
            made = np.zeros(min(PIECE, count - first), DTYPE)
            made["id"] = np.arange(first, first + len(made))
            made["energy"], made["sorted"] = numbers.random(len(made)), made["id"] / count
            file.write(offset + first * DTYPE.itemsize, made)
        file.flush(sync=True)


def _filled(arguments, instance):
    """Make the file; return it as an array and as records, and memory for all of it."""
    count = int(arguments.gib * (1 << 30)) // DTYPE.itemsize
    _fill("bench-records", count, instance)
    array = unisono.open_array("bench-records", instance=instance)
    return array, unisono.open_records("bench-records", instance=instance), np.zeros(count, DTYPE)


def _seconds(call):
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def _table(calls, rounds, against):
    """Run calls in turn; print the median of each, and its ratio to those named."""
    times = {name: [] for name in calls}
    for round_ in range(rounds + 1):
        for name, call in calls.items():
            seconds = _seconds(call)
            if round_:
                times[name].append(seconds)
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    print(f"{'call':32} {'s':>7}  " + "  ".join(f"{'to ' + one:>18}" for one in against))
    for name, seconds in medians.items():
        ratios = "  ".join(f"{medians[one] / seconds:18.2f}" for one in against)
        print(f"{name:32} {seconds:7.3f}  {ratios}")


def select(arguments, instance):
    """Compare with a plain collective read, and with NumPy's mask of what was read."""
    array, records, out = _filled(arguments, instance)

    def masked():
        found = array.read()
        return found[found["energy"] < 0.01]

    def masked_again():
        array.read(out)
        return out[out["energy"] < 0.01]

    calls = {
        "plain read": lambda: array.read(out),
        "read and mask": masked,
        "read to old memory and mask": masked_again,
        "select 0.01 %": lambda: records.read_where("energy < 0.0001"),
        "select 1 %": lambda: records.read_where("energy < 0.01"),
        "select 10 %": lambda: records.read_where("energy < 0.1"),
        "select 50 %": lambda: records.read_where("energy < 0.5"),
        "count": lambda: records.count_where("energy < 0.5"),
        "sum": lambda: records.sum("energy"),
        "maximum with a condition": lambda: records.maximum("id", "energy < 0.3"),
        "histogram of 100 bins": lambda: records.histogram("energy", 100, (0, 1)),
    }
    _table(calls, arguments.rounds, ["plain read", "read and mask", "read to old memory and mask"])
    wanted = "0.5 <= sorted < 0.51"
    before = statistics.median(_seconds(lambda: records.read_where(wanted)) for _ in range(arguments.rounds))
    all_blocks = records.blocks_read
    summarised = _seconds(lambda: records.summarise("sorted"))
    after = statistics.median(_seconds(lambda: records.read_where(wanted)) for _ in range(arguments.rounds))
    print(
        f"1 % of a sorted field: {before:.3f} s and {all_blocks} blocks; with bounds, which took {summarised:.3f} s, "
        f"{after:.4f} s and {records.blocks_read} blocks: {before / after:.0f} times as fast"
    )


def _received():
    """Return the bytes that the network interfaces of this host have received, without loopback."""
    with open("/proc/net/dev") as lines:
        interfaces = [line.split(":") for line in lines if ":" in line]
    return sum(int(numbers.split()[0]) for name, numbers in interfaces if name.strip() != "lo")


def shares(arguments, instance):
    """Compare by the share of the records that match: the time, and the bytes that travel."""
    array, records, out = _filled(arguments, instance)

    def masked(limit):
        array.read(out)
        return out[out["energy"] < limit]

    def selected(limit):
        return records.read_where(records["energy"] < limit)

    print("match    read and mask, s   select, s   times as fast   MiB read   MiB selected   times fewer")
    for limit in (1.0, 0.5, 0.2, 0.1, 0.05, 0.01, 0.001):
        assert (masked(limit) == selected(limit)).all()
        found = {masked: [], selected: []}
        for _ in range(arguments.rounds):
            for call, measured in found.items():
                before = _received()
                measured.append((_seconds(lambda call=call, limit=limit: call(limit)), _received() - before))
        (read_s, read), (select_s, select) = ([statistics.median(one) for one in zip(*found[call])] for call in (masked, selected))
        print(
            f"{limit:6.1%} {read_s:18.3f} {select_s:11.3f} {read_s / select_s:15.2f} {read / 2**20:10.1f} {select / 2**20:14.2f}"
            f" {read / max(select, 1):13.2f}",
            flush=True,
        )


def redistribute(arguments, instance):
    """Compare `read_by` with a collective read of equal parts and an exchange by MPI."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    count = int(arguments.gib * (1 << 30)) // DTYPE.itemsize
    if comm.rank == 0:
        _fill("bench-records", count, instance)
    comm.Barrier()
    array = unisono.open_array("bench-records", comm=comm, instance=instance)
    records = unisono.open_records("bench-records", comm=comm, instance=instance)
    own = np.zeros(array.local_shape, DTYPE)

    def exchange():
        array.read(own)
        owner = (own["id"] % comm.size).astype(np.intp)
        sent = own[np.argsort(owner, kind="stable")]
        counts = np.bincount(owner, minlength=comm.size) * DTYPE.itemsize
        got = np.empty_like(counts)
        comm.Alltoall(counts, got)
        found = np.empty(got.sum() // DTYPE.itemsize, DTYPE)
        sides = [(values, sizes, np.concatenate([[0], np.cumsum(sizes)[:-1]])) for values, sizes in ((sent, counts), (found, got))]
        comm.Alltoallv(*([side[0].view("u1"), side[1], side[2], MPI.BYTE] for side in sides))
        return found

    def by():
        return records.read_by(records["id"] % comm.size)

    assert (exchange() == by()).all()
    times = {"read and exchange by MPI": [], "read_by": []}
    for _ in range(arguments.rounds):
        for name, call in (("read and exchange by MPI", exchange), ("read_by", by)):
            comm.Barrier()
            seconds = _seconds(call)
            times[name].append(comm.allreduce(seconds, op=MPI.MAX))
    if comm.rank == 0:
        medians = {name: statistics.median(seconds) for name, seconds in times.items()}
        for name, seconds in medians.items():
            print(f"{name:32} {seconds:7.3f}  {medians['read and exchange by MPI'] / seconds:.2f}")


def main():
    """Run one of the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=1.0, help="GiB of the file")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--redistribute", action="store_true", help="compare read_by with an exchange by MPI")
    parser.add_argument("--shares", action="store_true", help="compare by the share of the records that match")
    arguments = parser.parse_args()
    if arguments.redistribute:
        if "UNISONO_INSTANCE" not in os.environ:
            sys.exit("error: no instance\ncause: UNISONO_INSTANCE is not set\nhelp:  unisono start, and set it for all ranks")
        redistribute(arguments, os.environ["UNISONO_INSTANCE"])
        return
    with _instance(arguments.servers) as instance:
        (shares if arguments.shares else select)(arguments, instance)


main()
