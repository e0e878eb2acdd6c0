"""LU factorisation of a matrix that is larger than memory, out of core.

    mpiexec -n 4 python python/bench/lu.py [ORDER [SLAB [METHOD [C|F]]]]

The matrix and its factors are files, of which each process holds two slabs of columns: one that is
computed, of which it has some columns, and one that was computed before, with all of them. Slabs are
factored from left to right with partial pivoting; each needs all slabs to its left. Slabs are
contiguous in files by columns (F), and a piece of each row in files by rows (C). (D. Kotz,
"Disk-directed I/O for an out-of-core computation", HPDC 1995.)
"""

import sys

import numpy as np
from mpi4py import MPI
from scipy.linalg import lapack, solve, solve_triangular

import unisono

ALL = slice(None)


def swap_rows(columns, swaps):
    """Exchange rows of some columns, as the pivots of a slab say: pairs of rows, in order."""
    for row, other in swaps:
        if row != other:
            columns[[row, other]] = columns[[other, row]]


def eliminate(columns, lower, first):
    """Bring columns up to date with lower columns that begin at row `first`."""
    last = first + lower.shape[1]
    columns[first:last] = solve_triangular(
        lower[: last - first], columns[first:last], lower=True, unit_diagonal=True, check_finite=False
    )
    columns[last:] -= lower[last - first :] @ columns[first:last]


def factor_slab(own, places, first, comm):
    """Factor a slab whose processes have some columns each, in place; return the pairs of rows that were exchanged.

    `own` has the columns of this process, `places` says which those of each are; `first` is the
    first column of the slab in the matrix.
    """
    swaps = []
    for owner, place in enumerate(places):
        row, width = first + place.start, place.stop - place.start
        lower = pivots = None
        if comm.rank == owner and width:
            lower, pivots, info = lapack.dgetrf(own[row:])
            if info > 0:
                pivots = None
            own[row:] = lower
        pivots, lower = comm.bcast((pivots, lower) if comm.rank == owner else None, root=owner)
        if not width:
            continue
        if pivots is None:
            raise ValueError(f"the matrix is singular: no pivot in columns {row} to {row + width}")
        new = [(row + at, row + int(pivot)) for at, pivot in enumerate(pivots)]
        if comm.rank != owner:
            swap_rows(own, new)
        if comm.rank > owner:
            eliminate(own, lower, row)
        swaps += new
    return swaps


def factor(matrix, factors, slab, comm):
    """Factor a matrix in a file into another file; return the exchanges of rows of each slab.

    Slabs to the left are read one ahead of their use. One call writes a slab, reads the next one of
    the matrix, and the first one of the factors.
    """
    order = matrix.shape[0]
    starts = range(0, order, slab)

    def columns_of(array, first):
        return array.view((ALL, slice(first, first + slab)), distribution=(None, "block"))

    def lower_of(first):
        index = (slice(first, None), slice(first, first + slab))
        return factors.view(index, distribution="whole").read_request()

    exchanges = []
    own = columns_of(matrix, 0).read()
    first_lower = None
    for first in starts:
        ahead = None
        for left in range(0, first, slab):
            lower = ahead.wait()[0] if ahead else first_lower
            follows = left + slab < first
            ahead = unisono.start_transfer([lower_of(left + slab)]) if follows else None
            swap_rows(own, exchanges[left // slab])
            eliminate(own, lower, left)
        whole = min(slab, order - first)
        chunk = -(-whole // comm.size)
        places = [slice(min(at * chunk, whole), min((at + 1) * chunk, whole)) for at in range(comm.size)]
        exchanges.append(factor_slab(own, places, first, comm))
        requests = [columns_of(factors, first).write_request(own)]
        if first + slab < order:
            requests.append(columns_of(matrix, first + slab).read_request())
        if 0 < first < order - slab:
            requests.append(lower_of(0))
        moved = unisono.transfer(requests)
        if first + slab < order:
            own = moved[1]
            first_lower = moved[2] if first else unisono.transfer([lower_of(0)])[0]
    return exchanges


def solve_with(factors, exchanges, slab, right):
    """Solve for a right side that each process has, with the factors in a file."""
    order = factors.shape[0]
    solution = right.copy()[:, None]
    for first, swaps in zip(range(0, order, slab), exchanges):
        swap_rows(solution, swaps)
        eliminate(solution, factors.view((slice(first, None), slice(first, first + slab)), distribution="whole").read(), first)
    for first in reversed(range(0, order, slab)):
        last = min(first + slab, order)
        upper = factors.view((slice(0, last), slice(first, last)), distribution="whole").read()
        solution[first:last] = solve_triangular(upper[first:], solution[first:last], check_finite=False)
        solution[:first] -= upper[:first] @ solution[first:last]
    return solution[:, 0]


def main(order=600, slab=64, method="disk-directed", storage="F"):
    """Factor a random matrix, solve with the factors, and compare with SciPy where the matrix fits memory."""
    comm = MPI.COMM_WORLD
    options = {"shape": (order, order), "dtype": "f8", "comm": comm, "method": method, "order": storage}
    with (
        unisono.open_array("unisono://matrix.npy", "w", distribution=("block", None), **options) as matrix,
        unisono.open_array("unisono://factors.npy", "w", distribution=(None, "block"), **options) as factors,
    ):
        rows = [np.random.default_rng(int(row)).standard_normal(order) for row in matrix.local_indices[0]]
        own_rows = np.asarray(np.array(rows).reshape(matrix.local_shape), order=storage)
        matrix.write(own_rows)
        right = np.random.default_rng(order).standard_normal(order)
        exchanges = factor(matrix, factors, slab, comm)
        solution = solve_with(factors, exchanges, slab, right)
        # As LINPACK's test: the residual in units of the rounding of its terms.
        own_right = right[matrix.local_indices[0]]
        residual = comm.allreduce(np.abs(own_rows @ solution - own_right).max(initial=0), MPI.MAX)
        norm = comm.allreduce(np.abs(own_rows).sum(axis=1).max(initial=0), MPI.MAX)
        scaled = residual / (norm * np.abs(solution).max() * order * np.finfo("f8").eps)
        if comm.rank == 0:
            print(f"lu: {order} x {order} in slabs of {slab} columns, scaled residual below 1: {scaled < 1}")
        if order <= 2000:
            expected = solve(matrix.view(..., distribution="whole").read(), right)
            if comm.rank == 0:
                print(f"lu: the solution is SciPy's: {np.allclose(solution, expected, rtol=1e-6)}")
    return scaled


if __name__ == "__main__":
    main(*(int(word) if word.isdigit() else word for word in sys.argv[1:]))
