"""Opening of one file by several processes: all of them open it, or all get an error."""

from __future__ import annotations

import ast
import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeAlias, TypeVar

from . import errors
from ._connect import connect, place_of
from ._distribution import index_from
from ._native import Connection, File, Group, instance_name

Wanted = TypeVar("Wanted")

# Processes of one file: so many members may a group have.
_PROCESSES_MAX = 1 << 16


@dataclass(frozen=True)
class Processes:
    """Arguments that say which processes open a file: a communicator, or rank, size and a name to meet under."""

    comm: Any = None
    rank: int | None = None
    size: int | None = None
    group: str | None = None

    def place(self, name: str) -> tuple[int, int]:
        """Return the rank of this process, and the number of processes."""
        what = f"cannot open {name!r}"
        if self.comm is not None:
            if not hasattr(self.comm, "allgather"):
                raise errors.UsageError(what, f"{self.comm!r} is no communicator", "give one of mpi4py, or rank and size")
            return int(self.comm.Get_rank()), int(self.comm.Get_size())
        processes = 1 if self.size is None else index_from(self.size, "the size")
        if processes > _PROCESSES_MAX:
            raise errors.UsageError(what, f"{processes} processes are too many", f"give at most {_PROCESSES_MAX}")
        if self.rank is None and processes > 1:
            raise errors.UsageError(what, f"size is {self.size}, and rank is missing", "give the rank")
        rank = 0 if self.rank is None else index_from(self.rank, "the rank")
        if not 0 <= rank < processes:
            raise errors.UsageError(what, f"of {processes} processes, none has rank {rank}", "give 0 to size - 1")
        return rank, processes


@dataclass(frozen=True)
class Opened(Generic[Wanted]):
    """A file that all processes want alike, and what rank 0 found out about it."""

    name: str
    connection: Connection
    members: Group
    wanted: Wanted
    about: dict[str, Any]


def open_together(
    url: str | os.PathLike[str],
    kind: str,
    processes: Processes,
    instance: str | os.PathLike[str] | None,
    timeout: float | None,
    wants: Callable[[str, int], Wanted],
    look: Callable[[Connection, Wanted], dict[str, Any]],
) -> Opened[Wanted]:
    """Agree with the other processes about a file.

    `wants` makes, of the name and the number of processes, the arguments of the call, which must be equal
    everywhere by their repr; `look` is called by rank 0, and returns values that repr can write.
    """
    failure: Exception | None = None
    try:
        instance, name = place_of(str(url), instance)
    except Exception as error:
        name, failure = instance_name(str(url)), error
    comm = processes.comm
    rank, size = processes.place(name)
    meeting = str(processes.group or name)
    wanted = connection = None
    try:
        wanted = wants(name, size)
        connection = None if failure else connect(instance, timeout)
    except Exception as error:
        failure = failure or error
    if comm is not None:
        # Without this exchange, the others would wait for a process that has failed.
        answers = comm.allgather((_described(failure, name), uuid.uuid4().hex, name))
        _raise_first(failure, [answer[0] for answer in answers], name)
        meeting = answers[0][1]
        _refuse_differing(name, [answer[2] for answer in answers])
    if failure is not None or wanted is None or connection is None:
        raise failure or AssertionError("a call fails with an exception")
    members = connection.group(f"{kind} {meeting}", rank, size)
    _refuse_differing(name, [str(one) for one in _exchange(members, repr(wanted))])
    about: dict[str, Any] = {}
    if rank == 0:
        try:
            about = look(connection, wanted)
        except Exception as error:  # sent to all, so that none of them waits
            failure = error
    found = _exchange(members, (_described(failure, name), about))[0]
    _raise_first(failure, [found[0]], name)
    return Opened(name, connection, members, wanted, found[1])


class OfFile:
    """What a program has of an open file; closed by a ``with`` block."""

    def __init__(self, file: File) -> None:
        self._file = file

    def close(self) -> None:
        """Close the file, by this process. Does nothing when it was closed."""
        self._file.close()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # An exception under way is not replaced by another of the close.
        self._file.__exit__(kind, error, trace)


# Kind and text of a failure; the kind is "" for none.
_Failure: TypeAlias = tuple[str, str, str, str]


def _described(failure: Exception | None, name: str) -> _Failure:
    if failure is None:
        return ("", "", "", "")
    if isinstance(failure, errors.UnisonoError):
        return (failure.kind, failure.error, failure.cause, failure.help)
    return ("other", f"cannot open {name!r}", str(failure), "see the error of the other process")


def _raise_first(own: Exception | None, failures: Sequence[_Failure], name: str) -> None:
    """Raise the failure of this process, or else the first one of the others."""
    if own is not None:
        raise own
    for kind, what, cause, help in failures:
        if kind:
            raise errors.of_kind(kind, what, cause, help, {"file": name, "range": None, "server": None, "ranks": []})


def _exchange(group: Group, own: Any) -> list[Any]:
    """Give values that repr can write to all processes."""
    return [ast.literal_eval(bytes(other).decode()) for other in group.all_gather(repr(own).encode())]


def _refuse_differing(name: str, given: Sequence[str]) -> None:
    """Raise when processes give other arguments than rank 0: a path may lie below a mount on some hosts only."""
    differing = [rank for rank, one in enumerate(given) if one != given[0]]
    if differing:
        raise errors.CallsDifferError(
            f"cannot open {name!r}", f"ranks {differing} give other arguments than rank 0", "give the same ones everywhere"
        )
