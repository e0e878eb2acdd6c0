"""Records of a file, of which the servers select those that match: only these travel to the program.

The file of the examples:

>>> events = np.zeros(1000, [("id", "u4"), ("energy", "f8")])
>>> events["id"], events["energy"] = range(1000), np.linspace(0, 10, 1000)
>>> with unisono.open_array("unisono://events.npy", "w", shape=events.shape, dtype=events.dtype) as array:
...     moved = array.write(events)
"""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.lib import format as npy

from . import errors
from ._distribution import index_from
from ._native import Connection, File, Group, RecordType, find_records, reduce_records, summarise_records
from ._npy_header import description_of, plain_dtype, read_header
from ._together import OfFile, Processes, open_together

__all__ = ["Condition", "Records", "Value", "open_records"]

# Bytes of a module, or the local file that has them.
Module: TypeAlias = "bytes | bytearray | memoryview | str | os.PathLike[str]"

# Bytes of a module that are read: more than it may have.
_MODULE_READ_MAX = 1 << 24


def _constant(value: Any) -> str:
    """Return a number as a condition has it."""
    given: Any = value.item() if hasattr(value, "item") else value
    if isinstance(given, (bool, numbers.Integral)):
        return str(int(given))
    if isinstance(given, numbers.Real):
        return repr(float(given))
    raise errors.UsageError(
        f"cannot compare a field with {value!r}", f"{type(value).__name__} is no real number", "give an integer or a float"
    )


def _module_bytes(module: Module | None) -> bytes | None:
    """Return the bytes of a module, which may be in a local file."""
    if module is None:
        return None
    if not isinstance(module, (str, os.PathLike)):
        return bytes(module)
    try:
        with open(module, "rb") as file:
            return file.read(_MODULE_READ_MAX)
    except OSError as error:
        what = f"cannot read the module {os.fspath(module)!r}"
        raise errors.UsageError(what, str(error), "give a local file that you may read") from error


