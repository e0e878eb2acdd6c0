"""Distributions of arrays: words of High Performance Fortran, grids of processes, and indices."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import errors
from ._native import Part


# Largest extent of a dimension.
_EXTENT_MAX = 2**63 - 1


def indices_from(values: Any, what: str) -> tuple[int, ...]:
    """Return whole numbers from 0 on as a tuple; refuse others. One number stands for itself."""
    try:
        found = tuple(operator.index(value) for value in np.atleast_1d(values).tolist()) if np.size(values) else ()
    except (TypeError, ValueError, OverflowError):
        found = (-1,)
    if any(not 0 <= value <= _EXTENT_MAX for value in found):
        raise errors.UsageError(
            "cannot use an array", f"{what} {values!r} is not made of whole numbers from 0 to 2**63 - 1", "correct it"
        )
    return found


def index_from(value: Any, what: str) -> int:
    """Return one whole number from 0 on; refuse others."""
    if np.ndim(value) != 0:
        raise errors.UsageError("cannot use an array", f"{what} {value!r} is not one number", "correct it")
    return indices_from(value, what)[0]


def _factor(processes: int, dimensions: int) -> list[int]:
    """Return factors of a number of processes, as equal as possible, the greatest first."""
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


# Distribution with which each process has the whole array.
WHOLE = "whole"


def check_words(distribution: Any) -> None:
    """Refuse what is no sequence of words, and no distribution of its own."""
    if distribution is None or (isinstance(distribution, str) and distribution == WHOLE):
        return
    if isinstance(distribution, str) or not isinstance(distribution, Sequence):
        raise errors.UsageError(
            "cannot distribute an array",
            f"{distribution!r} is no sequence of words",
            'give a word for each dimension, such as ("block", None), or "whole"',
        )
    words: list[Any] = list(distribution)  # pyright: ignore[reportUnknownArgumentType]
    for word in words:
        if word is not None:
            Part.dealt([1], 1, [str(word).strip().lower()], [1], 0, 1, 0)


def deal(
    distribution: Sequence[str | None] | str | None, grid: Sequence[int] | None, dimensions: int, processes: int
) -> tuple[list[str], list[int]]:
    """Return a word for each dimension, and the grid: one of a single process if each has the whole."""
    if isinstance(distribution, str) and distribution == WHOLE:
        return ["none"] * dimensions, [1] * dimensions
    words = words_of(distribution, dimensions)
    return words, grid_of(grid, words, processes)


def words_of(distribution: Sequence[str | None] | str | None, dimensions: int) -> list[str]:
    """Return the distribution of each dimension as the words of High Performance Fortran."""
    check_words(distribution)
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


def grid_of(grid: Sequence[int] | None, words: list[str], processes: int) -> list[int]:
    """Return the number of processes along each dimension."""
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
    found = list(indices_from(grid, "the grid"))
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


def chunk_of(extent: int, word: str, processes: int) -> int:
    """Return how many consecutive indices one process has, before those of the next."""
    if word == "none":
        return max(1, extent)
    if word == "block":
        return max(1, -(-extent // processes))
    return 1 if word == "cyclic" else int(word[len("cyclic(") : -1])


def count_of(extent: int, word: str, processes: int, place: int) -> int:
    """Return the number of indices of the process at a place, along one dimension."""
    chunk = chunk_of(extent, word, processes)
    rounds, rest = divmod(extent, chunk * processes)
    return rounds * chunk + min(max(0, rest - place * chunk), chunk)


def indices_of(extent: int, word: str, processes: int, place: int) -> np.ndarray[Any, Any]:
    """Return the global indices of the process at a place, along one dimension."""
    own = np.arange(count_of(extent, word, processes, place))
    chunk = chunk_of(extent, word, processes)
    indices: np.ndarray[Any, Any] = (own // chunk * processes + place) * chunk + own % chunk
    return indices
