"""Simulations: the file system on modelled machines, one or many at a time, as tables and pictures."""

from __future__ import annotations

import html
import itertools
import json
import math
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from . import errors
from ._native import draw_bars, draw_lines
from ._native import simulate as _simulate
from .tables import ROWS_SHOWN, Table, shown

__all__ = ["Picture", "Results", "simulate", "sweep"]

Scenario: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | None

# Columns of a row that hold the value of a key of another name.
_COLUMN_OF_KEY = {"record": "record_bytes", "size": "file_bytes", "block": "block_bytes"}

# What is measured; other columns say what was simulated.
_MEASURES = (
    "mib_s",
    "moved_mib_s",
    "seconds",
    "coefficient_of_variation",
    "verified",
    "client_peak_bytes",
    "server_peak_bytes",
    "cpu_busy_percent",
    "cpu_interruptions",
    "cpu_available_percent",
    "cpu_usable_with_barriers_percent",
    "events",
    "digest",
    "host_seconds",
)

_AXES = {
    "mib_s": "throughput, MiB/s",
    "moved_mib_s": "throughput of the clients, MiB/s",
    "seconds": "seconds of a transfer",
    "record_bytes": "record size, bytes",
    "file_bytes": "file size, bytes",
    "block_bytes": "block size, bytes",
    "disks_per_server": "disks of each server",
}