class Condition:
    """Condition over the fields of a record. Made by comparing values of :class:`Records`.

    Conditions are combined by ``&``, ``|`` and ``~``. Python's ``and``, ``or``, ``not`` and chained
    comparisons cannot be used; in a text they can: ``records.read_where("0 <= x < 1 and not flag")``.

    Attributes
    ----------
    text : str
        The condition as a text, as ``unisono select --where`` takes it.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def __and__(self, other: Condition | Value) -> Condition:
        return Condition(f"({self.text}) and ({_text(other)})")

    def __or__(self, other: Condition | Value) -> Condition:
        return Condition(f"({self.text}) or ({_text(other)})")

    def __invert__(self) -> Condition:
        return Condition(f"not ({self.text})")

    def __bool__(self) -> bool:
        raise TypeError("a condition has no truth value: combine conditions by &, | and ~, or write a text")

    def __repr__(self) -> str:
        return f"<condition {self.text}>"


class Value:
    """Number of each record: a field, or one computed from it. ``records["field"]`` makes it.

    Comparisons make a :class:`Condition`, with NumPy's rules for NaN, signed zeros and types. ``value & mask``
    has the bits of an integer that a mask has too, ``value % n`` is a remainder, ``value[i]`` an element of a
    field that has several.

    Attributes
    ----------
    text : str
        The value as a text.
    """

    __hash__ = None  # type: ignore[assignment]
    # It is no sequence, though it has elements; and NumPy leaves comparisons with it to it.
    __iter__ = None
    __array_ufunc__ = None

    def __init__(self, text: str) -> None:
        self.text = text

    def _compared(self, sign: str, other: object) -> Condition:
        return Condition(f"{self.text} {sign} {other.text if isinstance(other, Value) else _constant(other)}")

    def __lt__(self, other: object) -> Condition:
        return self._compared("<", other)

    def __le__(self, other: object) -> Condition:
        return self._compared("<=", other)

    def __gt__(self, other: object) -> Condition:
        return self._compared(">", other)

    def __ge__(self, other: object) -> Condition:
        return self._compared(">=", other)

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._compared("==", other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._compared("!=", other)

    def __and__(self, mask: Any) -> Any:
        if isinstance(mask, (Condition, Value)):
            return Condition(self.text) & mask
        return Value(f"({self.text} & {index_from(mask, 'the mask')})")

    def __or__(self, other: Condition | Value) -> Condition:
        return Condition(self.text) | other

    def __invert__(self) -> Condition:
        return ~Condition(self.text)

    def __mod__(self, divisor: int) -> Value:
        return Value(f"({self.text} % {index_from(divisor, 'the divisor')})")

    def __getitem__(self, index: int | tuple[int, ...] | str) -> Value:
        if isinstance(index, str):
            return Value(_quoted(f"{self.text[1:-1]}.{index}"))
        indices = index if isinstance(index, tuple) else (index,)
        return Value(self.text + "".join(f"[{index_from(one, 'an index')}]" for one in indices))

    def isin(self, values: Iterable[Any]) -> Condition:
        """Return the condition that the value is one of some numbers, at most 1,024.

        >>> Value('"kind"').isin([1, 2])
        <condition "kind" in {1, 2}>
        """
        return Condition(f"{self.text} in {{{', '.join(_constant(value) for value in values)}}}")

    def between(self, low: float, high: float) -> Condition:
        """Return the condition ``low <= value < high``."""
        return Condition(f"{_constant(low)} <= {self.text} < {_constant(high)}")

    def hash(self) -> Value:
        """Return an integer of 64 bits without sign that equal values have in common and that spreads others."""
        return Value(f"hash({self.text})")

    def bin(self, low: float, width: float) -> Value:
        """Return ``floor((value - low) / width)``, or -1 for NaN."""
        return Value(f"bin({self.text}, {_constant(low)}, {_constant(width)})")

    def __bool__(self) -> bool:
        raise TypeError("a field has no truth value: compare it, and combine conditions by &, | and ~")

    def __repr__(self) -> str:
        return f"<value {self.text}>"


def _text(one: object) -> str:
    """Return a condition or value as a text."""
    if isinstance(one, (Condition, Value)):
        return one.text
    if isinstance(one, str):
        return one
    raise errors.UsageError(
        f"cannot use {one!r} as a condition or value", f"it is {type(one).__name__}", 'give records["field"] > 5.0, or a text'
    )


def _quoted(name: str) -> str:
    """Return the name of a field as a condition has it."""
    quote = "'" if '"' in name else '"'
    return f"{quote}{name}{quote}"


def _fields_of(dtype: np.dtype[Any], name: str, offset: int) -> list[tuple[str, int, str, int, list[int]]]:
    """Return name, offset, kind, bytes of an element and shape of all fields, with nested records flattened."""
    base, shape = dtype.base, list(dtype.shape)
    if base.names is None or shape:
        return [(name, offset, base.str if base.names is None else "", base.itemsize, shape)]
    fields: list[tuple[str, int, str, int, list[int]]] = []
    for inner in base.names:
        fields_of_base: Any = base.fields
        described = fields_of_base[inner]
        fields += _fields_of(described[0], f"{name}.{inner}" if name else inner, offset + int(described[1]))
    return fields


class Records(OfFile):
    """Records of a file. Made by :func:`open_records`.

    With several processes, the calls that begin with a verb are collective: all processes make them, with equal
    arguments and in the same order.

    Attributes
    ----------
    dtype : numpy.dtype
        Type of a record.
    offset : int
        First byte of the first record in the file.
    rank, size : int
        Of this process, and number of processes.
    blocks_read, blocks_skipped : int
        Blocks of the file that servers have read for the last call, and that they have left out
        (:meth:`summarise`); known to rank 0.
    """

    def __init__(self, file: File, group: Group, about: dict[str, Any]) -> None:
        super().__init__(file)
        self._group = group
        dtype: np.dtype[Any] = npy.descr_to_dtype(about["descr"])
        self.dtype = dtype
        self.offset: int = about["offset"]
        self._count: int = about["count"]
        self.rank, self.size = group.rank, group.size
        self.blocks_read = self.blocks_skipped = 0
        is_scalar = self.dtype.names is None
        self._type = RecordType(_fields_of(self.dtype, "value" if is_scalar else "", 0), self.dtype.itemsize)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, name: str) -> Value:
        """Return the value of a field; of a file of plain numbers it is ``"value"``."""
        names = self.dtype.names
        if names is not None and name not in names and "." not in name:
            raise KeyError(name)
        return Value(_quoted(name))

    def __repr__(self) -> str:
        return f"<unisono records {self._file.name!r}: {len(self)} of {self.dtype}, rank {self.rank} of {self.size}>"

    def _found(
        self, condition: Condition | str | None, share: str, key: str | None, operator: str | None, module: Module | None
    ) -> np.ndarray[Any, Any]:
        found = find_records(
            self._file,
            self._type,
            self.offset,
            self._count,
            None if condition is None else _text(condition),
            group=self._group,
            share=share,
            key=key,
            operator=operator,
            module=_module_bytes(module),
        )
        self.blocks_read, self.blocks_skipped = found.blocks
        records = np.empty(found.count, self.dtype)
        found.read_into(records.view(np.uint8))
        return records

    def read_where(
        self,
        condition: Condition | str | None = None,
        *,
        share: str = "even",
        operator: str | None = None,
        module: Module | None = None,
    ) -> np.ndarray[Any, Any]:
        """Read the records that match. The servers look at all records, and only these travel. Collective.

        Parameters
        ----------
        condition : Condition, str or None
            ``records["energy"] > 5.0``, or the text ``"energy > 5.0"``. None: all records match.
        share : {"even", "part"}
            Of several processes each gets as many records as the others, or one more; or those in an equal
            part of the file. Both in the order of the file, so that the parts of all ranks one after the
            other are all records that match.
        operator : str, optional
            Operator of the program of the servers, which selects among the records for which the condition is
            true.
        module : bytes or path, optional
            Module of WebAssembly that does so: it runs in the servers, and reaches nothing but the records.

        Returns
        -------
        numpy.ndarray
            Records of this process, in the order of the file, of :attr:`dtype`.

        Raises
        ------
        unisono.errors.UsageError
            The condition names a field that is not there, or makes no sense.
        unisono.errors.CallsDifferError
            Processes give other arguments than rank 0.

        Examples
        --------
        >>> records = unisono.open_records("unisono://events.npy")
        >>> records.read_where((records["energy"] > 9.99) & (records["id"] % 2 == 1))
        array([(999, 10.)], dtype=[('id', '<u4'), ('energy', '<f8')])
        """
        return self._found(condition, share, None, operator, module)

    def read_by(
        self,
        key: Value | str,
        where: Condition | str | None = None,
        *,
        operator: str | None = None,
        module: Module | None = None,
    ) -> np.ndarray[Any, Any]:
        """Read the records whose key is the rank of this process. Collective.

        Parameters
        ----------
        key : Value or str
            Integer of each record: the rank of the process that gets it. A negative one means nobody. The text
            "answer()" is the number that an operator or a module gives to a record.
        where : Condition, str or None
            Condition for a record to be read at all.
        operator, module
            As for :meth:`read_where`.

        Returns
        -------
        numpy.ndarray
            Records of this process, in the order of the file.

        Raises
        ------
        unisono.errors.BadAccessError
            A key is not less than the number of processes; the error names the record.

        Examples
        --------
        >>> ids = unisono.open_records("unisono://events.npy")
        >>> len(ids.read_by(ids["id"].hash() % ids.size))
        1000
        """
        return self._found(where, "key", _text(key), operator, module)

    def _reduced(
        self,
        condition: Condition | str | None,
        what: str,
        of: Value | str,
        operator: str | None,
        module: Module | None,
        edges: Any = None,
    ) -> Any:
        value, (self.blocks_read, self.blocks_skipped) = reduce_records(
            self._file,
            self._type,
            self.offset,
            self._count,
            None if condition is None else _text(condition),
            what,
            group=self._group,
            of=_text(of),
            edges=edges,
            operator=operator,
            module=_module_bytes(module),
        )
        return value

    def summarise(self, *fields: Value | str) -> None:
        """Have the servers keep smallest and largest values of fields for each block. Collective.

        Later calls do not read blocks in which no record matches, until the file changes or its servers end.
        That helps for fields by which the file is sorted or clustered. No result depends on it.

        Parameters
        ----------
        fields : Value or str
            Fields, or elements of fields, that are numbers; at most 16.

        Examples
        --------
        >>> records = unisono.open_records("unisono://events.npy")
        >>> records.summarise("energy")
        >>> records.count_where("energy > 11"), records.blocks_read, records.blocks_skipped
        (0, 0, 1)
        """
        texts = [_text(field) for field in fields]
        summarise_records(self._file, self._type, self.offset, self._count, texts, group=self._group)

    def count_where(
        self, condition: Condition | str | None = None, *, operator: str | None = None, module: Module | None = None
    ) -> int:
        """Return the number of all records that match. Collective; no record travels.

        >>> unisono.open_records("unisono://events.npy").count_where("energy < 5 and id % 10 == 0")
        50
        """
        count: int = self._reduced(condition, "count", "", operator, module)
        return count

    def minimum(
        self,
        value: Value | str,
        where: Condition | str | None = None,
        *,
        operator: str | None = None,
        module: Module | None = None,
    ) -> Any:
        """Return the smallest value of all records that match; NaN if there is one, None without records. Collective.

        >>> unisono.open_records("unisono://events.npy").minimum("id", where="energy > 5")
        500
        """
        return self._reduced(where, "minimum", value, operator, module)

    def maximum(
        self,
        value: Value | str,
        where: Condition | str | None = None,
        *,
        operator: str | None = None,
        module: Module | None = None,
    ) -> Any:
        """Return the largest value of all records that match; NaN if there is one, None without records. Collective."""
        return self._reduced(where, "maximum", value, operator, module)

    def sum(
        self,
        value: Value | str,
        where: Condition | str | None = None,
        *,
        operator: str | None = None,
        module: Module | None = None,
    ) -> Any:
        """Return the sum of a value of all records that match. Collective.

        Returns
        -------
        int or float
            Exact for integers. For floats it is computed with twice the precision of a float, so that it does
            not depend on the number of servers, but for the last bit in rare cases.
        """
        return self._reduced(where, "sum", value, operator, module)

    def histogram(
        self,
        value: Value | str,
        bins: int | Sequence[float] = 10,
        range: tuple[float, float] | None = None,
        where: Condition | str | None = None,
        *,
        operator: str | None = None,
        module: Module | None = None,
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return counts and edges as ``numpy.histogram`` does, of all records that match. Collective.

        Parameters
        ----------
        value, where, operator, module
            As for :meth:`sum`.
        bins : int or sequence of float
            Number of bins of equal width, or their edges, at most 65,537.
        range : tuple of float, optional
            First and last edge. Default: smallest and largest value, for which the file is read twice more.

        Examples
        --------
        >>> unisono.open_records("unisono://events.npy").histogram("energy", 2, (0, 10))
        (array([500, 500]), array([ 0.,  5., 10.]))
        """
        if isinstance(bins, numbers.Integral):
            if range is None:
                low = self.minimum(value, where, operator=operator, module=module)
                high = self.maximum(value, where, operator=operator, module=module)
                range = (0.0, 1.0) if low is None else (low, high)
            if not all(math.isfinite(edge) for edge in range):
                raise errors.UsageError(
                    "cannot make a histogram", f"the range {range} is not finite", "give the range, or a condition for the values"
                )
            edges = np.histogram_bin_edges(np.empty(0), int(bins), range)
        else:
            edges = np.asarray(bins)
        counts = self._reduced(where, "histogram", value, operator, module, [float(edge) for edge in edges])
        return np.array(counts, np.int64), edges

    def read_table(
        self,
        condition: Condition | str | None = None,
        *,
        share: str = "even",
        operator: str | None = None,
        module: Module | None = None,
    ) -> Any:
        """Read records as :meth:`read_where`, as a ``pyarrow.Table``. Collective.

        ``pyarrow.parquet.write_table(records.read_table("energy > 9"), "high.parquet")`` writes Parquet.

        >>> unisono.open_records("unisono://events.npy").read_table("energy > 9").num_rows
        100
        """
        import pyarrow as arrow  # without types

        found = self.read_where(condition, share=share, operator=operator, module=module)
        columns: dict[str, Any] = {}
        for name in self.dtype.names or ("value",):
            column = found[name] if self.dtype.names else found
            native = np.ascontiguousarray(column).astype(column.dtype.newbyteorder("="))
            if native.dtype.kind == "V" and native.dtype.names is None:
                columns[name] = [one.tobytes() for one in native]
            else:
                columns[name] = native if native.ndim == 1 and native.dtype.names is None else native.tolist()
        return arrow.table(columns)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    def __enter__(self) -> Records:
        return self


