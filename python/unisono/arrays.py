"""Distributed arrays: one NumPy array of many processes, in one file, by one collective call."""

from __future__ import annotations

import copy
import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from numpy.lib import format as npy

from . import errors
from ._distribution import WHOLE, check_words, count_of, deal, index_from, indices_from, indices_of
from ._native import Connection, File, Group, Part
from ._npy_header import HEADER_BYTES, description_of, make_header, plain_dtype, read_header
from ._together import OfFile, Processes, open_together
from ._views import chosen, part_of, strides_of
from .transfers import CopyWarning, Moved, Plan, Request, Transfer, start

__all__ = ["Array", "CopyWarning", "Moved", "Plan", "Request", "Transfer", "open_array"]

def _is_array(values: object) -> TypeGuard[np.ndarray[Any, Any]]:
    return isinstance(values, np.ndarray)


class Array(OfFile):
    """An array in a file, of which each process has a part. Made by :func:`open_array`.

    Attributes
    ----------
    shape, dtype, order
        Of the whole array.
    distribution : tuple of str
        Word for each dimension.
    grid : tuple of int
        Processes along each dimension.
    rank, size : int
        Of this process, and number of processes.
    local_shape : tuple of int
        Shape of the part of this process.
    method : str
        How data is moved, as for :func:`open_array`.
    """

    def __init__(self, file: File, group: Group, about: dict[str, Any]) -> None:
        super().__init__(file)
        self._group = group
        self.shape: tuple[int, ...] = tuple(about["shape"])
        self.dtype: np.dtype[Any] = np.dtype(about["dtype"])
        self.order: str = about["order"]
        self.distribution: tuple[str, ...] = tuple(about["words"])
        self.grid: tuple[int, ...] = tuple(about["grid"])
        self.rank, self.size = group.rank, group.size
        self._offset: int = about["offset"]
        self._strides = strides_of(self.shape, self.dtype.itemsize, self.order)
        self.method: str = about["method"]
        self._writable: bool = about["mode"] != "r"
        self._settle()

    def _settle(self) -> None:
        """Set what follows from the shape, the distribution and the grid."""
        place = np.unravel_index(self._place(self.rank), self.grid) if self.grid else ()
        axes = zip(self.shape, self.distribution, self.grid, (int(at) for at in place))
        self._axes = tuple(axes)
        self.local_shape: tuple[int, ...] = tuple(count_of(*axis) for axis in self._axes)
        self._part = self._part_of(self.rank)

    def _place(self, rank: int) -> int:
        """The place of a process in the grid: all have the first one if each has the whole."""
        return rank if math.prod(self.grid) == self.size else 0

    def _part_of(self, rank: int) -> Part:
        """The part of a process."""
        if 0 in self.shape:
            return Part.nothing()
        shape, words, grid = list(self.shape) or [1], list(self.distribution) or ["none"], list(self.grid) or [1]
        place = [int(at) for at in np.unravel_index(self._place(rank), grid)]
        strides = list(self._strides) or [self.dtype.itemsize]
        if self.order == "F":
            # The library's arrays have their last dimension together, as C does.
            shape, words, grid, place, strides = shape[::-1], words[::-1], grid[::-1], place[::-1], strides[::-1]
        if tuple(strides) == strides_of(shape, self.dtype.itemsize, "C"):
            rank = int(np.ravel_multi_index(place, grid))
            return Part.dealt(shape, self.dtype.itemsize, words, grid, rank, self.size, self._offset)
        return part_of(list(zip(shape, words, grid, place)), strides, self.dtype.itemsize, self._offset)

    def view(
        self, index: Any, *, distribution: Sequence[str | None] | str | None = None, grid: Sequence[int] | None = None
    ) -> Array:
        """Return a part of the array as an array, which is distributed for itself. Moves no data; not collective.

        Parameters
        ----------
        index : int, slice, Ellipsis, or tuple of these
            As for NumPy, with positive steps.
        distribution, grid
            As for :func:`open_array`. Default: those of the array, without the dimensions that have no
            slice.

        Returns
        -------
        Array
            Of the same file; closing one closes the other.

        Raises
        ------
        unisono.errors.UsageError
            An index outside the array, a step below 1, another kind of index; or no dimension that is
            distributed is left, and there are several processes.

        Examples
        --------
        >>> with unisono.open_array("unisono://v.npy", "w", shape=(4, 6), dtype="i4") as array:
        ...     moved = array.write(np.arange(24, dtype="i4").reshape(4, 6))
        ...     array[1:3, ::2].read()
        array([[ 6,  8, 10],
               [12, 14, 16]], dtype=int32)
        """
        picked = chosen(self.shape, index)
        view = copy.copy(self)
        kept = [axis for axis, (_, count, _) in enumerate(picked) if count is not None]
        view._offset = self._offset + sum(start * stride for (start, _, _), stride in zip(picked, self._strides))
        view.shape = tuple(count for _, count, _ in picked if count is not None)
        view._strides = tuple(picked[axis][2] * self._strides[axis] for axis in kept)
        words: Sequence[str | None] | str | None = distribution
        if words is None and math.prod(self.grid) != self.size:
            words = WHOLE
        elif words is None:
            words = [self.distribution[axis] for axis in kept]
            if grid is None and math.prod(self.grid[axis] for axis in kept) == self.size:
                grid = [self.grid[axis] for axis in kept]
        found, counts = deal(words, grid, len(kept), self.size)
        view.distribution, view.grid = tuple(found), tuple(counts)
        view._settle()
        return view

    def __getitem__(self, index: Any) -> Array:
        """Return :meth:`view` of an index."""
        return self.view(index)

    @property
    def local_indices(self) -> tuple[np.ndarray[Any, Any], ...]:
        """Global indices of the part of this process, along each dimension: ``whole[np.ix_(*indices)]``."""
        return tuple(indices_of(*axis) for axis in self._axes)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def local_nbytes(self) -> int:
        """Bytes of the part of this process."""
        return math.prod(self.local_shape) * self.dtype.itemsize

    def __repr__(self) -> str:
        return (
            f"<unisono array {self._file.name!r}: shape {self.shape}, {self.dtype}, distribution "
            f"{self.distribution} over {self.grid}, rank {self.rank} of {self.size} has {self.local_shape}>"
        )

    # ---- Transfers ----------------------------------------------------------------------------

    def _own(self, values: object, stacklevel: int) -> np.ndarray[Any, Any]:
        """The memory to write: checked, and copied only if it is not contiguous."""
        what = f"cannot write {self._file.name!r}"
        if not self._writable:
            raise errors.UsageError(what, "it was opened to be read", 'open it with "r+" or "w"')
        if math.prod(self.grid) != self.size:
            raise errors.UsageError(what, "each process has the whole of it", "write a view with another distribution")
        if values is None:
            if math.prod(self.local_shape):
                raise errors.UsageError(
                    what, f"this process has a part of {self.local_shape}, and gives nothing", "give the part"
                )
            return np.empty(self.local_shape, self.dtype)
        if not _is_array(values) or isinstance(values, np.ma.MaskedArray):
            raise errors.UsageError(what, f"{type(values).__name__} is no plain NumPy array", "give a numpy.ndarray")
        if values.dtype != self.dtype:
            raise errors.UsageError(
                what, f"the values are {values.dtype}, and the array is {self.dtype}", f"convert them: .astype({self.dtype.str!r})"
            )
        if values.shape != self.local_shape:
            raise errors.UsageError(
                what, f"the values have the shape {values.shape}, and the part {self.local_shape}", "give the whole part"
            )
        fits = values.flags.c_contiguous if self.order == "C" else values.flags.f_contiguous
        if not fits:
            warnings.warn(
                f"the values are copied: they are not contiguous in {self.order} order", CopyWarning, stacklevel=stacklevel
            )
            return np.ascontiguousarray(values) if self.order == "C" else np.asfortranarray(values)
        return values

    def _request(self, is_write: bool, values: np.ndarray[Any, Any]) -> Request:
        return Request(self, is_write, values, self._group, self._file, self._part)

    def start_write(self, values: np.ndarray[Any, Any] | None, *, sync: bool = False) -> Transfer:
        """Begin a :meth:`write`, which makes progress while the program computes.

        Parameters
        ----------
        values, sync
            As for :meth:`write`. The values must not change before the end of the transfer.

        Returns
        -------
        Transfer
            Its :meth:`Transfer.wait` returns what :meth:`write` does.

        Examples
        --------
        >>> with unisono.open_array("unisono://s.npy", "w", shape=(1000,), dtype="f8") as array:
        ...     transfer = array.start_write(np.ones(1000))
        ...     moved = transfer.wait()
        >>> moved.bytes, moved.method, transfer.done()
        (8000, 'disk-directed', True)
        """
        return self._start_write(values, sync, 4)

    def _start_write(self, values: np.ndarray[Any, Any] | None, sync: bool, stacklevel: int) -> Transfer:
        request = self._request(True, self._own(values, stacklevel))
        return start([request], sync, lambda results: results[0])

    def write_request(self, values: np.ndarray[Any, Any] | None) -> Request:
        """Return the request of a :meth:`write`, for a call that transfers several arrays (:func:`unisono.transfer`).

        Parameters
        ----------
        values
            As for :meth:`write`.

        Raises
        ------
        unisono.errors.UsageError
            The values do not fit.

        Examples
        --------
        >>> with unisono.open_array("unisono://w.npy", "w", shape=(3,), dtype="i4") as array:
        ...     [moved] = unisono.transfer([array.write_request(np.arange(3, dtype="i4"))])
        >>> moved.bytes
        12
        """
        return self._request(True, self._own(values, 3))

    def write(self, values: np.ndarray[Any, Any] | None, *, sync: bool = False) -> Moved:
        """Write the part of this process. Collective: one call is one transfer of all processes.

        Parameters
        ----------
        values : numpy.ndarray or None
            Of :attr:`local_shape` and :attr:`dtype`. None for a process whose part is empty.
        sync : bool
            True: the data is on stable storage at the end.

        Returns
        -------
        Moved
            Bytes of this process, seconds, and method.

        Raises
        ------
        unisono.errors.UsageError
            The values do not fit.
        unisono.errors.MembersMissingError
            A process did not make the call in time; the error names its rank.

        Examples
        --------
        >>> with unisono.open_array("unisono://w.npy", "w", shape=(100, 100), dtype="f4") as array:
        ...     array.write(np.zeros(array.local_shape, array.dtype)).bytes
        40000
        """
        moved: Moved = self._start_write(values, sync, 4).wait()
        return moved

    def start_read(self, out: np.ndarray[Any, Any] | None = None) -> Transfer:
        """Begin a :meth:`read`, which makes progress while the program computes.

        Parameters
        ----------
        out : numpy.ndarray, optional
            As for :meth:`read`. It must not be used before the end of the transfer.

        Returns
        -------
        Transfer
            Its :meth:`Transfer.wait` returns the array.

        Examples
        --------
        >>> with unisono.open_array("unisono://b.npy", "w", shape=(3,), dtype="i8") as array:
        ...     moved = array.write(np.array([1, 2, 3]))
        ...     array.start_read().wait()
        array([1, 2, 3])
        """
        return start([self.read_request(out)], False, lambda results: results[0])

    def read_request(self, out: np.ndarray[Any, Any] | None = None) -> Request:
        """Return the request of a :meth:`read`, for a call that transfers several arrays (:func:`unisono.transfer`).

        Parameters
        ----------
        out
            As for :meth:`read`.

        Raises
        ------
        unisono.errors.UsageError
            `out` does not fit.

        Examples
        --------
        >>> with unisono.open_array("unisono://q.npy", "w", shape=(3,), dtype="i4") as array:
        ...     moved = array.write(np.arange(3, dtype="i4"))
        ...     unisono.transfer([array.read_request()])
        [array([0, 1, 2], dtype=int32)]
        """
        if out is not None and not _is_array(out):
            raise errors.UsageError(
                f"cannot read {self._file.name!r}", f"{type(out).__name__} is no NumPy array", "give a numpy.ndarray"
            )
        if out is None:
            out = np.empty(self.local_shape, self.dtype, order="C" if self.order == "C" else "F")
        fits = out.flags.c_contiguous if self.order == "C" else out.flags.f_contiguous
        if out.dtype != self.dtype or out.shape != self.local_shape or not fits:
            raise errors.UsageError(
                f"cannot read {self._file.name!r}",
                f"the result has the shape {out.shape} and is {out.dtype}",
                f"give an array of {self.local_shape} and {self.dtype}, contiguous in {self.order} order",
            )
        return self._request(False, out)

    def read(self, out: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
        """Read the part of this process. Collective.

        Parameters
        ----------
        out : numpy.ndarray, optional
            Array to read into, of :attr:`local_shape` and :attr:`dtype`, contiguous in :attr:`order`.
            Default: a new one.

        Returns
        -------
        numpy.ndarray
            `out`, or the new array.

        Raises
        ------
        unisono.errors.UsageError
            `out` does not fit.
        unisono.errors.MembersMissingError
            A process did not make the call in time; the error names its rank.

        Examples
        --------
        >>> with unisono.open_array("unisono://r.npy", "w", shape=(2, 2), dtype="f8", order="F") as array:
        ...     moved = array.write(np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]))
        ...     array.read()
        array([[1., 2.],
               [3., 4.]])
        """
        read: np.ndarray[Any, Any] = self.start_read(out).wait()
        return read

    def plan(self, *, write: bool | None = None, blocks_max: int = 10_000) -> Plan:
        """Return which server would move what, in which order. Moves no data; not collective.

        Parameters
        ----------
        write : bool, optional
            True: of a :meth:`write`. Default: True if the array was opened to be written.
        blocks_max : int
            Of each disk. More are left out.

        Returns
        -------
        Plan
            A row for each block, by server and disk, in the order of each disk.

        Raises
        ------
        unisono.errors.UsageError
            The method is not ``"disk-directed"``: then servers serve requests as they come.

        Examples
        --------
        >>> with unisono.open_array("unisono://plan.npy", "w", shape=(1024, 1024), dtype="f8") as array:
        ...     plan = array.plan()
        >>> plan.nbytes == array.nbytes and plan.is_complete
        True
        """
        if self.method != "disk-directed":
            raise errors.UsageError(
                f"cannot plan transfers of {self._file.name!r}",
                f"by {self.method}, servers serve requests as they come",
                'open the array with method="disk-directed"',
            )
        parts = [self._part_of(rank) for rank in range(self.size)]
        is_write = self._writable if write is None else write
        planned, is_complete = self._file.plan(is_write, parts, index_from(blocks_max, "blocks_max"))
        return Plan(planned, is_complete, self._file.block_bytes)

    def __enter__(self) -> Array:
        return self


@dataclass(frozen=True)
class _Wanted:
    """Arguments of :func:`open_array`, checked and in a form that can be compared and sent."""

    name: str
    mode: str
    shape: tuple[int, ...] | None
    descr: Any
    distribution: tuple[str | None, ...] | str | None
    grid: tuple[int, ...] | None
    order: str
    has_header: bool
    offset: int
    method: str
    block_bytes: int | None

    @property
    def dtype(self) -> np.dtype[Any] | None:
        return None if self.descr is None else npy.descr_to_dtype(self.descr)

    def check(self, processes: int) -> None:
        """Refuse arguments that do not fit one another, before anything is changed."""
        what = f"cannot open {self.name!r}"
        if self.mode not in ("r", "r+", "w"):
            raise errors.UsageError(what, f"{self.mode!r} is no mode", 'give "r", "r+" or "w"')
        if self.order not in ("C", "F"):
            raise errors.UsageError(what, f"{self.order!r} is no order", 'give "C" or "F"')
        if self.method not in _METHODS:
            raise errors.UsageError(what, f"{self.method!r} is no method", f"give one of {', '.join(_METHODS)}")
        dtype = self.dtype
        if dtype is not None and dtype.hasobject:
            raise errors.UsageError(what, f"{dtype} has Python objects", "give a dtype of numbers or bytes")
        if not self.name.isprintable():
            raise errors.BadNameError(what, "its name has letters that cannot be written", "give another name")
        if self.offset and self.has_header:
            raise errors.UsageError(what, "the header tells where the elements begin", "give an offset with header=False only")
        check_words(self.distribution)
        is_described = self.shape is not None and dtype is not None
        if not is_described and (self.mode == "w" or not self.has_header):
            raise errors.UsageError(what, "shape or dtype is missing", "give both, for a new file or one without a header")
        if self.shape is not None and dtype is not None:
            words, grid = deal(self.distribution, self.grid, len(self.shape), processes)
            make_header(self.shape, dtype, self.order)
            if 0 not in self.shape:
                Part.dealt(list(self.shape) or [1], dtype.itemsize, words or ["none"], grid or [1], 0, processes, self.offset or HEADER_BYTES)


_METHODS = ("disk-directed", "two-phase", "caching", "noncollective", "global-barrier", "node-grouping")


def _make(connection: Connection, wanted: _Wanted) -> dict[str, Any]:
    """Make the file or look at it, by rank 0; return what all processes must know."""
    about = _made(connection, wanted)
    return {**about, "dtype": npy.dtype_to_descr(about["dtype"])}


def _made(connection: Connection, wanted: _Wanted) -> dict[str, Any]:
    shape, dtype = wanted.shape, wanted.dtype
    if wanted.mode == "w" and shape is not None and dtype is not None:
        head = make_header(shape, dtype, wanted.order) if wanted.has_header else b""
        with connection.open(wanted.name, "w", block_bytes=wanted.block_bytes) as file:
            file.set_size(len(head) + wanted.offset + math.prod(shape) * dtype.itemsize)
            if head:
                file.write(0, head)
        return {"shape": shape, "dtype": dtype, "order": wanted.order, "offset": len(head) + wanted.offset}
    if not wanted.has_header:
        return {"shape": shape, "dtype": dtype, "order": wanted.order, "offset": wanted.offset}
    with connection.open(wanted.name) as file:
        found = read_header(file)
    for key, given in (("shape", shape), ("dtype", dtype)):
        if given is not None and given != found[key]:
            raise errors.UsageError(
                f"cannot open {wanted.name!r}", f"its {key} is {found[key]}, not {given}", f"leave {key} out"
            )
    return found


def open_array(
    url: str | os.PathLike[str],
    mode: str = "r",
    *,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    distribution: Sequence[str | None] | str | None = None,
    grid: Sequence[int] | None = None,
    comm: Any = None,
    rank: int | None = None,
    size: int | None = None,
    group: str | None = None,
    order: str = "C",
    header: bool = True,
    offset: int = 0,
    method: str = "disk-directed",
    block_bytes: int | None = None,
    instance: str | os.PathLike[str] | None = None,
    timeout: float | None = None,
) -> Array:
    """Open a distributed array. Collective: all processes call it with the same arguments.

    Parameters
    ----------
    url : str or path
        ``unisono://NAME``, the name alone, or an absolute path below a mount of an instance
        (:func:`unisono.mounted`), which means that instance.
    mode : {"r", "r+", "w"}
        Read; read and write; make, or make anew.
    shape, dtype
        Of the whole array. Needed to make one, and for a file without a header.
    distribution : sequence of str or None, or "whole"
        Word for each dimension: ``"block"``, ``"cyclic"``, ``"cyclic(k)"``, or None for one that is not
        distributed; or ``"whole"``, to read: each process has all of it. Default: blocks of the first dimension. A file may be read in another distribution,
        by another number of processes, than it was written.
    grid : sequence of int, optional
        Processes along each dimension. Default: as equal as possible.
    comm : mpi4py communicator, optional
        The processes. Without it, `rank` and `size` say it (default: this process alone), and they
        meet at the servers under the name `group` (default: the name of the file).
    order : {"C", "F"}
        Order of the elements in the file and in memory.
    header : bool
        True: the file begins with a header of NumPy's .npy format of 4,096 bytes, so that it describes
        itself, and a copy can be opened by ``numpy.load(copy, mmap_mode="r")``. False: nothing but the
        elements, as ``numpy.memmap`` takes them.
    offset : int
        First byte of the elements in a file without a header, as of ``numpy.memmap``: so a contiguous dataset
        of an HDF5 file is an array (``dataset.id.get_offset()`` of h5py).
    method : str
        ``"disk-directed"``, ``"two-phase"``, ``"caching"``, ``"noncollective"``, ``"global-barrier"``,
        ``"node-grouping"``.
    block_bytes : int, optional
        Bytes in a block of a new file. Default: as its directory says.
    instance, timeout
        As for :func:`unisono.connect`.

    Raises
    ------
    unisono.errors.UsageError
        Arguments that do not fit one another or the file, or differ between processes.
    unisono.errors.NotFoundError
        There is no such file.

    Examples
    --------
    One process with the whole array, or two threads that have columns in turn:

    >>> whole = np.arange(24, dtype="i4").reshape(4, 6)
    >>> with unisono.open_array("unisono://t.npy", "w", shape=whole.shape, dtype=whole.dtype) as array:
    ...     array.write(whole).bytes
    96
    >>> def columns(rank):
    ...     with unisono.open_array("t.npy", distribution=(None, "cyclic"), rank=rank, size=2) as array:
    ...         return array.read()
    >>> with concurrent.futures.ThreadPoolExecutor(2) as threads:
    ...     even, odd = threads.map(columns, [0, 1])
    >>> (even == whole[:, ::2]).all() and (odd == whole[:, 1::2]).all()
    np.True_
    """

    def wants(name: str, processes: int) -> _Wanted:
        wanted = _Wanted(
            name=name,
            mode=mode,
            shape=None if shape is None else indices_from(shape, "the shape"),
            descr=None if dtype is None else description_of(plain_dtype(name, dtype)),
            distribution=None if distribution is None else _as_tuple(distribution),
            grid=None if grid is None else indices_from(grid, "the grid"),
            order=order,
            has_header=bool(header),
            offset=index_from(offset, "the offset"),
            method=method,
            block_bytes=None if block_bytes is None else index_from(block_bytes, "block_bytes"),
        )
        wanted.check(processes)
        return wanted

    opened = open_together(url, "array", Processes(comm, rank, size, group), instance, timeout, wants, _make)
    about: dict[str, Any] = {**opened.about, "dtype": npy.descr_to_dtype(opened.about["dtype"]), "mode": mode, "method": method}
    about["words"], about["grid"] = deal(distribution, opened.wanted.grid, len(about["shape"]), opened.members.size)
    return Array(opened.connection.open(opened.name), opened.members, about)


def _as_tuple(distribution: Any) -> tuple[str | None, ...] | str:
    check_words(distribution)
    if isinstance(distribution, str):
        return distribution
    return tuple(None if word is None else str(word) for word in distribution)
