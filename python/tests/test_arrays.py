"""Proves: arrays that some processes write in one distribution are read by others in another."""

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import unisono
from unisono import errors

BENCH = Path(__file__).parents[1] / "bench"

WHOLE = np.arange(13 * 17, dtype="i4").reshape(13, 17)


def _write(arguments, name="array"):
    rank, size, options = arguments
    with unisono.open_array(name, "w", shape=WHOLE.shape, dtype="i4", rank=rank, size=size, **options) as array:
        moved = array.write(np.asarray(WHOLE[np.ix_(*array.local_indices)], order=array.order))
        assert moved.bytes == np.prod(array.local_shape) * 4
    return moved.bytes


def _read(arguments):
    rank, size, options = arguments
    with unisono.open_array("array", rank=rank, size=size, **options) as array:
        assert array.shape == WHOLE.shape and array.dtype == "i4"
        return bool((array.read() == WHOLE[np.ix_(*array.local_indices)]).all())


def _run(function, size, options):
    context = multiprocessing.get_context("fork")
    with context.Pool(size) as pool:
        return pool.map(function, [(rank, size, options) for rank in range(size)], chunksize=1)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("written", [("block", None), ("cyclic(3)", "block"), (None, "cyclic")])
def test_written_and_read_in_other_distributions(instance, order, written):
    assert sum(_run(_write, 4, {"distribution": written, "order": order})) == WHOLE.nbytes
    for size, read in [(1, None), (3, ("block", None)), (4, ("cyclic", "cyclic(5)")), (2, (None, "block"))]:
        assert all(_run(_read, size, {"distribution": read}))


def test_a_copy_is_a_file_of_numpy(instance, tmp_path):
    import fsspec

    _run(_write, 2, {"distribution": ("block", None)})
    fsspec.filesystem("unisono", instance=instance).get("array", str(tmp_path / "copy.npy"))
    assert (np.load(tmp_path / "copy.npy", mmap_mode="r") == WHOLE).all()
    with unisono.open_array("raw", "w", shape=WHOLE.shape, dtype="i4", header=False) as array:
        array.write(WHOLE)
    fsspec.filesystem("unisono", instance=instance).get("raw", str(tmp_path / "raw"))
    assert (np.memmap(tmp_path / "raw", "i4", "r", shape=WHOLE.shape) == WHOLE).all()


def _open_missing(arguments):
    rank, size, options = arguments
    try:
        unisono.open_array("no-array", rank=rank, size=size, **options)
    except FileNotFoundError as error:
        return error.kind
    return None


def test_a_failure_has_the_same_kind_everywhere(instance):
    assert _run(_open_missing, 3, {}) == ["not-found"] * 3


@pytest.mark.parametrize("word", ["none", "block", "cyclic", "cyclic(3)", "cyclic(40)"])
def test_indices_are_those_of_the_distribution(word):
    from unisono._distribution import count_of, indices_of

    for extent in (0, 1, 5, 12, 13, 37):
        for processes in (1,) if word == "none" else (1, 2, 3, 7):
            own = [indices_of(extent, word, processes, place) for place in range(processes)]
            assert sorted(np.concatenate(own)) == list(range(extent))
            assert [len(one) for one in own] == [count_of(extent, word, processes, at) for at in range(processes)]


def test_large_arrays_need_no_memory_for_their_indices(instance):
    with unisono.open_array("sparse", "w", shape=(2**33, 4), dtype="f8", distribution=("cyclic", None)) as array:
        assert array.local_shape == (2**33, 4)


def _plan(arguments):
    rank, size, options = arguments
    with unisono.open_array("blocks", rank=rank, size=size, **options) as array:
        return array.plan().rows if rank == 0 else None