@dataclass(frozen=True)
class _Wanted:
    """Arguments of :func:`open_records`, in a form that can be compared and sent."""

    name: str
    descr: Any
    offset: int | None
    count: int | None


def _look(connection: Connection, wanted: _Wanted) -> dict[str, Any]:
    """Look at the file, by rank 0; return what all processes must know."""
    what = f"cannot open {wanted.name!r} as records"
    with connection.open(wanted.name) as file:
        about: dict[str, Any] = {"descr": wanted.descr, "offset": wanted.offset or 0, "count": wanted.count}
        file_bytes = file.size()
        if wanted.descr is None:
            found = read_header(file)
            if found["order"] == "F" and len(found["shape"]) > 1:
                raise errors.UsageError(what, "its elements are in Fortran order", "give dtype and offset")
            about["descr"] = npy.dtype_to_descr(found["dtype"])
            about["offset"] = found["offset"] if wanted.offset is None else wanted.offset
            about["count"] = math.prod(found["shape"]) if wanted.count is None else wanted.count
        record_bytes = npy.descr_to_dtype(about["descr"]).itemsize
        if record_bytes == 0:
            raise errors.UsageError(what, "a record has no bytes", "give a dtype with fields")
        left = file_bytes - about["offset"]
        if about["count"] is None:
            if left < 0 or left % record_bytes:
                cause = f"{file_bytes} bytes from {about['offset']} on are no whole number of records of {record_bytes} bytes"
                raise errors.UsageError(what, cause, "give the offset of the first record, or their count")
            about["count"] = left // record_bytes
        elif about["count"] * record_bytes > left:
            cause = f"it has {file_bytes} bytes, too few for {about['count']} records of {record_bytes}"
            raise errors.UsageError(what, cause, "give a smaller count")
    return about


