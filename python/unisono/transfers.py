"""Collective transfers of arrays: what they move, and one call for several of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import errors
from ._native import File, Group, Part, Started
from .tables import Table

if TYPE_CHECKING:
    from .arrays import Array

__all__ = ["CopyWarning", "Moved", "Plan", "Request", "Transfer", "start_transfer", "transfer"]


class CopyWarning(UserWarning):
    """An array was copied, because its bytes are not contiguous."""


@dataclass(frozen=True)
class Moved:
    """Result of a collective call, for this process."""

    bytes: int
    seconds: float
    method: str


class Plan(Table):
    """Blocks that a collective call would move. Made by :meth:`Array.plan`.

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


@dataclass(frozen=True)
class Request:
    """A transfer that :func:`unisono.transfer` makes. Made by :meth:`Array.read_request` and :meth:`Array.write_request`.

    Attributes
    ----------
    array : Array
        The array.
    is_write : bool
        False: a read.
    values : numpy.ndarray
        Memory of this process that is read to or written from.
    group, file, part
        Of the extension module: the processes, and the elements of this one in the file.
    """

    array: Array
    is_write: bool
    values: np.ndarray[Any, Any]
    group: Group
    file: File
    part: Part


class Transfer:
    """A collective call under way, which makes progress while the program computes.

    The arrays that are read or written must not be touched before :meth:`wait` has returned.
    """

    def __init__(self, started: Started, result: Callable[[float], Any]) -> None:
        self._started, self._result, self._begun = started, result, time.perf_counter()

    def done(self) -> bool:
        """Return True when the call has ended. Never waits."""
        return self._started.done()

    def wait(self) -> Any:
        """Wait for the end of the call; return what the call that waits would."""
        self._started.wait()
        return self._result(time.perf_counter() - self._begun)


def _result(request: Request, seconds: float) -> Any:
    """Return what :meth:`Array.read` or :meth:`Array.write` do."""
    if request.is_write:
        return Moved(request.array.local_nbytes, seconds, request.array.method)
    return request.values


def start(requests: Sequence[Request], sync: bool, result: Callable[[list[Any]], Any]) -> Transfer:
    """Begin a call for some requests, of which there is at least one; `result` makes its result of theirs."""
    first = requests[0].array
    for request in requests:
        array = request.array
        if (array.rank, array.size, array.method) != (first.rank, first.size, first.method):
            raise errors.UsageError(
                "cannot transfer several arrays in one call",
                f"{array!r} is moved by other processes, or in another way, than {first!r}",
                "open the arrays by the same processes, with the same method",
            )
    # The library's memory has its last dimension together, as C does.
    described = [
        (one.is_write, one.file, one.part, one.values if one.array.order == "C" else one.values.T) for one in requests
    ]
    started = requests[0].group.start_files(described, method=first.method, sync=sync)
    return Transfer(started, lambda seconds: result([_result(request, seconds) for request in requests]))


def start_transfer(requests: Sequence[Request], *, sync: bool = False) -> Transfer:
    """Begin a :func:`transfer`, which makes progress while the program computes.

    Parameters
    ----------
    requests, sync
        As for :func:`transfer`. The arrays in memory must not be touched before the end.

    Returns
    -------
    Transfer
        Its :meth:`Transfer.wait` returns what :func:`transfer` does.

    Examples
    --------
    >>> with unisono.open_array("unisono://t1.npy", "w", shape=(4,), dtype="f8") as array:
    ...     begun = unisono.start_transfer([array.write_request(np.arange(4.0))])
    ...     [moved] = begun.wait()
    >>> moved.bytes
    32
    """
    requests = list(requests)
    if not requests:
        raise errors.UsageError("cannot transfer arrays", "there are no requests", "give at least one")
    return start(requests, sync, list)


def transfer(requests: Sequence[Request], *, sync: bool = False) -> list[Any]:
    """Read and write parts of several arrays in one collective call.

    All transfers are under way together, so that the disks are busy with all of them and the processes
    wait once. An array, or views of it, may be in several requests; where a write meets another request
    in the same elements, it is undefined which comes first.

    Parameters
    ----------
    requests : sequence of Request
        At least one. All processes give requests for the same arrays, in the same order.
    sync : bool
        True: written data is on stable storage at the end.

    Returns
    -------
    list
        For each request, what :meth:`Array.read` or :meth:`Array.write` would return.

    Raises
    ------
    unisono.errors.UsageError
        The arrays are open at other processes, by other connections, or with other methods.
    unisono.errors.MembersMissingError
        A process did not make the call in time; the error names its rank.

    Examples
    --------
    >>> with unisono.open_array("unisono://a.npy", "w", shape=(2, 3), dtype="i8") as a:
    ...     with unisono.open_array("unisono://b.npy", "w", shape=(2, 3), dtype="i8") as b:
    ...         moved = a.write(np.ones((2, 3), "i8"))
    ...         ones, moved = unisono.transfer([a.read_request(), b.write_request(np.full((2, 3), 7))])
    ...         ones.sum(), moved.bytes, b[1, 1:].read()
    (np.int64(6), 48, array([7, 7]))
    """
    moved: list[Any] = start_transfer(requests, sync=sync).wait()
    return moved