class Picture:
    """A picture in SVG, which notebooks show. Made by :meth:`Results.plot`.

    Attributes
    ----------
    svg : str
        The whole picture; it loads nothing else.
    """

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture into a local file."""
        pathlib.Path(path).write_text(self.svg, encoding="utf-8")

    def to_html(self) -> str:
        """Return the picture on a white ground, since pages may be dark."""
        return f'<div style="background: #fff; color: #000; width: fit-content; padding: 4px">{self.svg}</div>'

    _repr_html_ = to_html


class Results(Table):
    """Results of simulations: a row for each case, as ``unisono sim --json`` has them.

    A row has ``strategy``, ``pattern``, ``record_bytes``, ``file_bytes``, ``clients``, ``servers``,
    ``disks_per_server``, ``block_bytes``, ``machine``, ``layout``, ``changed`` (differences from the
    preset), ``trials``, ``sync``, and as means over trials ``mib_s`` (2**20 bytes of the file a second),
    ``moved_mib_s`` (of the clients' memories), ``seconds``, ``coefficient_of_variation``; then ``events``
    and ``digest`` (equal for equal simulations), and ``host_seconds`` of computing. A sweep adds a column
    for each key that it varies.

    Notebooks show a table and a picture. In tables of pandas and pyarrow, ``changed`` is text with a line
    for each change.

    Examples
    --------
    >>> results = unisono.sweep(pattern="rb", strategy="disk-directed", servers=[4, 8, 16], size="1MiB", trials=1)
    >>> results.to_pandas()[["servers", "mib_s"]].round(1)
       servers  mib_s
    0        4    7.5
    1        8   13.5
    2       16   22.7
    >>> results.to_arrow().num_rows, results.best()["servers"]
    (3, 16)
    >>> results.plot(x="servers").save("servers.svg")
    """

    def best(self, column: str = "mib_s") -> dict[str, Any]:
        """Return the row with the largest value of a column of numbers."""
        self._check_numbers(column)
        return max(self.rows, key=lambda row: row.get(column, -math.inf))

    def columns(self) -> list[str]:
        """Return the names of all columns: what was simulated, then what was measured."""
        names = super().columns()
        return [name for name in names if name not in _MEASURES] + [name for name in names if name in _MEASURES]

    def _data(self) -> dict[str, list[Any]]:
        table = super()._data()
        if "changed" in table:
            table["changed"] = ["\n".join(changes or []) for changes in table["changed"]]
        return table

    # ---- Pictures -----------------------------------------------------------------------------

    def _varied(self) -> list[str]:
        """Columns of what was simulated that are not the same in all rows."""
        settings = [name for name in self.columns() if name not in (*_MEASURES, "changed")]
        return [name for name in settings if len({str(row.get(name)) for row in self.rows}) > 1]

    def plot(self, x: str | None = None, y: str = "mib_s", by: Sequence[str] | None = None, title: str | None = None) -> Picture:
        """Draw a measured column.

        Parameters
        ----------
        x : str, optional
            Column of the horizontal axis. Default: the first number above 0 that varies, or else the
            pattern. Numbers make lines over a logarithmic axis, words make bars.
        y : str
            Column of the vertical axis. Rows with the same x and series are averaged.
        by : sequence of str, optional
            Columns that distinguish the lines, or bars of one colour. Default: all others that vary.
        title : str, optional
            Default: what all rows have in common.

        Raises
        ------
        unisono.errors.UsageError
            There is no such column, or no row.
        """
        self._check_columns(*([] if x is None else [x]), *(by or []))
        self._check_numbers(y)
        varied = self._varied()
        numbers = [name for name in varied if self._is_number(name)]
        x = x or (numbers or [name for name in ("pattern", "strategy") if name in varied] or ["pattern"])[0]
        by = [name for name in varied if name != x] if by is None else list(by)
        values: dict[str, dict[Any, list[float]]] = {}
        for row in self.rows:
            name = ", ".join(_word(column, row.get(column), len(by) > 1) for column in by) or y
            if isinstance(row.get(y), (int, float)) and math.isfinite(row[y]):
                values.setdefault(name, {}).setdefault(row.get(x), []).append(float(row[y]))
        means = {name: {at: math.fsum(v) / len(v) for at, v in points.items()} for name, points in values.items()}
        title = title or self._title({x, *by})
        axes = (_AXES.get(x, x.replace("_", " ")), _AXES.get(y, y.replace("_", " ")))
        if self._is_number(x) and len({row[x] for row in self.rows}) > 1:
            lines = [(name, sorted((float(at), mean) for at, mean in points.items())) for name, points in means.items()]
            return Picture(draw_lines(title, *axes, lines))
        groups = list(dict.fromkeys(row.get(x) for row in self.rows))
        bars = [(name, [points.get(group) for group in groups]) for name, points in means.items()]
        return Picture(draw_bars(title, *axes, [str(group) for group in groups], bars))

    def _check_columns(self, *names: str) -> None:
        known = self.columns()
        for name in names:
            if name not in known:
                raise errors.UsageError("cannot draw results", f"they have no column {name!r}", f"give one of {', '.join(known)}")

    def _check_numbers(self, name: str) -> None:
        self._check_columns(name)
        if not any(isinstance(row.get(name), (int, float)) for row in self.rows):
            raise errors.UsageError("cannot compare results", f"{name!r} has no numbers", "give a measured column")

    def _is_number(self, name: str) -> bool:
        values = [row.get(name) for row in self.rows]
        return all(isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 for value in values)

    def _title(self, shown: set[str]) -> str:
        """Return in words what all rows have in common."""
        row, varied = self.rows[0], {*shown, *self._varied()}
        machine = row["machine"] if row["machine"] == "this-machine" else f"simulated {row['machine']}"
        parts = [] if "machine" in varied else [machine.replace("-", " ")]
        parts += [row[name] for name in ("pattern", "strategy") if name not in varied]
        parts += [_count(row[name], name) for name in ("clients", "servers") if name not in varied]
        parts += [] if "record_bytes" in varied else [f"records of {row['record_bytes']} bytes"]
        parts += [] if "layout" in varied or row["layout"] == "as-is" else [row["layout"]]
        return ", ".join(parts)

    def _repr_html_(self) -> str:
        if not self.rows:
            return "<p>no results</p>"
        varied = self._varied()
        spread = ["coefficient_of_variation"] if self.rows[0]["trials"] > 1 else []
        columns = [*(varied or ["pattern", "strategy"]), "mib_s", "seconds", *spread]
        heads = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
        lines = [
            "<tr>" + "".join(f'<td style="text-align: right">{html.escape(shown(row.get(name)))}</td>' for name in columns) + "</tr>"
            for row in self.rows[:ROWS_SHOWN]
        ]
        left = len(self.rows) - len(lines)
        more = f"<p>and {left} more rows: to_pandas() has them all</p>" if left else ""
        is_same = len({str(row.get("changed")) for row in self.rows}) == 1
        changed: list[str] = self.rows[0].get("changed", []) if is_same else []
        note = "".join(f"; {html.escape(change)}" for change in changed)
        caption = f"<p>{html.escape(self._title(set()))}{note}; mean of {_count(self.rows[0]['trials'], 'trials')}</p>"
        picture = self.plot().to_html() if len(self.rows) > 1 else ""
        return f"{caption}<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>{more}{picture}"

    def __repr__(self) -> str:
        return self._text([*(self._varied() or ["pattern", "strategy"]), "mib_s", "seconds"])


def _count(number: int, plural: str) -> str:
    return f"{number} {plural.removesuffix('s') if number == 1 else plural}"


def _word(column: str, value: Any, is_one_of_many: bool) -> str:
    """A value in a legend; a number needs its name."""
    is_plain = isinstance(value, str) or not is_one_of_many and column == "strategy"
    return str(value) if is_plain else f"{column.replace('_', ' ')} {shown(value)}"


def _settings(scenario: Scenario, overrides: dict[str, Any]) -> tuple[tuple[str, str] | None, dict[str, Any]]:
    """The scenario file by name and text, if there is one, and what overrides it by key."""
    source, given = None, dict[str, Any]()
    if isinstance(scenario, Mapping):
        given = {key: value for key, value in scenario.items() if key != "parameters"}
        given.update(scenario.get("parameters") or {})
    elif scenario is not None:
        source = (os.fspath(scenario), _text_of(scenario))
    given.update(overrides)
    return source, {key.replace("_", "-"): _plain(value) for key, value in given.items()}


def _text_of(path: str | os.PathLike[str]) -> str:
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        place: dict[str, Any] = {"file": os.fspath(path), "range": None, "server": None, "ranks": []}
        kind = "not-found" if isinstance(error, FileNotFoundError) else "local-file"
        what = f"cannot read the scenario file {os.fspath(path)}"
        raise errors.of_kind(kind, what, str(error), "name a TOML file", place) from None


def _plain(value: Any) -> Any:
    """A value that JSON can write: NumPy's scalars and arrays, ranges and paths are made plain."""
    items: Any = value
    if hasattr(value, "__fspath__"):
        return value.__fspath__()
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_plain(one) for one in items]
    return value


