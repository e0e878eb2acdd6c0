"""Connections of this process, each shared by all who ask for the same instance."""

from __future__ import annotations

import os
import threading
from typing import Any, TypeAlias

from ._native import Connection, after_fork, default_instance

_lock = threading.Lock()
_Key: TypeAlias = tuple[int, str, float | None]
_connections: dict[_Key, Connection] = {}
_locks: dict[_Key, threading.RLock] = {}


def connect(instance: str | os.PathLike[str] | None = None, timeout: float | None = None) -> Connection:
    """Return the connection of this process to an instance; make it if there is none.

    Parameters
    ----------
    instance : path, optional
        Directory of the instance. Default: ``UNISONO_INSTANCE``, or the usual directory.
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
    named = str(os.fspath(instance)) if instance else os.environ.get("UNISONO_INSTANCE")
    directory = os.path.abspath(named or default_instance())
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
    directory: str | None = None if instance is None else os.path.abspath(os.fspath(instance))
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
