"""Heat equation on a square, whose steps are written into one file by collective MPI-IO.

    mpiexec -n 4 python heat.py heat.dat
"""

import sys

import numpy as np
from mpi4py import MPI

SIDE, STEPS = 2048, 10

comm = MPI.COMM_WORLD
grid = comm.Create_cart(MPI.Compute_dims(comm.size, 2))
rows, columns = (SIDE // parts for parts in grid.dims)
first = [place * extent for place, extent in zip(grid.coords, (rows, columns))]
subarray = MPI.DOUBLE.Create_subarray((SIDE, SIDE), (rows, columns), first).Commit()

# A block with a border of one cell for the neighbours; the left edge of the square is hot.
heat = np.zeros((rows + 2, columns + 2))
if grid.coords[1] == 0:
    heat[:, 0] = 100.0


def exchange(axis):
    """Exchanges borders with the neighbours along an axis."""
    view = heat if axis == 0 else heat.T
    before, after = grid.Shift(axis, 1)
    for source, target, sent, received in ((before, after, -2, 0), (after, before, 1, -1)):
        buffer = np.ascontiguousarray(view[sent])
        grid.Sendrecv_replace(buffer, target, source=source)
        if source != MPI.PROC_NULL:
            view[received] = buffer


file = MPI.File.Open(grid, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_WRONLY)
for step in range(STEPS):
    exchange(0)
    exchange(1)
    inner = heat[1:-1, 1:-1]
    around = heat[:-2, 1:-1] + heat[2:, 1:-1] + heat[1:-1, :-2] + heat[1:-1, 2:]
    inner[:] = inner + 0.2 * (around - 4 * inner)
    file.Set_view(step * SIDE * SIDE * 8, MPI.DOUBLE, subarray)
    file.Write_all(np.ascontiguousarray(inner))
file.Close()
total = grid.allreduce(heat[1:-1, 1:-1].sum())
if grid.rank == 0:
    print(f"heat: {STEPS} steps of {SIDE} x {SIDE} cells, mean {total / SIDE**2:.6f}")
