"""Distributed arrays: one NumPy array of many processes, in one file, by one collective call."""

from __future__ import annotations

import ast
import math
import time
import uuid
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeGuard

import numpy as np
from numpy.lib import format as npy

from . import errors
from ._connect import connect
from ._native import File, Group, Part, Started
from .tables import Table

__all__ = ["Array", "CopyWarning", "Moved", "Plan", "Transfer", "open_array"]

# Bytes before the data of an array that describes itself: a header of NumPy's .npy format, padded so
# that the data begins at a page.
HEADER_BYTES = 4096


class CopyWarning(UserWarning):
    """An array was copied, because its bytes are not contiguous."""


@dataclass(frozen=True)
class Moved:
    """What a collective call has moved, of this process."""

    bytes: int
    seconds: float
    method: str


def _factor(processes: int, dimensions: int) -> list[int]:
    """Factors of a number of processes, as equal as possible, the greatest first."""
    factors = [1] * dimensions
    left, divisor = processes, 2
    primes: list[int] = []
    while left > 1:
        while left % divisor == 0:
            primes.append(divisor)
            left //= divisor
        divisor += 1
    for prime in reversed(primes):
        factors[factors.index(min(factors))] *= prime
    return sorted(factors, reverse=True)


def _words(distribution: Sequence[str | None] | None, dimensions: int) -> list[str]:
    """The distribution of each dimension as the words of High Performance Fortran."""
    if distribution is None:
        return ["block" if i == 0 else "none" for i in range(dimensions)]
    words = ["none" if word is None else str(word).strip().lower() for word in distribution]
    if len(words) != dimensions:
        raise errors.UsageError(
            "cannot distribute an array",
            f"it has {dimensions} dimensions, and the distribution has {len(words)}",
            "give a word for each dimension: block, cyclic, cyclic(k) or None",
        )
    return words


def _grid(grid: Sequence[int] | None, words: list[str], processes: int) -> list[int]:
    """The number of processes along each dimension."""
    if grid is None:
        dealt = [i for i, word in enumerate(words) if word != "none"]
        if not dealt and processes > 1:
            raise errors.UsageError(
                "cannot distribute an array",
                f"no dimension is distributed, and there are {processes} processes",
                'give a distribution such as ("block", None)',
            )
        found = [1] * len(words)
        for i, count in zip(dealt, _factor(processes, len(dealt)) if dealt else []):
            found[i] = count
        return found
    found = [int(count) for count in grid]
    if len(found) != len(words) or math.prod(found) != processes or min(found, default=1) < 1:
        raise errors.UsageError(
            "cannot distribute an array",
            f"the grid {tuple(found)} does not have {processes} processes in {len(words)} dimensions",
            "the product of the grid must be the number of processes",
        )
    if any(word == "none" and count > 1 for word, count in zip(words, found)):
        raise errors.UsageError(
            "cannot distribute an array",
            f"the grid {tuple(found)} has processes along a dimension that is not distributed",
            "give 1 there",
        )
    return found