@pytest.mark.parametrize("distribution", [("block", "cyclic"), (None, "cyclic(3)"), ("cyclic", None)])
def test_plans_have_every_byte_of_every_process(instance, distribution):
    _write((0, 1, {"block_bytes": 64}), "blocks")
    rows = _run(_plan, 4, {"distribution": distribution})[0]
    assert sum(row["bytes"] for row in rows) == WHOLE.nbytes
    blocks = [row["block"] for row in rows]
    assert sorted(blocks) == list(range(4096 // 64, -(-(4096 + WHOLE.nbytes) // 64)))
    for server in (0, 1):
        own = [row for row in rows if row["server"] == server]
        assert [row["step"] for row in own] == list(range(len(own)))
        assert [row["address"] for row in own] == sorted(row["address"] for row in own)
        assert {row["block"] % 2 for row in own} == {own[0]["block"] % 2}
    assert {rank for row in rows for rank in row["ranks"]} == {0, 1, 2, 3}
    assert rows[0]["offset"] == rows[0]["block"] * 64


def test_plans_are_tables_that_say_what_is_left_out(instance):
    with unisono.open_array("planned", "w", shape=(1000, 100), dtype="f8", block_bytes=4096) as array:
        plan = array.plan()
        assert plan.is_complete and plan.nbytes == array.nbytes == plan.to_pandas()["bytes"].sum()
        short = array.plan(blocks_max=3)
        assert not short.is_complete and len(short) == 2 * 3
        assert "more blocks are left out" in repr(short)
    with unisono.open_array("planned", method="two-phase") as array, pytest.raises(errors.UsageError, match="two-phase"):
        array.plan()


def test_empty_parts_take_part(instance):
    options = {"distribution": ("block", None), "grid": (12, 1)}
    # Blocks of two: seven processes have all 13 rows.
    assert _run(_write, 12, options)[7:] == [0] * 5


def test_what_does_not_fit_is_refused(instance):
    with unisono.open_array("fit", "w", shape=(8, 8), dtype="f8") as array:
        with pytest.raises(ValueError, match="astype"):
            array.write(np.zeros((8, 8), "f4"))
        with pytest.raises(ValueError, match="shape"):
            array.write(np.zeros((8, 7)))
        with pytest.raises(errors.UsageError, match="gives nothing"):
            array.write(None)
        with pytest.warns(unisono.arrays.CopyWarning):
            array.write(np.zeros((8, 16))[:, ::2])
        started = array.start_write(np.ones((8, 8)))
        assert started.wait().bytes == 512
        assert started.done()
    with pytest.raises(errors.UsageError, match="closed"):
        array.read()
    with unisono.open_array("fit") as array, pytest.raises(errors.UsageError, match="opened to be read"):
        array.write(np.zeros((8, 8)))
    with pytest.raises(errors.UsageError, match="its shape is"):
        unisono.open_array("fit", shape=(9, 9)).close()
    with pytest.raises(FileNotFoundError):
        unisono.open_array("no-array")
    for wrong in [{"mode": "w", "shape": (2,), "dtype": object}, {"size": 2}, {"mode": "q"}, {"order": "K"}, {"distribution": ("block",)}, {"grid": (2, 2)}]:
        with pytest.raises(errors.UsageError):
            unisono.open_array("fit", **wrong)


@pytest.mark.parametrize("dtype", ["i1", ">f8", "c16", "?", "S3", "U2", "M8[ns]", "m8[s]", [("a", "i2"), ("b", "M8[D]")]])
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (0, 4)])
def test_elements_and_shapes_of_any_kind(instance, dtype, shape):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    whole = np.frombuffer(bytes(number % 2 for number in range(size)), dtype).reshape(shape)
    with unisono.open_array("kinds", "w", shape=shape, dtype=dtype) as array:
        assert array.write(whole).bytes == size
    with unisono.open_array("kinds") as array:
        found = array.read()
        assert found.dtype == whole.dtype and found.shape == shape and found.tobytes() == whole.tobytes()
        assert array.plan(write=False).nbytes == size


def test_refused_arguments_change_nothing(instance):
    with unisono.open_array("keep", "w", shape=(4,), dtype="i8") as array:
        array.write(np.arange(4))
    bad = [
        {"distribution": ("bogus",)}, {"distribution": ("cyclic(0)",)}, {"distribution": "block"}, {"distribution": (3,)},
        {"grid": (7,)}, {"grid": "x"}, {"shape": (-3,)}, {"shape": (2.5,)}, {"shape": (2**64,)}, {"dtype": "nonsense"},
        {"rank": 2, "size": 2}, {"rank": -1, "size": 2}, {"comm": 7}, {"method": "fast"}, {"block_bytes": []},
        {"size": 2**33, "rank": 0}, {"size": []}, {"rank": [0, 1], "size": 2}, {"dtype": [("\u65e5", "i4")]},
    ]  # fmt: skip
    for wrong in bad:
        with pytest.raises(errors.UsageError):
            unisono.open_array("keep", "w", **{"shape": (8,), "dtype": "i8", **wrong})
    with unisono.open_array("keep", "r+", shape=np.array([4])) as array:
        assert (array.read() == np.arange(4)).all()
        with pytest.raises(errors.UsageError, match="no NumPy array"):
            array.read(out=[0] * 4)
        with pytest.raises(errors.UsageError, match="blocks_max"):
            array.plan(blocks_max=-1)
        assert len(array.plan().to_arrow()) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\x93NUMPY", b"\x93NUMPY\x02\x00\xff\xff\xff\xff", b"\x93NUMPY\x09\x00\x10\x00" + bytes(99),
        b"\x93NUMPY\x01\x00\x05\x00[1,2]", b"\x93NUMPY\x01\x00\x05\x00((((\n",
        b"\x93NUMPY\x01\x00\x40\x00{'descr': '|O', 'fortran_order': False, 'shape': (3,)}".ljust(74) + b"\n" + bytes(24),
        b"\x93NUMPY\x01\x00\x40\x00{'descr': '<f8', 'fortran_order': False, 'shape': (-3,)}".ljust(74) + b"\n",
    ],
)  # fmt: skip
def test_damaged_headers_are_refused(connection, content):
    with connection.open("damaged", "w") as file:
        file.write(0, content)
    with pytest.raises(errors.UsageError, match="cannot open .*damaged"):
        unisono.open_array("damaged")