def open_records(
    url: str | os.PathLike[str],
    dtype: Any = None,
    *,
    offset: int | None = None,
    count: int | None = None,
    comm: Any = None,
    rank: int | None = None,
    size: int | None = None,
    group: str | None = None,
    instance: str | os.PathLike[str] | None = None,
    timeout: float | None = None,
) -> Records:
    """Open a file of records of equal size, to select some of them at the servers. Collective.

    Parameters
    ----------
    url : str or path
        As for :func:`unisono.open_array`.
    dtype
        Type of a record, structured or not. Default: as the header of the file says, if it is of NumPy's .npy
        format, such as :func:`unisono.open_array` and ``numpy.save`` write it.
    offset : int, optional
        First byte of the first record. Default: 0, or the end of the header.
    count : int, optional
        Number of records. Default: as many as the file has; these must be a whole number.
    comm, rank, size, group
        The processes, as for :func:`unisono.open_array`.
    instance, timeout
        As for :func:`unisono.connect`.

    Raises
    ------
    unisono.errors.UsageError
        A dtype that does not divide the file, or arguments that make no sense.
    unisono.errors.NotFoundError
        There is no such file.

    Examples
    --------
    >>> with unisono.connect().open("points", "w") as file:
    ...     file.write(0, np.arange(30, dtype="f4"))
    120
    >>> points = unisono.open_records("unisono://points", [("x", "f4"), ("yz", "f4", 2)])
    >>> len(points), points.maximum(points["yz"][1], where=points["x"] < 10)
    (10, 11.0)
    """

    def wants(name: str, processes: int) -> _Wanted:
        given = {"offset": offset, "count": count}
        checked = {key: None if value is None else index_from(value, key) for key, value in given.items()}
        if any(value is not None and value < 0 for value in checked.values()):
            raise errors.UsageError(f"cannot open {name!r}", "offset or count is negative", "give 0 or more")
        return _Wanted(name, None if dtype is None else description_of(plain_dtype(name, dtype)), **checked)

    opened = open_together(url, "records", Processes(comm, rank, size, group), instance, timeout, wants, _look)
    return Records(opened.connection.open(opened.name), opened.members, opened.about)
