"""Writes a distributed array by h5py with MPI, collectively, and reads it."""

import h5py
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
columns = slice(32 * comm.rank, 32 * (comm.rank + 1))
block = np.arange(64 * 32, dtype="f8").reshape(64, 32) + 10000 * comm.rank
with h5py.File("unisono://h5py.h5", "w", driver="mpio", comm=comm) as file:
    data = file.create_dataset("t", (64, 32 * comm.size), dtype="f8")
    with data.collective:
        data[:, columns] = block
with h5py.File("unisono://h5py.h5", "r", driver="mpio", comm=comm) as file:
    assert (file["t"][:, columns] == block).all()
if comm.rank == 0:
    print("h5py: passed", flush=True)
