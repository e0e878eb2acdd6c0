"""Unisono: a parallel file system whose servers direct collective transfers.

`unisono.fs` has the file system for fsspec, :func:`open_array` opens distributed arrays,
:func:`transfer` moves parts of several arrays in one call, :func:`open_records` selects records at the servers, :func:`simulate` and :func:`sweep` run the file system on modelled machines, and :func:`connect` returns
a connection, whose files take and fill any object with the buffer protocol.

>>> import unisono
>>> connection = unisono.connect()          # to the instance of UNISONO_INSTANCE
>>> with connection.open("field", "w") as file:
...     file.write(0, b"ten bytes.")
10
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import errors
from ._connect import connect, disconnect, mounted
from ._native import __version__

if TYPE_CHECKING:
    from .arrays import Array, open_array
    from .records import Records, open_records
    from .simulation import simulate, sweep
    from .transfers import start_transfer, transfer

__all__ = [
    "Array",
    "Records",
    "__version__",
    "connect",
    "disconnect",
    "errors",
    "mounted",
    "open_array",
    "open_records",
    "simulate",
    "start_transfer",
    "sweep",
    "transfer",
]


def __getattr__(name: str) -> Any:
    """Import what needs other packages, such as NumPy, at its first use."""
    if name in ("open_array", "Array"):
        from . import arrays

        return getattr(arrays, name)
    if name in ("open_records", "Records"):
        from . import records

        return getattr(records, name)
    if name in ("transfer", "start_transfer"):
        from . import transfers

        return getattr(transfers, name)
    if name in ("simulate", "sweep"):
        from . import simulation

        return getattr(simulation, name)
    raise AttributeError(f"module 'unisono' has no attribute {name!r}")