def test_a_transfer_outlives_its_file(instance):
    values = np.arange(1 << 21, dtype="f8")
    for method in ("disk-directed", "two-phase", "caching", "global-barrier", "node-grouping"):
        with unisono.open_array("outlived", "w", shape=values.shape, dtype="f8", method=method) as array:
            transfer = array.start_write(values)
        assert transfer.wait().bytes == values.nbytes and transfer.done()
        with unisono.open_array("outlived") as array:
            assert (array.read() == values).all(), method


PROGRAM = """
import sys
import numpy as np
from mpi4py import MPI
import unisono
from unisono import errors

comm = MPI.COMM_WORLD
with unisono.open_array("ranks", "w", shape=(6, 5), dtype="i4", distribution=("cyclic", None), comm=comm) as array:
    array.write(np.full(array.local_shape, comm.rank, "i4"))
with unisono.open_array("ranks", distribution=(None, "block"), comm=comm) as array:
    assert (array.read() == np.arange(6)[:, None] % comm.size).all()
# A mistake of one rank ends the call of all.
ended = 0
try:
    unisono.open_array("ranks", "q" if comm.rank == 1 else "r", comm=comm)
except errors.UsageError as error:
    ended += "is no mode" in str(error)
try:
    unisono.open_array("ranks", dtype="i4" if comm.rank == 1 else np.int32, shape=[6, 5], comm=comm).close()
    unisono.open_array("ranks", order="C" if comm.rank else "F", comm=comm)
except errors.CallsDifferError:
    ended += 1
assert comm.allreduce(ended) == 2 * comm.size
"""


def _by_mpi(words, tmp_path):
    """Run a program of Python by three ranks; return what it printed."""
    command = ["mpiexec.openmpi", "--oversubscribe", "-n", "3", sys.executable, *words]
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    # Open MPI's programs at the same time must not share a directory.
    own = {"MPI4PY_MPIABI": "openmpi", "UNISONO_TIMEOUT": "20", "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    environment = {**os.environ, **as_root, **own}
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=100)
    assert told.returncode == 0, told.stderr
    return told.stdout


def test_ranks_of_mpi_share_an_array(instance, tmp_path):
    _by_mpi(["-c", PROGRAM], tmp_path)


def test_a_matrix_is_factored_out_of_core(instance, tmp_path):
    """Its residual is that of rounding, and its solution that of SciPy, in both orders and by other methods."""
    program = BENCH / "lu.py"
    told = _by_mpi([program], tmp_path)
    assert told == (
        "lu: 600 x 600 in slabs of 64 columns, scaled residual below 1: True\nlu: the solution is SciPy's: True\n"
    )
    # Slabs that do not divide the matrix, and fewer columns of the last one than processes.
    for words in [("101", "25", "two-phase", "C"), ("130", "64", "disk-directed", "C"), ("75", "100", "caching", "F")]:
        assert _by_mpi([program, *words], tmp_path).count("True") == 2, words


def _random_view(random, shape):
    """Return an index, and a distribution of what it takes."""
    index = []
    for extent in shape:
        start, stop = sorted(random.integers(0, extent + 1, 2).tolist())
        choices = [slice(start, stop, int(random.integers(1, 4))), slice(None), int(random.integers(-extent, extent))]
        index.append(choices[int(random.integers(0, 3))])
    kept = sum(isinstance(word, slice) for word in index)
    words = random.choice(["block", "cyclic", "cyclic(2)", "cyclic(3)", "none"], kept).tolist()
    return tuple(index), words


