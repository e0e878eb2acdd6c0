"""Views of arrays in files: indices, and the part of a process as nested strides."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

from . import errors
from ._distribution import chunk_of, count_of
from ._native import Part

# Count, distance in the file, and distance in memory, of copies of a piece.
_Level = tuple[int, int, int]


def strides_of(shape: Sequence[int], item_bytes: int, order: str) -> tuple[int, ...]:
    """Return the distance in bytes of neighbours along each dimension of a packed array."""
    strides: list[int] = []
    distance = item_bytes
    for extent in reversed(shape) if order == "C" else shape:
        strides.append(distance)
        distance *= extent
    return tuple(strides[::-1] if order == "C" else strides)


def chosen(shape: Sequence[int], index: Any) -> list[tuple[int, int | None, int]]:
    """Return first index, count and step along each dimension of an array; no count for a single index."""
    words: list[Any] = list(index) if isinstance(index, tuple) else [index]  # pyright: ignore[reportUnknownArgumentType]
    gaps = [at for at, word in enumerate(words) if word is Ellipsis]
    if len(gaps) > 1:
        raise _refused(index, "it has more than one ...")
    missing = len(shape) - len(words) + len(gaps)
    if missing < 0:
        raise _refused(index, f"the array has {len(shape)} dimensions")
    at = gaps[0] if gaps else len(words)
    words[at : at + len(gaps)] = [slice(None)] * missing
    return [_chosen(word, extent, index) for word, extent in zip(words, shape)]


def _chosen(word: Any, extent: int, index: Any) -> tuple[int, int | None, int]:
    if isinstance(word, slice):
        try:
            start, stop, step = word.indices(extent)
        except (TypeError, ValueError) as error:
            raise _refused(index, str(error)) from None
        if step < 1:
            raise _refused(index, f"a step is {step}")
        return start, len(range(start, stop, step)), step
    if isinstance(word, bool):
        raise _refused(index, f"{word!r} is no whole number")
    try:
        number = operator.index(word)
    except TypeError:
        raise _refused(index, f"{word!r} is no whole number and no slice") from None
    if not -extent <= number < extent:
        raise _refused(index, f"{number} is not below {extent}")
    return number % extent, None, 1


def _refused(index: Any, cause: str) -> errors.UsageError:
    return errors.UsageError(
        f"cannot take the view {index!r}", cause, "give whole numbers within the array, and slices with steps from 1 on"
    )


def part_of(axes: Sequence[tuple[int, str, int, int]], strides: Sequence[int], item_bytes: int, offset: int) -> Part:
    """Return the part of a process, packed in its memory in C order.

    Each axis is extent, word, processes and place of the process; `strides` are distances in the file.
    """
    local = strides_of([count_of(*axis) for axis in axes], item_bytes, "C")
    pieces = [list(_pieces(axis, *distances)) for axis, *distances in zip(axes, strides, local)]
    nests: list[tuple[int, int, int, list[_Level]]] = []
    for combination in itertools.product(*pieces):
        file_offset, memory_offset, length = offset, 0, item_bytes
        levels: list[_Level] = []
        for file_start, memory_start, axis_levels in reversed(combination):
            file_offset, memory_offset = file_offset + file_start, memory_offset + memory_start
            for count, file_stride, memory_stride in axis_levels:
                if not levels and file_stride == memory_stride == length:
                    length *= count
                elif count > 1:
                    levels.append((count, file_stride, memory_stride))
        nests.append((file_offset, memory_offset, length, levels))
    return Part.nested(nests)


def _pieces(axis: tuple[int, str, int, int], file_stride: int, memory_stride: int) -> Any:
    """Yield start in the file, start in memory, and levels: of whole chunks, and of the last one."""
    extent, word, processes, place = axis
    chunk, count = chunk_of(extent, word, processes), count_of(*axis)
    whole, rest = divmod(count, chunk)
    if whole:
        levels = [(chunk, file_stride, memory_stride), (whole, chunk * processes * file_stride, chunk * memory_stride)]
        yield place * chunk * file_stride, 0, levels
    if rest:
        start = (whole * processes + place) * chunk * file_stride
        yield start, whole * chunk * memory_stride, [(rest, file_stride, memory_stride)]
