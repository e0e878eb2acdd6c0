"""Headers of NumPy's .npy format, by which an array describes itself."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.lib import format as npy

from . import errors
from ._native import File

# Bytes of the header of a new array: the data begins at a page.
HEADER_BYTES = 4096

# Longest header that is read, in bytes.
_HEADER_BYTES_MAX = 1 << 16


def description_of(dtype: np.dtype[Any]) -> Any:
    """Return a dtype as NumPy writes it in headers."""
    try:
        return npy.dtype_to_descr(dtype)
    except ValueError as error:
        raise errors.UsageError("cannot make an array", str(error), "give a dtype without overlapping fields") from None


def plain_dtype(name: str, dtype: Any) -> np.dtype[Any]:
    """Return a dtype without Python objects, for a file."""
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except TypeError as error:
        raise errors.UsageError(f"cannot open {name!r}", str(error), "give a dtype of NumPy") from None
    if found.hasobject:
        raise errors.UsageError(f"cannot open {name!r}", f"{found} has Python objects", "give a dtype of numbers or bytes")
    return found


def make_header(shape: tuple[int, ...], dtype: np.dtype[Any], order: str) -> bytes:
    """Return a header of the .npy format, version 1.0, of HEADER_BYTES bytes."""
    about = {"descr": description_of(dtype), "fortran_order": order == "F", "shape": shape}
    try:
        text = repr(about).encode("latin-1")
    except UnicodeEncodeError:
        help = "use letters of Latin-1, or header=False"
        raise errors.UsageError("cannot make an array", f"{dtype} has names with other letters", help) from None
    room = HEADER_BYTES - len(npy.magic(1, 0)) - 2
    if len(text) + 1 > room:
        raise errors.UsageError("cannot make an array", "its dtype has too many fields", "use header=False")
    return npy.magic(1, 0) + room.to_bytes(2, "little") + text.ljust(room - 1) + b"\n"


def read_header(file: File) -> dict[str, Any]:
    """Return shape, dtype, order and offset of an array that describes itself."""
    what = f"cannot open {file.name!r} as an array"
    stream = io.BytesIO(file.read(0, _HEADER_BYTES_MAX))
    try:
        version = npy.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"version {version[0]}.{version[1]} of the format is not known here")
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, is_fortran, dtype = read(stream, max_header_size=_HEADER_BYTES_MAX)
    except Exception as error:
        help = "give shape, dtype and header=False for a file of elements only"
        raise errors.UsageError(what, f"its header is not of the .npy format: {error}", help) from None
    if dtype.hasobject or not all(0 <= extent < 2**63 for extent in shape):
        raise errors.UsageError(what, f"its header says shape {shape} and {dtype}", "write it anew")
    return {"shape": shape, "dtype": dtype, "order": "F" if is_fortran else "C", "offset": stream.tell()}
