"""Proves: servers select the records that NumPy selects, for any types and conditions, and bad input is told."""

import multiprocessing
import os
import pathlib
import subprocess

import numpy as np
import pytest

import unisono
from unisono import errors

DTYPE = np.dtype(
    [
        ("id", "<i8"),
        ("count", ">u4"),
        ("small", "i1"),
        ("energy", "<f4"),
        ("time", ">f8"),
        ("at", "<f4", (2, 3)),
        ("tag", "S5"),
        ("on", "?"),
        ("inner", [("x", "<u8"), ("y", "<i2")]),
    ]
)


def _make(numbers, count):
    """Return random records, with all odd values of floats."""
    made = np.frombuffer(numbers.bytes(count * DTYPE.itemsize), DTYPE).copy()
    made["on"] = numbers.integers(0, 2, count)
    made["id"] = numbers.integers(-50, 50, count)
    made["count"][::3] = numbers.integers(0, 9, len(made[::3]))
    for name, kind in (("energy", "f4"), ("time", "f8")):
        odd = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 0.1, 5.5, -1.0], kind)
        made[name] = numbers.choice(odd, count)
    return made


def _store(name, made, extra=0, block_bytes=None):
    with unisono.connect().open(name, "w", block_bytes=block_bytes) as file:
        file.write(0, b"\x55" * extra + made.tobytes())


CONSTANTS = [0, 1, -1, 3, 200, -(2**63), 2**63, 2**64 - 1, 2**70, 0.1, 5.5, -0.0, np.inf, -np.inf, np.nan, 1e300]

VALUES = [
    ("id", lambda r: r["id"], lambda a: a["id"]),
    ("count", lambda r: r["count"], lambda a: a["count"]),
    ("small", lambda r: r["small"], lambda a: a["small"]),
    ("energy", lambda r: r["energy"], lambda a: a["energy"]),
    ("time", lambda r: r["time"], lambda a: a["time"]),
    ("at", lambda r: r["at"][1, 2], lambda a: a["at"][:, 1, 2]),
    ("x", lambda r: r["inner"]["x"], lambda a: a["inner"]["x"]),
    ("y", lambda r: r["inner.y"], lambda a: a["inner"]["y"]),
    ("on", lambda r: r["on"], lambda a: a["on"]),
]


def _compared(numbers, records, made):
    """Return a random comparison as a condition and as NumPy's answer."""
    signs = ["__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"]
    sign = signs[numbers.integers(len(signs))]
    name, own, oracle = VALUES[numbers.integers(len(VALUES))]
    left, values = own(records), oracle(made)
    kind = numbers.integers(5)
    if kind == 0 and values.dtype.kind in "iu":
        mask = int(numbers.integers(1, 100))
        left, values = left & mask, values & values.dtype.type(mask)
    if kind == 1 and values.dtype.kind in "iu":
        by = int(numbers.integers(1, 50))
        left, values = left % by, np.mod(values.astype(object), by).astype("i8")
    if kind == 2:
        _, other, others = VALUES[numbers.integers(len(VALUES))]
        return getattr(left, sign)(other(records)), _exactly(values, sign, others(made))
    if kind == 3:
        chosen = [CONSTANTS[at] for at in numbers.integers(0, len(CONSTANTS), numbers.integers(0, 12))]
        found = np.zeros(len(values), bool)
        for one in chosen:
            found |= _exactly(values, "__eq__", one)
        return left.isin(chosen), found
    constant = CONSTANTS[numbers.integers(len(CONSTANTS))]
    return getattr(left, sign)(constant), _exactly(values, sign, constant)


def _exactly(values, sign, other):
    """Compare as NumPy 2: integers exactly, a Python number as one of the array's kind, others as float64."""
    with np.errstate(invalid="ignore", over="ignore"):
        return _exactly_quietly(values, sign, other)


