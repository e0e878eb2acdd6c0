"""Small programs of mpi4py and h5py, for `make accuracy`.

    python kernels.py FILE heat STEPS          heat equation, whose steps are written collectively
    python kernels.py FILE overlap STEPS       non-blocking collective writes while ranks compute
    python kernels.py FILE blocks COUNT        independent reads of blocks in an order of each rank
    python kernels.py FILE h5write STEPS       h5py: collective writes of hyperslabs
    python kernels.py FILE h5read STEPS        h5py: independent reads of rows

The last line that is printed has the seconds from the import of MPI to the end, of the slowest rank.
"""

import sys

import numpy as np
from mpi4py import MPI

begun = MPI.Wtime()
comm = MPI.COMM_WORLD
SIDE = 2048


def heat(name, steps):
    """Writes each step of the heat equation on a square."""
    rows = SIDE // comm.size
    grid = np.zeros((rows + 2, SIDE))
    grid[:, 0] = 100.0
    before, after = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    file = MPI.File.Open(comm, name, MPI.MODE_CREATE | MPI.MODE_WRONLY)
    for step in range(steps):
        comm.Sendrecv(grid[-2].copy(), after, recvbuf=grid[0], source=before)
        comm.Sendrecv(grid[1].copy(), before, recvbuf=grid[-1], source=after)
        inner = grid[1:-1, 1:-1]
        around = grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]
        inner += 0.2 * (around - 4 * inner)
        file.Write_at_all((step * comm.size + comm.rank) * rows * SIDE * 8, grid[1:-1].copy())
    file.Close()


def overlap(name, steps):
    """Writes collectively without waiting, and computes meanwhile."""
    data = np.ones((2, 1 << 19))
    file = MPI.File.Open(comm, name, MPI.MODE_CREATE | MPI.MODE_WRONLY)
    pending = MPI.REQUEST_NULL
    for step in range(steps):
        np.sqrt(data[step % 2], out=data[step % 2])
        pending.Wait()
        place = (step * comm.size + comm.rank) * data[0].nbytes
        pending = file.Iwrite_at_all(place, data[step % 2])
    pending.Wait()
    file.Close()


def blocks(name, count):
    """Reads blocks of 256 KiB that another rank has written."""
    data = np.ones(1 << 15)
    file = MPI.File.Open(comm, name, MPI.MODE_CREATE | MPI.MODE_RDWR)
    for number in range(count):
        file.Write_at((number * comm.size + comm.rank) * data.nbytes, data)
    comm.Barrier()
    order = np.random.default_rng(comm.rank).permutation(count * comm.size)
    for number in order[: 4 * count]:
        file.Read_at(int(number) * data.nbytes, data)
    file.Close()


def h5write(name, steps):
    """Writes columns of an array by h5py."""
    import h5py

    wide = SIDE // comm.size
    part = slice(comm.rank * wide, (comm.rank + 1) * wide)
    data = np.ones((512, wide))
    with h5py.File(name, "w", driver="mpio", comm=comm) as file:
        array = file.create_dataset("t", (steps, 512, SIDE), dtype="f8")
        for step in range(steps):
            with array.collective:
                array[step, :, part] = data


def h5read(name, steps):
    """Reads rows of an array by h5py, which were written before."""
    import h5py

    rows = 512 // comm.size
    part = slice(comm.rank * rows, (comm.rank + 1) * rows)
    with h5py.File(name, "w", driver="mpio", comm=comm) as file:
        array = file.create_dataset("t", (512, SIDE), dtype="f8")
        array[part] = np.ones((rows, SIDE))
        comm.Barrier()
        for _ in range(steps):
            array[part].sum()


kernels = {"heat": heat, "overlap": overlap, "blocks": blocks, "h5write": h5write, "h5read": h5read}
kernels[sys.argv[2]](sys.argv[1], int(sys.argv[3]))
seconds = comm.reduce(MPI.Wtime() - begun, MPI.MAX)
if comm.rank == 0:
    print(f"seconds {seconds:.6f}")
