"""Proves: the processes of dask write and read one instance together, and changed files are read anew."""

import os
import time

import dask
import dask.array
import dask.bag
import dask.dataframe
import fsspec
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from dask.distributed import Client, LocalCluster

import unisono
from unisono import errors

# dask calls pandas so.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")


@pytest.fixture(scope="module")
def client(instance):
    """Start two workers, each a process with one thread."""
    with LocalCluster(n_workers=2, processes=True, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            yield client


def both(client, function, *arguments):
    """Run a function at each worker, which is given the number of the worker; return the results."""
    workers = list(client.scheduler_info()["workers"])
    assert len(workers) == 2
    started = [
        client.submit(function, *arguments, number, workers=[worker], pure=False)
        for number, worker in enumerate(workers)
    ]
    return client.gather(started)


# ---- Workers --------------------------------------------------------------------------------------


def _write_part(fs, number):
    with fs.open("workers/shared", "r+b") as file:
        for block in range(number, 8, 2):
            file.seek(block * 2**20)
            file.write(np.full(2**20, block + 1, "u1"))
    return os.getpid(), id(fs._connection)


def _sum_other_part(file, number):
    blocks = []
    for block in range(1 - number, 8, 2):
        file.seek(block * 2**20)
        blocks.append(int(np.frombuffer(file.read(2**20), "u1").sum()) // 2**20)
    return blocks


def test_workers_write_parts_of_one_file(client, fs):
    fs.pipe_file("workers/shared", b"")
    processes = {process for process, _ in both(client, _write_part, fs)}
    assert len(processes) == 2 and os.getpid() not in processes
    assert fs.cat_file("workers/shared") == np.repeat(np.arange(1, 9, dtype="u1"), 2**20).tobytes()
    with fs.open("workers/shared") as file:
        assert both(client, _sum_other_part, file) == [[2, 4, 6, 8], [1, 3, 5, 7]]


def _open_missing(fs, number):
    fs.open("workers/missing")


def test_an_error_of_a_worker_is_raised_here(client, fs):
    with pytest.raises(FileNotFoundError) as caught:
        both(client, _open_missing, fs)
    assert (caught.value.kind, caught.value.file) == ("not-found", "workers/missing")


# ---- Arrays ---------------------------------------------------------------------------------------


SHAPE = (1600, 1500)


def value(row, column):
    return np.sin(row * SHAPE[1] + column)


@pytest.fixture(scope="module")
def values():
    return value(*np.indices(SHAPE))


def lazy(chunks):
    """Return an array of the same values, which processes compute by blocks."""
    return dask.array.fromfunction(value, chunks=chunks, shape=SHAPE, dtype="f8")


def test_an_array_of_dask_is_read_back(client, values, options, fs):
    url = "unisono://dask/array"
    lazy((400, 500)).to_zarr(url, storage_options=options)
    assert len(fs.find("dask/array/c")) == 12
    found = dask.array.from_zarr(url, storage_options=options)
    assert found.chunksize == (400, 500)
    np.testing.assert_array_equal(found.compute(), values)
    np.testing.assert_array_equal((found[::7, 450:550] * 2).compute(), values[::7, 450:550] * 2)


def test_files_of_numpy_are_written_and_read_by_workers(client, values, fs):
    def save(block, block_info=None):
        row = block_info[0]["chunk-location"][0]
        with fs.open(f"dask/blocks/{row}.npy", "wb") as file:
            np.save(file, block)
        return np.array([[block.nbytes]])

    def load(name):
        with fs.open(name) as file:
            return np.load(file)

    written = lazy((400, 1500)).map_blocks(save, dtype="i8", meta=np.empty((0, 0), "i8"), chunks=(1, 1)).compute()
    assert written.sum() == values.nbytes
    parts = [dask.delayed(load)(name) for name in fs.glob("dask/blocks/*.npy")]
    np.testing.assert_array_equal(np.concatenate(dask.compute(*parts)), values)


def test_a_dataset_of_xarray_is_written_by_workers(client, values, options):
    url, layout = "unisono://dask/dataset", {"storage_options": options, "consolidated": False}
    encoding = {"values": {"chunks": (100, 500), "shards": (400, 1500)}}
    xr.Dataset({"values": (("y", "x"), lazy((400, 1500)))}).to_zarr(url, encoding=encoding, **layout)
    expected = xr.Dataset({"values": (("y", "x"), values)})
    with xr.open_zarr(url, **layout) as found:
        assert found.chunks["y"] == (100,) * 16
        xr.testing.assert_identical(found.compute(), expected)
        xr.testing.assert_identical(found.max("y").compute(), expected.max("y"))


# ---- Frames and bags ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frame():
    generator = np.random.default_rng(9)
    return pd.DataFrame(
        {
            "key": generator.integers(0, 50, 200_000),
            "value": generator.standard_normal(200_000),
            "text": pd.Series(generator.integers(0, 10**9, 200_000)).astype("string[pyarrow]"),
        }
    )


def assert_same(found, expected):
    pd.testing.assert_frame_equal(found.reset_index(drop=True), expected.reset_index(drop=True), check_exact=True)


def test_a_frame_of_dask_is_read_back_from_parquet(client, frame, options, fs):
    url = "unisono://dask/parquet"
    dask.dataframe.from_pandas(frame, npartitions=6).to_parquet(url, storage_options=options)
    assert len(fs.glob("dask/parquet/*.parquet")) == 6
    assert_same(dask.dataframe.read_parquet(url, storage_options=options).compute(), frame)
    found = dask.dataframe.read_parquet(
        url, columns=["value", "key"], filters=[("key", ">=", 40)], storage_options=options
    )
    assert_same(found.compute(), frame[frame.key >= 40][["value", "key"]])
    assert found.key.sum().compute() == frame.key[frame.key >= 40].sum()


def test_a_partitioned_frame_of_dask_is_read_back_in_part(client, frame, options, fs):
    url = "unisono://dask/partitioned"
    parted = frame.assign(key=frame.key % 5)
    dask.dataframe.from_pandas(parted, npartitions=2).to_parquet(url, partition_on=["key"], storage_options=options)
    assert len(fs.glob("dask/partitioned/key=*/*.parquet")) == 10
    found = dask.dataframe.read_parquet(url, filters=[("key", "==", 3)], storage_options=options)
    assert_same(found.compute()[["value", "text"]], parted[parted.key == 3][["value", "text"]])


def test_a_frame_of_dask_is_read_back_from_csv(client, frame, options, fs):
    dask.dataframe.from_pandas(frame, npartitions=3).to_csv(
        "unisono://dask/csv/part-*.csv", index=False, storage_options=options
    )
    assert sum(fs.sizes(fs.glob("dask/csv/*.csv"))) > 6 * 2**20
    # Each file is read in pieces, which begin and end within lines.
    found = dask.dataframe.read_csv(
        "unisono://dask/csv/*.csv", blocksize=500_000, dtype={"text": frame.text.dtype}, storage_options=options
    )
    assert found.npartitions > 3
    assert_same(found.compute(), frame)


@pytest.mark.parametrize("ending", ["txt", "txt.gz"])
def test_a_bag_of_dask_is_read_back(client, ending, options, fs):
    lines = [f"line {number} " + "ä" * (number % 60) for number in range(60_000)]
    bag = dask.bag.from_sequence(lines, npartitions=3)
    bag.to_textfiles(f"unisono://dask/bag/*.{ending}", last_endline=True, storage_options=options)
    assert len(fs.glob(f"dask/bag/*.{ending}")) == 3
    found = dask.bag.read_text(f"unisono://dask/bag/*.{ending}", storage_options=options)
    texts = found.map_partitions(lambda part: ["".join(part)]).compute()
    assert "".join(texts).splitlines() == lines


def test_dask_says_that_a_file_is_missing(client, options):
    with pytest.raises(FileNotFoundError):
        dask.dataframe.read_parquet("unisono://dask/missing", storage_options=options)
    with pytest.raises(OSError, match="resolved to no files"):
        dask.dataframe.read_csv("unisono://dask/missing/*.csv", storage_options=options)
    with pytest.raises(FileNotFoundError):
        dask.array.from_zarr("unisono://dask/missing", storage_options=options)


# ---- Changed files --------------------------------------------------------------------------------


def test_keys_change_exactly_when_the_file_does(fs):
    keys, checksums, times = [], [], []

    def look():
        keys.append(fs.ukey("dask/key"))
        checksums.append(fs.checksum("dask/key"))
        times.append(fs.modified("dask/key"))

    for content in (b"first", b"other", b"other"):
        fs.pipe_file("dask/key", content)
        look()
    with fs.open("dask/key", "r+b") as file:
        file.write(b"third")
    look()
    assert len(set(keys)) == len(set(checksums)) == 4
    assert times == sorted(times)
    fs.cat_file("dask/key")
    with fs.open("dask/key") as file:
        file.read()
    look()
    assert (keys[-1], checksums[-1], times[-1]) == (keys[-2], checksums[-2], times[-2])
    assert abs(times[-1].timestamp() - time.time()) < 3600
    with pytest.raises(FileNotFoundError):
        fs.ukey("dask/no-key")


@pytest.mark.parametrize("cache", ["filecache", "blockcache", "simplecache"])
def test_caches_of_fsspec_notice_a_changed_file(cache, fs, options, tmp_path):
    content = bytes(range(256)) * 10_000
    fs.pipe_file("dask/cached", content)
    how = {"cache_storage": str(tmp_path), "check_files": True} if cache != "simplecache" else {"cache_storage": str(tmp_path)}

    def read():
        with fsspec.open(f"{cache}::unisono://dask/cached", **{cache: how}, unisono=options) as file:
            file.seek(1_000_000)
            return file.read(300_000)

    assert read() == read() == content[1_000_000:1_300_000]
    if cache == "simplecache":
        return  # It never looks again.
    with fs.open("dask/cached", "r+b") as file:
        file.write(content[::-1])
    assert read() == content[::-1][1_000_000:1_300_000]


def test_dask_reads_a_changed_parquet_file_of_the_same_size_anew(client, options, fs):
    kept = []
    for number in (1, 2):
        frame = pd.DataFrame({"number": np.full(100_000, number)})
        frame.to_parquet("unisono://dask/changed/one.parquet", storage_options=options)
        kept.append(dask.dataframe.read_parquet("unisono://dask/changed", storage_options=options).persist())
        assert kept[-1].number.sum().compute() == number * 100_000


# ---- The scheduler of processes -------------------------------------------------------------------


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_dask_write_and_read(method, values, options, fs):
    fs.pipe_file("dask/connected", b"before a fork")
    with dask.config.set({"scheduler": "processes", "num_workers": 2, "multiprocessing.context": method}):
        url = f"unisono://dask/{method}"
        lazy((800, 750)).to_zarr(url, storage_options=options)
        np.testing.assert_array_equal(dask.array.from_zarr(url, storage_options=options).compute(), values)
    assert fs.cat_file("dask/connected") == b"before a fork"


def test_sweeps_run_on_the_workers(client, monkeypatch):
    options = {"pattern": "rb", "strategy": ["caching", "disk-directed"], "servers": [4, 16], "size": "1MiB", "trials": 2}
    here = unisono.sweep(**options)

    def fail(*_):
        raise AssertionError("this process must not simulate")

    monkeypatch.setattr("unisono.simulation._simulate", fail)
    there = unisono.sweep(client=client, **options)
    assert [row["digest"] for row in there] == [row["digest"] for row in here]
    assert there.columns() == here.columns() and [row["servers"] for row in there] == [4, 16, 4, 16]
    with pytest.raises(errors.UsageError, match="did you mean pattern"):
        unisono.sweep(client=client, patern=["rb"])
