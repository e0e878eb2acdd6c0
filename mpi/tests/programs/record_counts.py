"""Calls with counts for each rank, as mpi4py makes them: record_counts.py FILE. Run with 4 ranks."""

import sys

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
counts = [1, 2, 3, 4]
mine = np.full(counts[rank], rank, dtype=np.float64)
expected = np.repeat(np.arange(4.0), counts)

every = np.zeros(10) if rank == 2 else None
comm.Gatherv(mine, [every, counts] if rank == 2 else None, root=2)
assert rank != 2 or (every == expected).all()
mine[:] = -1
comm.Scatterv([every, counts] if rank == 2 else None, mine, root=2)
assert (mine == rank).all()
found = np.zeros(10)
comm.Allgatherv(mine, [found, counts])
assert (found == expected).all()
comm.Iallgatherv(mine, [found, counts]).Wait()
assert (found == expected).all()
out, back = np.arange(4.0), np.zeros(4)
comm.Alltoallv([out, [1] * 4], [back, [1] * 4])
assert (back == rank).all()
comm.Alltoallv(MPI.IN_PLACE, [back, [1] * 4])
part = np.zeros(counts[rank])
comm.Reduce_scatter(np.ones(10), part, counts)
assert (part == 4).all()
whole = np.ones(10)
comm.Reduce_scatter(MPI.IN_PLACE, whole, counts)

file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Write_at_all(64 * rank, np.full(8, rank, dtype=np.float64))
found = np.zeros(8)
file.Read_at_all(64 * (size - 1 - rank), found)
assert (found == size - 1 - rank).all()
file.Close()
if rank == 0:
    print("record_counts: passed")