@pytest.mark.parametrize("order", ["C", "F"])
def test_views_are_those_of_numpy(instance, order):
    random = np.random.default_rng(8)
    shape = (7, 9, 5)
    whole = np.asarray(np.arange(np.prod(shape), dtype="i2").reshape(shape), order=order)
    with unisono.open_array("whole", "w", shape=shape, dtype="i2", order=order) as array:
        for _ in range(60):
            array.write(whole)
            index, _ = _random_view(random, shape)
            view, expected = array[index], whole[index]
            assert view.shape == expected.shape
            assert (view.read() == expected).all()
            view.write(np.asarray(expected + 1000, order=order))
            changed = whole.copy(order="K")
            changed[index] += 1000
            assert (array.read() == changed).all(), index
        assert (array[2:][1, ..., ::2][3:, 1].read() == whole[2:][1, ..., ::2][3:, 1]).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_views_are_distributed_for_themselves(instance, order):
    random = np.random.default_rng(9)
    shape = (11, 6, 8)
    whole = np.asarray(np.arange(np.prod(shape), dtype="i2").reshape(shape), order=order)
    with unisono.open_array("whole", "w", shape=shape, dtype="i2", order=order) as array:
        array.write(whole)
    cases = [_random_view(random, shape) for _ in range(40)]
    cases = [(index, words) for index, words in cases if any(word != "none" for word in words)]
    assert len(cases) > 20
    for answers in _run(_read_views, 3, {"cases": cases, "dimensions": len(shape)}):
        for (index, _), (indices, own) in zip(cases, answers, strict=True):
            assert (own == whole[index][np.ix_(*indices)]).all(), index
    assert all(_run(_double_view, 3, {}))
    with unisono.open_array("whole") as array:
        expected = whole.copy()
        expected[1:10:2, 3] *= 2
        assert (array.read() == expected).all()


def _read_views(arguments):
    rank, size, options = arguments
    words = ["cyclic"] + [None] * (options["dimensions"] - 1)
    with unisono.open_array("whole", rank=rank, size=size, distribution=words) as array:
        views = [array.view(index, distribution=words) for index, words in options["cases"]]
        return [(view.local_indices, view.read()) for view in views]


def _double_view(arguments):
    rank, size, _ = arguments
    with unisono.open_array("whole", "r+", rank=rank, size=size, distribution=("block", None, None)) as array:
        view = array[1:10:2, 3]
        return view.write(2 * view.read()).bytes == view.local_nbytes


def test_datasets_of_hdf5_are_read_in_one_call(instance, tmp_path):
    """A file that HDF5 has written, whose datasets are read by two processes as H5Dread_multi does."""
    import fsspec
    import h5py

    written = {"a": np.arange(60.0).reshape(6, 10), "b": np.arange(35, dtype="i2").reshape(5, 7)}
    with h5py.File(tmp_path / "data.h5", "w") as file:
        places = {name: file.create_dataset(name, data=values).id.get_offset() for name, values in written.items()}
    fsspec.filesystem("unisono", instance=instance).put(str(tmp_path / "data.h5"), "data.h5")
    assert all(_run(_read_datasets, 2, {"written": written, "places": places}))


def _read_datasets(arguments):
    rank, size, options = arguments
    datasets = {
        name: unisono.open_array(
            "data.h5", shape=values.shape, dtype=values.dtype, header=False, offset=options["places"][name],
            rank=rank, size=size, group=name,
        )
        for name, values in options["written"].items()
    }  # fmt: skip
    read = unisono.transfer([one.read_request() for one in datasets.values()])
    own = [values[np.ix_(*datasets[name].local_indices)] for name, values in options["written"].items()]
    return all((one == expected).all() for one, expected in zip(read, own, strict=True))


def test_an_offset_is_that_of_a_file_without_a_header(instance):
    with unisono.open_array("behind", "w", shape=(4,), dtype="i4", header=False, offset=12) as array:
        array.write(np.arange(4, dtype="i4"))
    with unisono.connect().open("behind") as file:
        assert file.read(0, 100) == bytes(12) + np.arange(4, dtype="i4").tobytes()
    with pytest.raises(errors.UsageError, match="header"):
        unisono.open_array("behind", "w", shape=(4,), dtype="i4", offset=12)


def test_each_process_may_have_the_whole(instance):
    whole = np.arange(60, dtype="i4").reshape(6, 10)
    with unisono.open_array("whole", "w", shape=(6, 10), dtype="i4") as array:
        array.write(whole)
    assert all(_run(_read_whole, 3, {}))
    with pytest.raises(errors.UsageError, match="no sequence of words"):
        unisono.open_array("whole", distribution="block")


