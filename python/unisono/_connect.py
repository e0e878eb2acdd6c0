"""Connections of this process, each shared by all who ask for the same instance."""

from __future__ import annotations

import os
import threading
from typing import Any, TypeAlias

from . import errors
from ._native import Connection, after_fork, default_instance, instance_directory, instance_name
from ._native import mounted as _mounted

_lock = threading.Lock()
_Key: TypeAlias = tuple[int, str, float | None]
_connections: dict[_Key, Connection] = {}
_locks: dict[_Key, threading.RLock] = {}


def connect(instance: str | os.PathLike[str] | None = None, timeout: float | None = None) -> Connection:
    """Return the connection of this process to an instance; make it if there is none.

    Parameters
    ----------
    instance : path, optional
        Directory of the instance, or a path below a mount of it. Default: ``UNISONO_INSTANCE``, or the
        usual directory.
    timeout : float, optional
        Seconds after which servers that do not answer and members that do not come are given up.
        Default: ``UNISONO_TIMEOUT``, or 60.

    Raises
    ------
    unisono.errors.NoInstanceError
        There is no instance.
    unisono.errors.ServerLeftError
        A server cannot be reached.

    Examples
    --------
    >>> connection = unisono.connect()
    >>> connection.make_directory("run/1", parents=True)
    >>> values = np.arange(1000, dtype="f8")
    >>> with connection.open("run/1/values", "x", block_bytes=65536) as file:
    ...     file.write(0, values)           # bytes from offset 0 on
    8000
    >>> found = np.empty(10)
    >>> with connection.open("run/1/values") as file:
    ...     file.read_into(8 * 500, found), file.size()
    (80, 8000)
    >>> found[0]
    np.float64(500.0)
    >>> [entry["name"] for entry in connection.list("run/1")], connection.stat("run/1/values")["size"]
    (['run/1/values'], 8000)
    >>> connection.rename("run/1/values", "run/1/old")
    >>> connection.remove("run/1/old")
    >>> connection.open("run/1/old")
    Traceback (most recent call last):
        ...
    unisono.errors.NotFoundError: cannot open "run/1/old"
    cause: ...
    help: ...

    Notes
    -----
    A forked child gets a connection of its own. Connections may be used by any thread.
    """
    directory = _directory(instance)
    key = (os.getpid(), directory, timeout)
    with _lock:
        # A server that does not answer delays those only who ask for its instance.
        lock = _locks.setdefault(key, threading.RLock())
    with lock:
        found = _connections.get(key)
        if found is None:
            # A handler of a signal may have connected meanwhile.
            found = _connections.setdefault(key, Connection(directory, timeout=timeout))
        return found


def mounted(path: str | os.PathLike[str]) -> tuple[str, str] | None:
    """Return which file of which instance a path below a mount of an instance means.

    Parameters
    ----------
    path : path
        It need not exist. Links are followed, also the last part.

    Returns
    -------
    (instance, name) or None
        Directory of the instance, for :func:`connect`, and the name in it; None for a path that lies below
        no mount.

    Raises
    ------
    unisono.errors.NoInstanceError
        The process that served the mount has ended.

    Examples
    --------
    >>> unisono.mounted("/proc/self") is None
    True
    """
    found = _mounted(os.fspath(path))
    return None if found is None else (str(found[0]), found[1])


def place_of(word: str | os.PathLike[str], instance: str | os.PathLike[str] | None) -> tuple[str | os.PathLike[str] | None, str]:
    """Return the instance and the name that a user's word means: an absolute path may lie below a mount.

    A name without a slash at its begin is one in the instance, whatever the working directory is.
    """
    text = os.fspath(word)
    found = mounted(text) if text.startswith("/") else None
    if found is None:
        return instance, instance_name(text)
    if instance is not None and os.path.realpath(_directory(instance)) != os.path.realpath(found[0]):
        raise errors.UsageError(
            f"cannot use {text!r}",
            f"it lies below a mount of the instance {found[0]}, not of {os.fspath(instance)}",
            "leave the instance out, or give the name as unisono://NAME",
        )
    return found


def _directory(instance: str | os.PathLike[str] | None) -> str:
    """Return the directory of an instance that is named by it, by a path below a mount, or not at all."""
    named = str(os.fspath(instance)) if instance else os.environ.get("UNISONO_INSTANCE")
    return str(instance_directory(os.path.abspath(named or default_instance())))


def disconnect(instance: str | os.PathLike[str] | None = None) -> None:
    """Forget the connections of this process to an instance (default: to all).

    Later calls connect again, as they must after servers were restarted. Open files keep their
    connection, which ends with the last of them.

    Examples
    --------
    >>> before = unisono.connect()
    >>> unisono.disconnect()
    >>> unisono.connect() is before
    False
    """
    directory: str | None = None if instance is None else _directory(instance)
    with _lock:
        keys = [key for key in _connections if directory is None or directory == key[1]]
        forgotten = [_connections.pop(key) for key in keys]
    # Ending a connection may wait for servers.
    forgotten.clear()


def _after_fork() -> None:
    """Leave the parent's connections alone: their threads are not in the child."""
    global _lock, _locks, _connections
    after_fork()
    _lock, _locks = threading.Lock(), {}
    # Ending a parent's connection here would wait for a thread that is not there.
    _kept.append(_connections)
    _connections = {}


_kept: list[Any] = []
os.register_at_fork(after_in_child=_after_fork)
