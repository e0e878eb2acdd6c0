"""Uses the Python package by all ranks of an MPI program: an array, a file of fsspec, a simulation.

    unisono run --servers 2 --discard -- mpiexec -n 2 python tour.py
"""

import fsspec
import numpy as np
from mpi4py import MPI

import unisono

comm = MPI.COMM_WORLD
shape = (64 * comm.size, 256)
whole = np.arange(shape[0] * shape[1], dtype="f8").reshape(shape)

with unisono.open_array(
    "unisono://tour.npy", "w", shape=shape, dtype="f8", distribution=("block", None), comm=comm
) as array:
    array.write(whole[64 * comm.rank : 64 * (comm.rank + 1)])
with unisono.open_array("unisono://tour.npy", distribution=("cyclic(4)", None), comm=comm) as array:
    assert (array.read() == whole[np.ix_(*array.local_indices)]).all()

if comm.rank == 0:
    with fsspec.open("unisono://tour.npy", "rb") as file:
        assert (np.load(file) == whole).all()
    rows = unisono.simulate(pattern="rc", record=8192, size="1MiB", trials=1)
    print(f"tour: {comm.size} ranks, unisono {unisono.__version__}, {len(rows)} simulated rows")
