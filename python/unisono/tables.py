"""Tables of rows, which pandas and pyarrow take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

if TYPE_CHECKING:
    import pandas

__all__ = ["ROWS_SHOWN", "Table", "shown"]

# Rows that a text or a notebook shows.
ROWS_SHOWN = 40


class Table(Sequence[dict[str, Any]]):
    """Rows with named columns.

    Attributes
    ----------
    rows : list of dict

    Examples
    --------
    >>> table = Table([{"servers": 1, "mib_s": 2.0}, {"servers": 2, "mib_s": 4.0}])
    >>> table[1]["mib_s"], table.columns()
    (4.0, ['servers', 'mib_s'])
    >>> table.to_pandas()["mib_s"].max()
    np.float64(4.0)
    >>> table.to_arrow().num_rows
    2
    """

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self.rows: list[dict[str, Any]] = list(rows)

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice[Any, Any, Any]) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice[Any, Any, Any]) -> dict[str, Any] | list[dict[str, Any]]:
        """Return a row, or of a slice a list of rows."""
        return self.rows[index]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def columns(self) -> list[str]:
        """Return the names of all columns, in order."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def _data(self) -> dict[str, list[Any]]:
        return {name: [row.get(name) for row in self.rows] for name in self.columns()}

    def to_pandas(self) -> pandas.DataFrame:
        """Return a ``pandas.DataFrame``."""
        import pandas

        return pandas.DataFrame(self._data())

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.Table``."""
        import pyarrow as arrow  # without types

        data = {name: _without_overflow(values) for name, values in self._data().items()}
        return arrow.table(data)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    def _text(self, columns: Sequence[str]) -> str:
        lines = [[shown(row.get(name)) for name in columns] for row in self.rows[:ROWS_SHOWN]]
        widths = [max(len(cell) for cell in cells) for cells in zip(columns, *lines)]
        text = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in [columns, *lines]]
        left = len(self.rows) - len(lines)
        return "\n".join(text + ([f"... and {left} more"] if left else []))


def _without_overflow(values: list[Any]) -> Any:
    """Return whole numbers that need 64 bits without a sign as such; other values as they are."""
    is_large = all(isinstance(value, int) for value in values) and max(values, default=0) >= 2**63
    return np.array(values, dtype="u8") if is_large else values


def shown(value: Any) -> str:
    """Return a value as a table shows it.

    >>> shown(0.123456), shown(8192)
    ('0.1235', '8192')
    """
    return f"{value:.4g}" if isinstance(value, float) else str(value)
