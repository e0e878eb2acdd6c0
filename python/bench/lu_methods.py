"""The out-of-core LU factorisation of lu.py by each method, in one interleaved run.

    OMP_NUM_THREADS=1 mpiexec -n 4 python python/bench/lu_methods.py [ORDER [SLAB [ROUNDS [C|F [METHOD,...]]]]]

Needs an instance (UNISONO_INSTANCE), mpi4py and SciPy. Prints, for each method, the median time of the factorisation and its
ratio to that of disk-directed; and the memory that a process took for itself at its peak, without what it shares with the
servers, beside the size of the matrix.
"""

import re
import sys
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

import unisono

import lu

METHODS = "disk-directed,two-phase,caching"


def measured(storage, order, slab, method, comm):
    """Return the time of a factorisation, of the slowest process."""
    options = {"comm": comm, "method": method}
    with (
        unisono.open_array("matrix", distribution=("block", None), **options) as matrix,
        unisono.open_array(
            "factors", "w", shape=(order, order), dtype="f8", order=storage, distribution=(None, "block"), **options
        ) as factors,
    ):
        comm.barrier()
        begun = time.perf_counter()
        lu.factor(matrix, factors, slab, comm)
        comm.barrier()
        return comm.allreduce(time.perf_counter() - begun, MPI.MAX)


def own_memory():
    """Return the greatest memory of this process so far without what it shares, in MiB."""
    status = Path("/proc/self/status").read_text()
    peak, shared = (int(re.search(rf"{word}:\s+(\d+) kB", status)[1]) for word in ("VmHWM", "RssShmem"))
    return (peak - shared) / 1024


def main(order=3072, slab=192, rounds=3, storage="F", methods=METHODS):
    """Make a matrix, and factor it by each method in turn."""
    methods = methods.split(",")
    comm = MPI.COMM_WORLD
    before = own_memory()
    described = {"shape": (order, order), "dtype": "f8", "order": storage, "distribution": ("block", None)}
    with unisono.open_array("matrix", "w", comm=comm, **described) as matrix:
        # A slab of rows at a time, so that no process ever holds more.
        for first in range(0, order, slab):
            rows = matrix.view(slice(first, first + slab), distribution=("block", None))
            values = np.random.default_rng([first, comm.rank]).standard_normal(rows.local_shape)
            rows.write(np.asarray(values, order=storage))
    times = {method: [] for method in methods}
    for _ in range(rounds):
        for method in methods:
            times[method].append(measured(storage, order, slab, method, comm))
    peak = comm.allreduce(own_memory() - before, MPI.MAX)
    if comm.rank == 0:
        first = float(np.median(times[methods[0]]))
        print(f"LU of {order} x {order} ({order * order * 8 / 2**20:.0f} MiB, {storage} order), slabs of {slab} columns, {comm.size} processes")
        for method in methods:
            median = float(np.median(times[method]))
            print(f"{method:15s} {median:8.2f} s, {median / first:5.2f} times {methods[0]} ({', '.join(f'{one:.2f}' for one in times[method])})")
        print(f"a process took up to {peak:.0f} MiB more than at its start")


if __name__ == "__main__":
    main(*(int(word) if word.isdigit() else word for word in sys.argv[1:]))