def _exactly_quietly(values, sign, other):
    is_integer = values.dtype.kind in "iub"
    if isinstance(other, np.ndarray):
        if is_integer and other.dtype.kind in "iub":
            return np.array(getattr(values.astype(object), "__" + sign.strip("_") + "__")(other.astype(object)), bool)
        return np.array(getattr(values.astype("f8"), sign)(other.astype("f8")))
    if is_integer and isinstance(other, int):
        return np.array(getattr(values.astype(object), sign)(other), bool)
    other = np.float32(other) if values.dtype == "f4" else np.float64(other)
    return np.array(getattr(values.astype("f8"), sign)(np.float64(other)))


def _combined(numbers, records, made, depth=0):
    """Return a random condition, and NumPy's answer."""
    kind = numbers.integers(4) if depth < 3 else 0
    condition, answer = _compared(numbers, records, made) if kind == 0 else _combined(numbers, records, made, depth + 1)
    if kind == 1:
        return ~condition, ~answer
    if kind > 1:
        other, others = _combined(numbers, records, made, depth + 1)
        return (condition & other, answer & others) if kind == 2 else (condition | other, answer | others)
    return condition, answer


@pytest.mark.parametrize("seed", range(40))
def test_conditions_select_what_numpy_selects(instance, seed):
    numbers = np.random.default_rng(seed)
    made = _make(numbers, int(numbers.integers(0, 3_000)))
    extra, block = int(numbers.integers(0, 100)), [4096, 12288][seed % 2]
    _store("random", made, extra, block)
    with unisono.open_records("random", DTYPE, offset=extra) as records:
        assert len(records) == len(made)
        for _ in range(12):
            condition, answer = _combined(numbers, records, made)
            found = records.read_where(condition)
            assert found.tobytes() == made[answer].tobytes(), condition
            assert records.count_where(condition) == answer.sum(), condition


def test_numbers_are_those_of_numpy(instance):
    made = _make(np.random.default_rng(7), 5_000)
    _store("numbers", made, block_bytes=4096)
    with unisono.open_records("numbers", DTYPE) as records:
        for name in ("id", "count", "small"):
            values = made[name].astype(object)
            assert records.sum(records[name]) == values.sum()
            assert records.minimum(name, "id > 3") == values[made["id"] > 3].min()
            assert records.maximum(name) == values.max()
        assert np.isnan(records.minimum("time")) and np.isnan(records.maximum("energy"))
        whole = "time == time and -inf < time < inf"
        chosen = made["time"][np.isfinite(made["time"])]
        assert records.maximum("time", whole) == chosen.max() and records.minimum("time", whole) == chosen.min()
        assert records.sum("time", whole) == pytest.approx(chosen.sum(), rel=1e-15)
        assert records.minimum("id", "id > 1000") is None and records.sum("id", "id > 1000") == 0
        for bins, bounds in [(7, (-1.0, 5.5)), ([-1, 0, 0.1, 5.5], None), (1, (0.0, 0.0))]:
            counts, edges = records.histogram("time", bins, bounds)
            expected = np.histogram(chosen, bins, bounds)
            assert (counts == expected[0]).all() and (edges == expected[1]).all()
        counts, edges = records.histogram("id", 9, where=records["on"])
        expected = np.histogram(made["id"][made["on"]], 9)
        assert (counts == expected[0]).all() and (edges == expected[1]).all()


def test_plain_numbers_and_headers(instance, tmp_path):
    import fsspec

    values = np.arange(100_000, dtype=">f8")
    np.save(tmp_path / "plain.npy", values)
    fsspec.filesystem("unisono", instance=instance).put(str(tmp_path / "plain.npy"), "plain.npy")
    with unisono.open_records("plain.npy") as records:
        assert (len(records), records.offset, records.dtype) == (100_000, 128, values.dtype)
        assert (records.read_where(records["value"] >= 99_990) == values[-10:]).all()
    with unisono.open_records("plain.npy", offset=128 + 8 * 50, count=10) as records:
        assert (records.read_where() == values[50:60]).all()
    table = unisono.open_records("plain.npy").read_table("value < 3")
    assert table.to_pydict() == {"value": [0.0, 1.0, 2.0]}


