"""Exceptions: one class for each kind of error, below the built-in exception that fits.

The text of each has three parts: error, cause and help.
"""

from __future__ import annotations

import errno
from typing import Any

from ._native import error_kinds

__all__ = ["UnisonoError", "of_kind"]


class UnisonoError(Exception):
    """An error of Unisono.

    Attributes
    ----------
    error, cause, help : str
        The failure, its reason, and what can be done.
    kind : str
        Name of the kind, such as ``"not-found"``.
    exit_code : int
        Exit code of a command that ends with it.
    file : str or None
        Name of the file.
    range : tuple of int or None
        First byte of the file that is concerned, and the byte behind the last.
    server : int or None
        Number of the server whose disk, process or connection it is.
    ranks : list of int
        Ranks of the group that are concerned.
    """

    kind = "other"
    exit_code = 1
    file: str | None = None
    range: tuple[int, int] | None = None
    server: int | None = None
    ranks: list[int] = []

    def __init__(self, error: str = "", cause: str = "", help: str = "") -> None:
        # Not by OSError, which would take the texts for a number and names of files.
        Exception.__init__(self, error, cause, help)
        self.error, self.cause, self.help = error, cause, help
        _number(self)

    def __str__(self) -> str:
        return f"{self.error}\ncause: {self.cause}\nhelp:  {self.help}"

    def __reduce__(self) -> Any:
        place = {"file": self.file, "range": self.range, "server": self.server, "ranks": self.ranks}
        return (of_kind, (self.kind, self.error, self.cause, self.help, place))


def _number(error: Any) -> None:
    """Give an error of the operating system its number and text."""
    if isinstance(error, OSError):
        error.errno, error.strerror = getattr(error, "_errno", errno.EIO), "; ".join(error.args[:2])


class OtherError(UnisonoError, OSError):
    """A failure that no other class names."""


class UsageError(UnisonoError, ValueError):
    """A request that makes no sense."""


class NoInstanceError(UnisonoError, ConnectionError):
    """There is no instance, or its key cannot be used."""


class NotFoundError(UnisonoError, FileNotFoundError):
    """There is no such file or directory."""


class AlreadyExistsError(UnisonoError, FileExistsError):
    """The name is taken."""


class BadNameError(UnisonoError, ValueError):
    """The name cannot name a file."""


class NotADirectory(UnisonoError, NotADirectoryError):
    """A file, where a directory must be."""


class IsADirectory(UnisonoError, IsADirectoryError):
    """A directory, where a file must be."""


class DirectoryNotEmptyError(UnisonoError, OSError):
    """The directory holds something."""


class BadAccessError(UnisonoError, ValueError):
    """The access does not fit the file or the memory."""


class PastEndError(UnisonoError, EOFError):
    """The file ends before the bytes that were asked for."""


class RefusedError(UnisonoError, OSError):
    """A server refuses the request."""


class WrongVersionError(UnisonoError, ConnectionError):
    """Client and server are of different releases."""


class NoSpaceError(UnisonoError, OSError):
    """A disk is full."""


class CorruptError(UnisonoError, OSError):
    """Data is not what was written."""


class DiskFailedError(UnisonoError, OSError):
    """A disk failed."""


class CatalogueFailedError(UnisonoError, OSError):
    """The catalogue failed."""


class ServerLeftError(UnisonoError, ConnectionError):
    """A server has ended, or cannot be reached."""


class ServerStalledError(UnisonoError, TimeoutError):
    """A server does not answer within the time-out."""


class MemberLeftError(UnisonoError, ConnectionAbortedError):
    """A member of a group has left during a collective call."""


class MembersMissingError(UnisonoError, TimeoutError):
    """Members of a group did not join a collective call within the time-out."""


class CallsDifferError(UnisonoError, ValueError):
    """Members of a group made different calls."""


class CancelledError(UnisonoError, OSError):
    """The call was cancelled, because another server or member failed."""


class TransferFailedError(UnisonoError, OSError):
    """A transfer failed in an unforeseen way."""


class ForkedError(UnisonoError, RuntimeError):
    """The process was forked after it connected."""


class InternalError(UnisonoError, RuntimeError):
    """A defect of the library."""


class InterruptedCallError(UnisonoError, InterruptedError):
    """The user interrupted the call."""


class LocalFileError(UnisonoError, OSError):
    """A local file could not be read or written."""


class LockTimedOutError(UnisonoError, TimeoutError):
    """A member of a group holds a lock for longer than the time-out."""


class ReadOnlyError(UnisonoError, OSError):
    """Nothing can be changed: some data of the instance is lost."""


_CLASSES: dict[str, type[UnisonoError]] = {
    "other": OtherError,
    "usage": UsageError,
    "no-instance": NoInstanceError,
    "not-found": NotFoundError,
    "already-exists": AlreadyExistsError,
    "bad-name": BadNameError,
    "not-a-directory": NotADirectory,
    "is-a-directory": IsADirectory,
    "directory-not-empty": DirectoryNotEmptyError,
    "bad-access": BadAccessError,
    "past-end": PastEndError,
    "refused": RefusedError,
    "wrong-version": WrongVersionError,
    "no-space": NoSpaceError,
    "corrupt": CorruptError,
    "disk-failed": DiskFailedError,
    "catalogue-failed": CatalogueFailedError,
    "server-left": ServerLeftError,
    "server-stalled": ServerStalledError,
    "member-left": MemberLeftError,
    "members-missing": MembersMissingError,
    "calls-differ": CallsDifferError,
    "cancelled": CancelledError,
    "transfer-failed": TransferFailedError,
    "forked": ForkedError,
    "internal": InternalError,
    "interrupted": InterruptedCallError,
    "local-file": LocalFileError,
    "lock-timed-out": LockTimedOutError,
    "read-only": ReadOnlyError,
}

for _kind, _code, _errno in error_kinds():
    _class = _CLASSES[_kind]
    _class.kind, _class.exit_code = _kind, _code
    _class._errno = _errno  # type: ignore[attr-defined]

__all__ += [one.__name__ for one in _CLASSES.values()]


def of_kind(kind: str, error: str, cause: str, help: str, place: dict[str, Any]) -> UnisonoError:
    """Return the exception of a kind of error, as the extension module makes it."""
    made = _CLASSES[kind](error, cause, help)
    if isinstance(made, OSError) and place["file"] is not None:
        made.filename = place["file"]
    made.file, made.range = place["file"], place["range"]
    made.server, made.ranks = place["server"], place["ranks"]
    return made