def _run(source: tuple[str, str] | None, points: list[str], jobs: int | None = None) -> list[list[dict[str, Any]]]:
    return [json.loads(rows) for rows in _simulate(source, points, jobs)]


def _json(settings: dict[str, Any]) -> str:
    try:
        return json.dumps(settings)
    except TypeError as error:
        raise errors.UsageError("cannot simulate", str(error), "give numbers, words, True or False, or lists of such") from None


def simulate(scenario: Scenario = None, /, **overrides: Any) -> Results:
    """Simulate a scenario: each pattern, with each record size, by each strategy.

    Parameters
    ----------
    scenario : path or dict, optional
        A scenario file, or its keys and values (parameters of the machine also below ``"parameters"``).
        Default: the main case of the papers, on the machine of 1994.
    **overrides
        Keys of a scenario, with ``_`` for ``-``, such as ``strategy="disk-directed"``,
        ``record="8KiB"``, ``disks_per_server=2``. ``docs/scenarios.md`` and ``unisono sim --explain``
        explain each. Sizes are numbers of bytes, or words such as ``"10MiB"``.

    Returns
    -------
    Results
        One row for each case.

    Raises
    ------
    unisono.errors.UsageError
        A key, a value or a machine that makes no sense.
    unisono.errors.NotFoundError, unisono.errors.LocalFileError
        The scenario file is not there, or cannot be read.

    Examples
    --------
    >>> import unisono
    >>> results = unisono.simulate(pattern="rb", strategy=["caching", "disk-directed"], size="1MiB", trials=1)
    >>> [row["strategy"] for row in results]
    ['caching', 'disk-directed']
    >>> round(results.best()["mib_s"])
    23
    """
    source, settings = _settings(scenario, overrides)
    return Results(row for rows in _run(source, [_json(settings)]) for row in rows)


def sweep(scenario: Scenario = None, /, *, client: Any = None, **overrides: Any) -> Results:
    """Simulate each combination of the values in lists, on all processors.

    Parameters
    ----------
    scenario, **overrides
        As for :func:`simulate`. Every list is crossed with the others; the last one varies fastest.
    client : distributed.Client, optional
        A Dask cluster that runs the simulations, a task for each combination. Its workers need this
        package. Default: the processors of this machine.

    Returns
    -------
    Results
        Rows in the order of the combinations, with a column for each key that varies.

    Examples
    --------
    >>> import unisono
    >>> results = unisono.sweep(servers=[4, 16], strategy="disk-directed", pattern="rb", size="1MiB", trials=1)
    >>> [row["servers"] for row in results]
    [4, 16]
    """
    source, settings = _settings(scenario, overrides)
    varied = [key for key, value in settings.items() if isinstance(value, list)]
    for key in varied:
        if not settings[key]:
            raise errors.UsageError("cannot sweep", f"the list of {key} is empty", "give at least one value")
    combinations = list(itertools.product(*(settings[key] for key in varied)))
    chosen = [dict(zip(varied, combination)) for combination in combinations]
    points = [_json({**settings, **choice}) for choice in chosen]
    if client is None:
        found = _run(source, points)
    else:
        futures = client.map(_run_point, [source] * len(points), points, pure=False)
        try:
            found = client.gather(futures)
        finally:
            client.cancel(futures)
    rows: list[dict[str, Any]] = []
    for choice, of_point in zip(chosen, found):
        columns = {_COLUMN_OF_KEY.get(key, key.replace("-", "_")): value for key, value in choice.items()}
        rows += [{**columns, **row} for row in of_point]
    return Results(rows)


def _run_point(source: tuple[str, str] | None, point: str) -> list[dict[str, Any]]:
    """Simulate one combination, on a worker that has one thread for it."""
    return _run(source, [point], 1)[0]