def test_tables_have_all_fields(instance):
    made = _make(np.random.default_rng(3), 50)
    _store("table", made)
    table = unisono.open_records("table", [("id", "i8"), ("rest", f"V{DTYPE.itemsize - 8}")]).read_table("id > 0")
    assert table["id"].to_pylist() == made["id"][made["id"] > 0].tolist()
    flat = np.zeros(3, [("x", ">i2"), ("p", "f4", 2), ("s", "U3")])
    flat["x"], flat["p"], flat["s"] = [1, 2, 3], [[1, 2], [3, 4], [5, 6]], ["a", "bc", "def"]
    _store("flat", flat)
    found = unisono.open_records("flat", flat.dtype).read_table("x > 1")
    assert found.to_pydict() == {"x": [2, 3], "p": [[3.0, 4.0], [5.0, 6.0]], "s": ["bc", "def"]}


def test_files_of_the_command_are_read_by_others(instance, tmp_path):
    import pandas
    import pyarrow.parquet

    made = np.zeros(3_000, [("a", ">u2"), ("b", "<i8"), ("c", "<f4", 2), ("d", "<f8"), ("e", "S3"), ("f", "?"), ("g", "u8"), ("h", "i1")])
    numbers = np.random.default_rng(2)
    made["a"], made["b"] = numbers.integers(0, 2**16, 3_000), numbers.integers(-(2**63), 2**63 - 1, 3_000)
    made["c"], made["d"] = numbers.random((3_000, 2)), numbers.random(3_000)
    made["e"], made["f"], made["g"] = b"x,y", numbers.integers(0, 2, 3_000), 2**64 - 1 - np.arange(3_000, dtype="u8")
    made["h"] = numbers.integers(-128, 128, 3_000)
    _store("others", made, block_bytes=4096)
    kind = "a:>u2, b:i8, c:2f4, d:f8, e:S3, f:b1, g:u8, h:i1"
    chosen = made[made["d"] < 0.5]
    for name in ("out.parquet", "out.csv", "out.npy"):
        command = ["unisono", "select", "others", "--type", kind, "--where", "d < 0.5", "--output", str(tmp_path / name)]
        subprocess.run(command, check=True, capture_output=True)
    assert (np.load(tmp_path / "out.npy") == chosen).all()
    table = pyarrow.parquet.read_table(tmp_path / "out.parquet")
    types = ["uint16", "int64", "float", "float", "double", "string", "bool", "uint64", "int8"]
    assert [str(field.type) for field in table.schema] == types
    for frame in (table.to_pandas(), pandas.read_csv(tmp_path / "out.csv")):
        for name in "abdfgh":
            assert (frame[name].to_numpy() == chosen[name]).all(), name
        assert (frame["c[1]"].to_numpy().astype("f4") == chosen["c"][:, 1]).all()
        assert (frame["e"] == "x,y").all()


def _share(arguments):
    rank, size, how = arguments
    with unisono.open_records("shared", DTYPE, rank=rank, size=size) as records:
        if how == "key":
            found = records.read_by(records["id"].hash() % size, records["on"])
        else:
            found = records.read_where(records["on"], share=how)
        return found.tobytes(), records.count_where("on"), records.maximum("id")