def _read_whole(arguments):
    rank, size, _ = arguments
    whole = np.arange(60, dtype="i4").reshape(6, 10)
    with unisono.open_array("whole", "r+", rank=rank, size=size, distribution="whole") as array:
        rows = array.view(slice(1, 5), distribution=("cyclic", None))
        parts = (array.read() == whole).all(), (array[2:, 3].read() == whole[2:, 3]).all(), len(array.plan(write=False)) > 0
        own = (rows.read() == whole[1:5][rows.local_indices[0]]).all()
        with pytest.raises(errors.UsageError, match="each process has the whole"):
            array.write(whole)
        return bool(all(parts) and own)


def test_views_of_nothing_and_views_that_are_refused(instance):
    with unisono.open_array("whole", "w", shape=(4, 5), dtype="f8") as array:
        array.write(np.ones((4, 5)))
        assert array[2:2].read().shape == (0, 5)
        assert array[3, 4].read() == 1
        for index in [(1, 2, 3), 4, -5, slice(None, None, -1), "x", (..., ...), 1.5, [1, 2], True, None]:
            with pytest.raises(errors.UsageError) as refused:
                array[index]
            assert refused.value.cause and refused.value.help


def _several(arguments):
    rank, size, options = arguments
    process = {"rank": rank, "size": size, "method": options["method"]}
    with (
        unisono.open_array("one", "w", shape=(40, 6), dtype="f8", **process) as one,
        unisono.open_array("two", "w", shape=(9, 9), dtype="i4", distribution=(None, "cyclic"), group="2", **process) as two,
    ):
        first = np.full(one.local_shape, 1.0 + rank)
        second = np.full(two.local_shape, 10 + rank, "i4")
        moved = unisono.transfer([one.write_request(first), two.write_request(second)], sync=True)
        assert [one.bytes for one in moved] == [first.nbytes, second.nbytes]
        # A read and a write together, of views.
        halves = one[:20], one[20:]
        begun = unisono.start_transfer([halves[0].read_request(), two.read_request(), halves[1].write_request(-halves[1].read())])
        read, back, moved = begun.wait()
        whole = np.concatenate([np.full(one_of, 1.0 + other) for other, one_of in _rows(40, size)])
        return bool(
            begun.done()
            and (back == second).all()
            and (read == whole[:20][halves[0].local_indices[0]][:, None]).all()
            and (halves[1].read() == -whole[20:][halves[1].local_indices[0]][:, None]).all()
        )


def _rows(extent, size):
    chunk = -(-extent // size)
    return [(rank, min(chunk, extent - rank * chunk)) for rank in range(size)]


@pytest.mark.parametrize("method", ["disk-directed", "two-phase", "caching"])
def test_several_arrays_in_one_call(instance, method):
    assert all(_run(_several, 3, {"method": method}))


def test_more_transfers_than_are_under_way_at_once(instance):
    with unisono.open_array("many", "w", shape=(100, 30), dtype="i4") as array:
        rows = np.arange(3000, dtype="i4").reshape(100, 30)
        moved = unisono.transfer([array[row].write_request(rows[row]) for row in range(100)])
        assert sum(one.bytes for one in moved) == rows.nbytes
        assert (np.stack(unisono.transfer([array[row].read_request() for row in range(99, -1, -1)])) == rows[::-1]).all()


def test_a_call_for_several_arrays_names_the_one_that_fails(instance):
    with (
        unisono.open_array("short", "w", shape=(1000,), dtype="f8", header=False) as short,
        unisono.open_array("long", "w", shape=(1000,), dtype="f8") as long,
    ):
        long.write(np.ones(1000))
        with unisono.connect().open("short", "a") as file:
            file.set_size(80)
        out = np.zeros(1000)
        with pytest.raises(errors.PastEndError, match='read "short"'):
            unisono.transfer([long.read_request(out), short.read_request()])
        assert (out == 1).all(), "the others are transferred"
        with pytest.raises(errors.UsageError):
            unisono.transfer([])
        with unisono.open_array("long", timeout=7.0, group="other") as other, pytest.raises(errors.UsageError, match="connection"):
            unisono.transfer([short.write_request(out), other.read_request()])
        with unisono.open_array("long", method="caching", group="other") as other, pytest.raises(errors.UsageError, match="method"):
            unisono.transfer([short.write_request(out), other.read_request()])