def _chunk(extent: int, word: str, processes: int) -> int:
    """Consecutive indices that one process has along a dimension, before the next one's."""
    if word == "none":
        return max(1, extent)
    if word == "block":
        return max(1, -(-extent // processes))
    return 1 if word == "cyclic" else int(word[len("cyclic(") : -1])


def _count(extent: int, word: str, processes: int, place: int) -> int:
    """Number of indices of the process at a place, along one dimension."""
    chunk = _chunk(extent, word, processes)
    rounds, rest = divmod(extent, chunk * processes)
    return rounds * chunk + min(max(0, rest - place * chunk), chunk)


def _indices(extent: int, word: str, processes: int, place: int) -> np.ndarray[Any, Any]:
    """Global indices of the process at a place, along one dimension."""
    own = np.arange(_count(extent, word, processes, place))
    chunk = _chunk(extent, word, processes)
    indices: np.ndarray[Any, Any] = (own // chunk * processes + place) * chunk + own % chunk
    return indices


class Plan(Table):
    """What a collective call would move. Made by :meth:`Array.plan`.

    A row has ``server``, ``disk`` (of the server), ``step`` (from 0 in the order of the disk), ``block`` (of
    the file), ``offset`` (of the block, in bytes), ``bytes`` (moved between the disk and the processes),
    ``ranks`` (of the processes that have them, in the order in which the server asks them) and ``address``
    (on the disk, of which only the order counts). Disks work at the same time.

    Attributes
    ----------
    is_complete : bool
        False if blocks are left out.
    """

    def __init__(self, planned: Sequence[tuple[int, int, int, int, list[tuple[int, int]]]], is_complete: bool, block_bytes: int) -> None:
        rows: list[dict[str, Any]] = []
        for server, disk, block, address, shares in planned:
            follows = rows and (rows[-1]["server"], rows[-1]["disk"]) == (server, disk)
            rows.append(
                {
                    "server": server,
                    "disk": disk,
                    "step": rows[-1]["step"] + 1 if follows else 0,
                    "block": block,
                    "offset": block * block_bytes,
                    "bytes": sum(count for _, count in shares),
                    "ranks": [rank for rank, _ in shares],
                    "address": address,
                }
            )
        super().__init__(rows)
        self.is_complete = is_complete

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return sum(row["bytes"] for row in self.rows)

    def __repr__(self) -> str:
        disks = len({(row["server"], row["disk"]) for row in self.rows})
        left = "" if self.is_complete else "; more blocks are left out"
        head = f"{self.nbytes} bytes in {len(self)} blocks on {disks} disks{left}"
        return f"{head}\n{self._text(['server', 'disk', 'step', 'block', 'bytes', 'ranks'])}"


def _is_array(values: object) -> TypeGuard[np.ndarray[Any, Any]]:
    return isinstance(values, np.ndarray)


class Transfer:
    """A collective call under way, which makes progress while the program computes.

    The array that is read or written must not be touched before :meth:`wait` has returned.
    """

    def __init__(self, started: Started, values: Any, result: Callable[[Moved], Any], method: str) -> None:
        self._started, self._values, self._result = started, values, result
        self._method, self._begun = method, time.perf_counter()

    def done(self) -> bool:
        """Return True when the call has ended. Never waits."""
        return self._started.done()

    def wait(self) -> Any:
        """Wait for the end of the call; return what :meth:`Array.read` or :meth:`Array.write` would."""
        moved = self._started.wait()
        return self._result(Moved(moved, time.perf_counter() - self._begun, self._method))


class Array:
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
    """

    def __init__(self, file: File, group: Group, about: dict[str, Any]) -> None:
        self._file, self._group = file, group
        self.shape: tuple[int, ...] = tuple(about["shape"])
        self.dtype: np.dtype[Any] = np.dtype(about["dtype"])
        self.order: str = about["order"]
        self.distribution: tuple[str, ...] = tuple(about["words"])
        self.grid: tuple[int, ...] = tuple(about["grid"])
        self.rank, self.size = group.rank, group.size
        self._offset: int = about["offset"]
        self._method: str = about["method"]
        self._writable: bool = about["mode"] != "r"
        place = np.unravel_index(self.rank, self.grid) if self.grid else ()
        axes = zip(self.shape, self.distribution, self.grid, (int(at) for at in place))
        self._axes = tuple(axes)
        self.local_shape: tuple[int, ...] = tuple(_count(*axis) for axis in self._axes)
        self._part = self._part_of(self.rank)

    def _part_of(self, rank: int) -> Part:
        """The part of a process."""
        if 0 in self.shape:
            return Part.nothing()
        shape, words, grid = list(self.shape) or [1], list(self.distribution) or ["none"], list(self.grid) or [1]
        place = [int(at) for at in np.unravel_index(rank, grid)]
        if self.order == "F":
            # The library's arrays have their last dimension together, as C does.
            shape, words, grid, place = shape[::-1], words[::-1], grid[::-1], place[::-1]
        rank = int(np.ravel_multi_index(place, grid))
        return Part.dealt(shape, self.dtype.itemsize, words, grid, rank, self.size, self._offset)

    @property
    def local_indices(self) -> tuple[np.ndarray[Any, Any], ...]:
        """Global indices of the part of this process, along each dimension: ``whole[np.ix_(*indices)]``."""
        return tuple(_indices(*axis) for axis in self._axes)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __repr__(self) -> str:
        return (
            f"<unisono array {self._file.name!r}: shape {self.shape}, {self.dtype}, distribution "
            f"{self.distribution} over {self.grid}, rank {self.rank} of {self.size} has {self.local_shape}>"
        )

    # ---- Transfers ----------------------------------------------------------------------------

    def _own(self, values: object) -> np.ndarray[Any, Any]:
        """The memory to write: checked, and copied only if it is not contiguous."""
        what = f"cannot write {self._file.name!r}"
        if not self._writable:
            raise errors.UsageError(what, "it was opened to be read", 'open it with "r+" or "w"')
        if values is None:
            if math.prod(self.local_shape):
                raise errors.UsageError(
                    what, f"this process has a part of {self.local_shape}, and gives nothing", "give the part"
                )
            return np.empty(self.local_shape, self.dtype)
        if not _is_array(values):
            raise errors.UsageError(what, f"{type(values).__name__} is no NumPy array", "give a numpy.ndarray")
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
                f"the values are copied: they are not contiguous in {self.order} order", CopyWarning, stacklevel=4
            )
            return np.ascontiguousarray(values) if self.order == "C" else np.asfortranarray(values)
        return values

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
        own = self._own(values)
        memory = own if self.order == "C" else own.T
        started = self._group.start_write(self._file, self._part, memory, method=self._method, sync=sync)
        return Transfer(started, own, lambda moved: moved, self._method)

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
        moved: Moved = self.start_write(values, sync=sync).wait()
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
        if out is None:
            out = np.empty(self.local_shape, self.dtype, order="C" if self.order == "C" else "F")
        fits = out.flags.c_contiguous if self.order == "C" else out.flags.f_contiguous
        if out.dtype != self.dtype or out.shape != self.local_shape or not fits:
            raise errors.UsageError(
                f"cannot read {self._file.name!r}",
                f"the result has the shape {out.shape} and is {out.dtype}",
                f"give an array of {self.local_shape} and {self.dtype}, contiguous in {self.order} order",
            )
        result = out
        memory = out if self.order == "C" else out.T
        started = self._group.start_read(self._file, self._part, memory, method=self._method)
        return Transfer(started, out, lambda _: result, self._method)

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
        if self._method != "disk-directed":
            raise errors.UsageError(
                f"cannot plan transfers of {self._file.name!r}",
                f"by {self._method}, servers serve requests as they come",
                'open the array with method="disk-directed"',
            )
        parts = [self._part_of(rank) for rank in range(self.size)]
        planned, is_complete = self._file.plan(self._writable if write is None else write, parts, blocks_max)
        return Plan(planned, is_complete, self._file.block_bytes)

    # ---- End ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the file, by this process. Does nothing when it was closed."""
        self._file.close()

    def __enter__(self) -> Array:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # An exception under way is not replaced by another of the close.
        self._file.__exit__(kind, error, trace)


def _header(shape: tuple[int, ...], dtype: np.dtype[Any], order: str) -> bytes:
    """A header of the .npy format, version 1.0, of HEADER_BYTES bytes."""
    about = {"descr": npy.dtype_to_descr(dtype), "fortran_order": order == "F", "shape": shape}
    text = repr(about).encode("latin-1")
    room = HEADER_BYTES - len(npy.magic(1, 0)) - 2
    if len(text) + 1 > room:
        raise errors.UsageError("cannot make an array", "its dtype has too many fields", "use header=False")
    return npy.magic(1, 0) + room.to_bytes(2, "little") + text.ljust(room - 1) + b"\n"


def _read_header(file: File) -> dict[str, Any]:
    """Shape, dtype, order and offset of an array that describes itself."""
    start = bytearray(12)
    file.read_into(0, start)
    what = f"cannot open {file.name!r} as an array"
    if not start.startswith(b"\x93NUMPY"):
        raise errors.UsageError(what, "it has no header of the .npy format", "give shape, dtype and header=False")
    width = 2 if start[6] == 1 else 4
    length = int.from_bytes(start[8 : 8 + width], "little")
    text = bytearray(length)
    file.read_into(8 + width, text)
    about = ast.literal_eval(bytes(text).decode("latin-1" if start[6] < 3 else "utf-8"))
    return {
        "shape": tuple(about["shape"]),
        "dtype": npy.descr_to_dtype(about["descr"]),
        "order": "F" if about["fortran_order"] else "C",
        "offset": 8 + width + length,
    }


def _name(url: str) -> str:
    return url.removeprefix("unisono:").strip("/")


def _make(connection: Any, name: str, mode: str, about: dict[str, Any], header: bool) -> dict[str, Any]:
    """Make or look at the file, by rank 0; return what all processes must know."""
    if mode == "w":
        if about["shape"] is None or about["dtype"] is None:
            raise errors.UsageError(f"cannot make {name!r}", "shape or dtype is missing", "give both")
        head = _header(about["shape"], about["dtype"], about["order"]) if header else b""
        about["offset"] = len(head)
        file = connection.open(name, "w", block_bytes=about["block_bytes"])
        file.set_size(len(head) + math.prod(about["shape"]) * about["dtype"].itemsize)
        if head:
            file.write(0, head)
        file.close()
        return about
    if header:
        file = connection.open(name)
        found = _read_header(file)
        file.close()
        for key in ("shape", "dtype"):
            if about[key] is not None and about[key] != found[key]:
                raise errors.UsageError(
                    f"cannot open {name!r}", f"its {key} is {found[key]}, not {about[key]}", f"leave {key} out"
                )
        return {**about, **found}
    if about["shape"] is None or about["dtype"] is None:
        raise errors.UsageError(f"cannot open {name!r}", "a file without a header needs shape and dtype", "give both")
    return {**about, "offset": 0}


def _tell(group: Group, own: Any) -> list[Any]:
    """Exchange values that repr can write."""
    return [ast.literal_eval(bytes(told).decode()) for told in group.all_gather(repr(own).encode())]


def open_array(
    url: str,
    mode: str = "r",
    *,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    distribution: Sequence[str | None] | None = None,
    grid: Sequence[int] | None = None,
    comm: Any = None,
    rank: int | None = None,
    size: int | None = None,
    group: str | None = None,
    order: str = "C",
    header: bool = True,
    method: str = "disk-directed",
    block_bytes: int | None = None,
    instance: str | None = None,
    timeout: float | None = None,
) -> Array:
    """Open a distributed array. Collective: all processes call it with the same arguments.

    Parameters
    ----------
    url : str
        ``unisono://NAME``, or the name alone.
    mode : {"r", "r+", "w"}
        Read; read and write; make, or make anew.
    shape, dtype
        Of the whole array. Needed to make one, and for a file without a header.
    distribution : sequence of str or None
        Word for each dimension: ``"block"``, ``"cyclic"``, ``"cyclic(k)"``, or None for one that is not
        distributed. Default: blocks of the first dimension. A file may be read in another distribution,
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
    method : str
        ``"disk-directed"``, ``"two-phase"``, ``"caching"``.
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
    name, connection = _name(url), connect(instance, timeout)
    if mode not in ("r", "r+", "w"):
        raise errors.UsageError(f"cannot open {name!r}", f"{mode!r} is no mode", 'give "r", "r+" or "w"')
    if order not in ("C", "F"):
        raise errors.UsageError(f"cannot open {name!r}", f"{order!r} is no order", 'give "C" or "F"')
    if dtype is not None and np.dtype(dtype).hasobject:
        raise errors.UsageError(
            f"cannot open {name!r}", f"{np.dtype(dtype)} has Python objects", "give a dtype of numbers or bytes"
        )
    if comm is None and size is not None and size > 1 and rank is None:
        raise errors.UsageError(f"cannot open {name!r}", f"size is {size}, and rank is missing", "give the rank")
    if comm is not None:
        rank, processes = int(comm.Get_rank()), int(comm.Get_size())
        meeting = comm.bcast(uuid.uuid4().hex if rank == 0 else None)
    else:
        rank, processes = rank or 0, size or 1
        meeting = group or name
    members = connection.group(f"array {meeting}", rank, processes)
    about: dict[str, Any] = {
        "shape": None if shape is None else tuple(int(extent) for extent in shape),
        "dtype": None if dtype is None else np.dtype(dtype),
        "order": order,
        "mode": mode,
        "method": method,
        "block_bytes": block_bytes,
    }
    failure: Exception | None = None
    parts = ("", "", "", "")
    if rank == 0:
        try:
            about = _make(connection, name, mode, about, header)
        except errors.UnisonoError as error:  # told to all, so that none of them waits
            failure, parts = error, (error.kind, error.error, error.cause, error.help)
        except Exception as error:
            failure, parts = error, ("other", f"cannot open {name!r}", str(error), "see the error of rank 0")
    shown = {**about, "dtype": None if about["dtype"] is None else npy.dtype_to_descr(about["dtype"])}
    given = (name, mode, shape and tuple(shape), str(dtype), distribution and tuple(distribution), grid and tuple(grid))
    told = _tell(members, (parts, shown if rank == 0 else None, str(given)))
    if failure:
        raise failure
    if told[0][0][0]:
        kind, what, cause, help = told[0][0]
        raise errors.of_kind(kind, what, cause, help, {"file": name, "range": None, "server": None, "ranks": []})
    differing = [other for other in range(processes) if told[other][2] != told[0][2]]
    if differing:
        raise errors.CallsDifferError(
            f"cannot open {name!r}", f"ranks {differing} give other arguments than rank 0", "give the same ones everywhere"
        )
    about = {**told[0][1], "dtype": npy.descr_to_dtype(told[0][1]["dtype"])}
    about["words"] = _words(distribution, len(about["shape"]))
    about["grid"] = _grid(grid, about["words"], processes)
    return Array(connection.open(name), members, about)
