"""Unisono: a parallel file system whose servers direct collective transfers.

>>> import unisono
>>> connection = unisono.connect()          # the instance of UNISONO_INSTANCE  # doctest: +SKIP
>>> with connection.open("field", "w") as file:                                 # doctest: +SKIP
...     file.write(0, b"bytes")

`unisono.fs` has the file system for fsspec, and :func:`open_array` distributed arrays.
"""

from __future__ import annotations

from typing import Any

from ._unisono import __version__

__all__ = ["__version__", "connect", "disconnect", "errors"]

from . import errors
from ._connect import connect, disconnect


def __getattr__(name: str) -> Any:
    """Import what needs other packages, such as NumPy, at its first use."""
    if name in ("open_array", "Array"):
        from . import arrays

        return getattr(arrays, name)
    raise AttributeError(f"module 'unisono' has no attribute {name!r}")