@pytest.mark.parametrize("size", [1, 3, 4])
@pytest.mark.parametrize("how", ["even", "part", "key"])
def test_processes_share_records(instance, size, how):
    made = _make(np.random.default_rng(11), 4_001)
    _store("shared", made, block_bytes=4096)
    context = multiprocessing.get_context("fork")
    with context.Pool(size) as pool:
        parts = pool.map(_share, [(rank, size, how) for rank in range(size)], chunksize=1)
    on = made[made["on"]]
    assert all(part[1:] == (len(on), made["id"].max()) for part in parts)
    found = [np.frombuffer(part[0], DTYPE) for part in parts]
    if how == "key":
        assert sorted(one["id"].tobytes() for one in found) is not None
        owner = {}
        for rank, part in enumerate(found):
            for number in part["id"].tolist():
                assert owner.setdefault(number, rank) == rank, "equal values have one rank"
            positions = [on.tobytes().find(part[at : at + 1].tobytes()) for at in range(len(part))]
            assert positions == sorted(positions), "in the order of the file"
        assert sum(len(part) for part in found) == len(on)
    else:
        assert b"".join(part[0] for part in parts) == on.tobytes()
        bounds = [len(made) * rank // size for rank in range(size + 1)]
        sizes = [len(on) * (rank + 1) // size - len(on) * rank // size for rank in range(size)]
        if how == "part":
            sizes = [int(made["on"][low:high].sum()) for low, high in zip(bounds, bounds[1:])]
        assert [len(part) for part in found] == sizes


def _differ(arguments):
    rank, size, what = arguments
    with unisono.open_records("shared", DTYPE, rank=rank, size=size, group=what) as records:
        try:
            if what == "condition":
                records.read_where(f"id > {rank}")
            elif what == "key":
                records.read_by(records["count"])
            elif what == "call":
                records.count_where() if rank else records.read_where()
            return "nothing"
        except errors.UnisonoError as error:
            return error.kind


@pytest.mark.parametrize(("what", "kinds"), [("condition", "calls-differ"), ("key", "bad-access"), ("call", "calls-differ")])
def test_all_processes_get_an_error(instance, what, kinds):
    _store("shared", _make(np.random.default_rng(11), 100))
    with multiprocessing.get_context("fork").Pool(3) as pool:
        told = pool.map(_differ, [(rank, 3, what) for rank in range(3)], chunksize=1)
    assert told == [kinds] * 3


@pytest.mark.parametrize("seed", range(5))
def test_summaries_leave_blocks_out_and_change_no_result(instance, seed):
    numbers = np.random.default_rng(seed)
    made = _make(numbers, 5_000)
    made["id"] = np.sort(made["id"])
    _store("clustered", made, 11, 4096)
    with unisono.open_records("clustered", DTYPE, offset=11) as records:
        assert records.count_where(records["id"] >= 45) == (made["id"] >= 45).sum() and records.blocks_skipped == 0
        records.summarise("id", records["time"], "at[0][1]", "on")
        assert records.count_where(records["id"] >= 45) == (made["id"] >= 45).sum()
        assert records.blocks_skipped > records.blocks_read > 0
        for _ in range(30):
            condition, answer = _combined(numbers, records, made)
            assert records.read_where(condition).tobytes() == made[answer].tobytes(), condition
        made["id"][0] = 49
        with unisono.connect().open("clustered", "a") as file:
            file.write(11, made[:1].tobytes())
        assert records.count_where(records["id"] >= 45) == (made["id"] >= 45).sum()
        with pytest.raises(errors.UsageError, match="no number"):
            records.summarise("tag")
        with pytest.raises(errors.BadAccessError, match="1 to 16 fields"):
            records.summarise()


def test_bad_input_is_told(instance):
    _store("bad", _make(np.random.default_rng(1), 10), extra=3)
    for change, cause in [
        ({"dtype": DTYPE}, "are no whole number of records"),
        ({"dtype": DTYPE, "offset": 3, "count": 11}, "too few for 11 records"),
        ({"dtype": DTYPE, "offset": 10_000}, "are no whole number of records"),
        ({"dtype": object}, "Python objects"),
        ({"dtype": []}, "no bytes"),
        ({}, "not of the .npy format"),
        ({"dtype": DTYPE, "offset": -1}, "-1"),
    ]:
        with pytest.raises(errors.UsageError) as told:
            unisono.open_records("bad", **change)
        assert cause in str(told.value)
    with unisono.open_records("bad", DTYPE, offset=3) as records:
        for condition, cause in [
            ("energi > 5", 'did you mean "energy"'),
            ("tag > 5", "is no number"),
            ("at > 5", "has 2 dimensions, not 0"),
            ("energy & 4 == 4", "needs an integer"),
            ("energy >", "missing at its end"),
            ("(" * 200 + "id" + ")" * 200 + " > 1", "brackets"),
            (" or ".join(["id > 1"] * 200), "parts"),
            (5, "it is int"),
        ]:
            with pytest.raises(errors.UsageError) as told:
                records.read_where(condition)
            assert cause in str(told.value), condition
        with pytest.raises(errors.UsageError, match="integer"):
            records.read_by(records["time"])
        with pytest.raises(errors.UsageError, match="no real number"):
            records["id"] > "five"  # noqa: B015
        with pytest.raises(errors.UsageError, match="1024"):
            records.count_where(records["id"].isin(range(2_000)))
        with pytest.raises(TypeError, match="combine conditions by"):
            bool(records["id"] > 5)
        with pytest.raises(TypeError):
            bool(0 <= records["id"] < 5)
        with pytest.raises(KeyError):
            records["nothing"]
        with pytest.raises(errors.UsageError, match="no way to share"):
            records.read_where(share="odd")
        with pytest.raises(errors.UnisonoError, match="ascend"):
            records.histogram("id", [3, 2, 1])
    with pytest.raises(errors.UsageError, match="closed"):
        records.count_where()


def test_a_killed_server_ends_a_selection(own_instance):
    import json
    import signal

    environment = {**os.environ, "UNISONO_ALLOW_ROOT": "true"}
    with unisono.connect(own_instance, 10).open("f", "w", block_bytes=4096) as file:
        file.write(0, np.arange(100_000, dtype="i8"))
    records = unisono.open_records("f", "i8", instance=own_instance, timeout=10)
    assert records.count_where("value < 100") == 100
    command = ["unisono", "status", "--json", "--instance", own_instance]
    told = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    servers = json.loads(told.stdout)["servers"]
    os.kill(servers[1]["process"]["pid"] if "process" in servers[1] else servers[1]["pid"], signal.SIGKILL)
    with pytest.raises(errors.ServerLeftError):
        records.read_where("value < 100")


MODULE = pathlib.Path(__file__).parents[2] / "docs" / "modules" / "above.wasm"


def test_modules_select_as_conditions_do(instance):
    """The module selects records whose energy is above 7.5; their numbers are their ids."""
    made = np.zeros(50_000, [("id", "<u4"), ("energy", "<f8")])
    made["id"], made["energy"] = range(50_000), np.arange(50_000) * 7919 % 1000 / 100
    _store("above", made, block_bytes=65536)
    records = unisono.open_records("unisono://above", made.dtype)
    expected = made[made["energy"] > 7.5]
    for module in (MODULE, str(MODULE), MODULE.read_bytes(), bytearray(MODULE.read_bytes())):
        assert np.array_equal(records.read_where(module=module), expected)
    assert np.array_equal(records.read_where("id < 999", module=MODULE), expected[expected["id"] < 999])
    assert np.array_equal(records.read_by("answer() % 1", module=MODULE), expected)
    assert records.count_where(module=MODULE) == len(expected)
    assert records.maximum("answer()", module=MODULE) == expected["id"].max()
    assert records.minimum("answer()", records["id"] > 9, module=MODULE) == expected["id"][expected["id"] > 9].min()
    assert records.sum("answer()", module=MODULE) == expected["id"].sum()
    counts, edges = records.histogram("answer()", 4, module=MODULE)
    assert np.array_equal(counts, np.histogram(expected["id"], edges)[0])


def test_modules_that_fail_are_told(instance, tmp_path):
    _store("plain", np.arange(1000, dtype="<u4"))
    records = unisono.open_records("unisono://plain", "<u4")
    start = b"\0asm\x01\0\0\0"
    for module, cause in [
        (b"(module)", "binary form"),
        (start + b"\0" * (1 << 20), "the limit is 1048576"),
        (tmp_path / "missing", "No such file"),
    ]:
        with pytest.raises(errors.UsageError) as told:
            records.count_where(module=module)
        assert cause in told.value.cause
    with pytest.raises(errors.BadAccessError) as told:
        records.count_where(module=start)
    assert "exports no memory" in told.value.cause
    with pytest.raises(errors.BadAccessError) as told:
        records.read_where(operator="peak")
    assert 'no operator "peak"' in told.value.cause
    with pytest.raises(errors.UsageError):
        records.read_where(operator="peak", module=MODULE)
    with pytest.raises(errors.BadAccessError) as told:
        records.sum("answer()")
    assert "answer() is the number" in told.value.cause
    assert records.count_where() == 1000
