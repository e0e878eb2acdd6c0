"""Proves: zarr stores, sharded arrays of zarr and datasets of xarray are written to an instance and read unchanged."""

import itertools

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from zarr.core.buffer import cpu
from zarr.storage import FsspecStore
from zarr.testing.stateful import ZarrHierarchyStateMachine
from zarr.testing.store import StoreTests

from unisono.fs import UnisonoFileSystem


# ---- Stores ---------------------------------------------------------------------------------------

_numbers = itertools.count()


class TestStore(StoreTests[FsspecStore, cpu.Buffer]):
    """The tests that zarr has for stores."""

    store_cls = FsspecStore
    buffer_cls = cpu.Buffer

    @pytest.fixture
    def store_kwargs(self, fs):
        return {"fs": AsyncFileSystemWrapper(fs, asynchronous=True), "path": f"stores/{next(_numbers)}"}

    async def get(self, store, key):
        return self.buffer_cls.from_bytes(store.fs.sync_fs.cat_file(f"{store.path}/{key}"))

    async def set(self, store, key, value):
        store.fs.sync_fs.pipe_file(f"{store.path}/{key}", value.to_bytes())

    if not hasattr(FsspecStore, "get_sync"):
        # Optional methods of stores, which zarr's store for fsspec does not have.
        test_get_sync = test_get_sync_missing = test_set_sync = test_delete_sync = test_delete_sync_missing = None

    def test_store_repr(self, store):
        assert repr(store) == f"<FsspecStore(AsyncFileSystemWrapper, {store.path})>"

    def test_store_supports_writes(self, store):
        assert store.supports_writes

    def test_store_supports_listing(self, store):
        assert store.supports_listing


def test_a_store_is_made_of_a_url(options):
    store = FsspecStore.from_url("unisono://stores/url/", storage_options=options)
    assert store.path == "stores/url"
    root = zarr.create_group("unisono://stores/url", storage_options=options, attributes={"number": 7})
    root.create_array("a/b/c", data=np.arange(10))
    root.create_group("a/empty")
    assert sorted(zarr.open_group(store, mode="r")["a"].members(max_depth=None))[0][0] == "b"
    assert dict(zarr.open_group(store, mode="r").attrs) == {"number": 7}


class ClearedStore(FsspecStore):
    """A store that clears what is in directories, too: zarr's own stops behind the first directory."""

    async def clear(self):
        await self.delete_dir("")


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
def test_random_changes_of_a_hierarchy_are_those_of_a_store_in_memory(fs):
    def machine():
        wrapped = AsyncFileSystemWrapper(fs, asynchronous=True)
        return ZarrHierarchyStateMachine(ClearedStore(wrapped, path=f"stores/{next(_numbers)}"))

    few = settings(
        max_examples=10,
        stateful_step_count=20,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=few)


# ---- Arrays ---------------------------------------------------------------------------------------

SHAPE, SHARD, CHUNK = (2048, 2048), (1024, 1024), (128, 256)


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(5).standard_normal(SHAPE)


@pytest.fixture
def reads(monkeypatch):
    """Record name, start and end of each read of a file."""
    made, cat_file = [], UnisonoFileSystem.cat_file

    def recorded(self, path, start=None, end=None, **kwargs):
        made.append((path, start, end))
        return cat_file(self, path, start, end, **kwargs)

    monkeypatch.setattr(UnisonoFileSystem, "cat_file", recorded)
    return made


def test_a_sharded_array_is_read_back(values, options, other, fs):
    url = "unisono://zarr/sharded"
    made = zarr.create_array(url, data=values, chunks=CHUNK, shards=SHARD, storage_options=options)
    assert fs.find("zarr/sharded/c") == [f"zarr/sharded/c/{row}/{column}" for row in (0, 1) for column in (0, 1)]
    assert min(fs.sizes(fs.find("zarr/sharded/c"))) > 6 * 2**20
    found = zarr.open_array(url, mode="r", storage_options=other)
    assert (found.shards, found.chunks) == (made.shards, made.chunks) == (SHARD, CHUNK)
    np.testing.assert_array_equal(found[:], values)
    np.testing.assert_array_equal(found[100:1900:7, 1000:1100], values[100:1900:7, 1000:1100])
    rows, columns = [3, 1023, 1024, 2047], [0, 255, 256, 2000]
    np.testing.assert_array_equal(found.vindex[rows, columns], values[rows, columns])
    np.testing.assert_array_equal(found.oindex[rows, columns], values[np.ix_(rows, columns)])


@pytest.mark.parametrize("index_location", ["start", "end"])
def test_one_chunk_of_a_shard_is_read_by_its_range(values, index_location, reads, options, other, fs):
    url = f"unisono://zarr/range-{index_location}"
    stored = [zarr.codecs.BytesCodec()]
    codec = zarr.codecs.ShardingCodec(chunk_shape=CHUNK, codecs=stored, index_location=index_location)
    array = zarr.create(SHAPE, chunks=SHARD, dtype="f8", codecs=[codec], store=url, storage_options=options)
    array[:] = values
    found = zarr.open_array(url, mode="r", storage_options=other)
    reads.clear()
    np.testing.assert_array_equal(found[1024:1152, 256:512], values[1024:1152, 256:512])
    [(first, *index), (second, start, end)] = reads
    assert first == second == f"zarr/range-{index_location}/c/1/0"
    chunks = SHARD[0] * SHARD[1] // (CHUNK[0] * CHUNK[1])
    # The index has offset and size of each chunk, and a checksum.
    index_bytes = 16 * chunks + 4
    assert index == ([0, index_bytes] if index_location == "start" else [-index_bytes, None])
    assert end - start == CHUNK[0] * CHUNK[1] * 8
    assert fs.size(first) == SHARD[0] * SHARD[1] * 8 + index_bytes


def test_parts_of_shards_are_written(values, options, other):
    url = "unisono://zarr/parts"
    array = zarr.create_array(
        url, shape=SHAPE, dtype="f8", chunks=CHUNK, shards=SHARD, fill_value=-1, storage_options=options
    )
    expected = np.full(SHAPE, -1.0)
    for part in np.s_[0:1, 0:1], np.s_[1000:1100, :], np.s_[1020:1030, 1020:1030], np.s_[::1, 2047:]:
        array[part] = expected[part] = values[part]
    np.testing.assert_array_equal(zarr.open_array(url, mode="r", storage_options=other)[:], expected)


def test_a_shard_that_was_not_written_has_the_fill_value(values, options, other, fs):
    url = "unisono://zarr/sparse"
    array = zarr.create_array(
        url, shape=SHAPE, dtype="f8", chunks=CHUNK, shards=SHARD, fill_value=9, storage_options=options
    )
    array[1024:, 1024:] = values[1024:, 1024:]
    assert fs.find("zarr/sparse/c") == ["zarr/sparse/c/1/1"]
    expected = np.full(SHAPE, 9.0)
    expected[1024:, 1024:] = values[1024:, 1024:]
    np.testing.assert_array_equal(zarr.open_array(url, mode="r", storage_options=other)[:], expected)


def test_a_shard_of_many_blocks_is_read_back(options, other, fs):
    values = np.random.default_rng(6).integers(0, 2**63, (24, 2**17))
    url = "unisono://zarr/large"
    zarr.create_array(
        url, data=values, chunks=(1, 2**16), shards=values.shape, compressors=None, storage_options=options
    )
    assert fs.size("zarr/large/c/0/0") > values.nbytes == 24 * 2**20
    found = zarr.open_array(url, mode="r", storage_options=other)
    np.testing.assert_array_equal(found[13, 60_000:70_000], values[13, 60_000:70_000])
    np.testing.assert_array_equal(found[:], values)


def test_an_array_is_resized_and_written_over(values, options, other, fs):
    url = "unisono://zarr/resized"
    array = zarr.create_array(url, data=values, chunks=CHUNK, shards=SHARD, storage_options=options)
    array.resize((1024, 2048))
    assert len(fs.find("zarr/resized/c")) == 2
    array.append(values[:100])
    found = zarr.open_array(url, mode="r", storage_options=other)
    np.testing.assert_array_equal(found[:], np.concatenate([values[:1024], values[:100]]))
    with pytest.raises(zarr.errors.ContainsArrayError):
        zarr.create_array(url, data=values, storage_options=options)
    zarr.create_array(url, data=values[:10, :10], overwrite=True, storage_options=options)
    np.testing.assert_array_equal(zarr.open_array(url, mode="r", storage_options=other)[:], values[:10, :10])
    assert fs.find("zarr/resized") == ["zarr/resized/c/0/0", "zarr/resized/zarr.json"]


def test_zarr_says_that_an_array_is_missing(options):
    with pytest.raises(FileNotFoundError):
        zarr.open_array("unisono://zarr/missing", mode="r", storage_options=options)
    with pytest.raises(FileNotFoundError):
        zarr.open_group("unisono://zarr/missing", mode="r", storage_options=options)


# ---- xarray ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dataset():
    generator = np.random.default_rng(7)
    return xr.Dataset(
        {
            "temperature": (("time", "y", "x"), generator.standard_normal((48, 256, 256)), {"units": "K"}),
            "mask": (("y", "x"), generator.random((256, 256)) > 0.5),
        },
        coords={
            "time": pd.date_range("2024-01-01", periods=48, freq="h", unit="ns"),
            "y": np.linspace(-1, 1, 256),
            "x": np.arange(256),
        },
        attrs={"title": "of a test", "levels": [1, 2, 3]},
    )


ENCODING = {"temperature": {"chunks": (4, 64, 256), "shards": (16, 256, 256)}}


@pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part:zarr.errors.ZarrUserWarning")
@pytest.mark.parametrize("consolidated", [True, False])
def test_xarray_reads_the_sharded_zarr_that_it_wrote(dataset, consolidated, options, other):
    url = f"unisono://xarray/consolidated-{consolidated}"
    dataset.to_zarr(url, storage_options=options, zarr_format=3, encoding=ENCODING, consolidated=consolidated)
    with xr.open_zarr(url, storage_options=other, consolidated=consolidated) as found:
        assert found.temperature.encoding["shards"] == (16, 256, 256)
        part = {"time": [3, 40], "y": slice(60, 70)}
        xr.testing.assert_identical(found.isel(part).load(), dataset.isel(part))
        xr.testing.assert_identical(found.load(), dataset)


@pytest.mark.parametrize("consolidated", [True, False])
def test_xarray_reads_the_zarr_of_version_2_that_it_wrote(dataset, consolidated, options, other):
    url = f"unisono://xarray/version-2-{consolidated}"
    dataset.to_zarr(url, storage_options=options, zarr_format=2, consolidated=consolidated)
    with xr.open_zarr(url, storage_options=other, consolidated=consolidated) as found:
        xr.testing.assert_identical(found.load(), dataset)


def test_xarray_writes_regions(dataset, options, other):
    url, dataset = "unisono://xarray/regions", dataset[["temperature"]].drop_vars(["x", "y"])
    layout = {"storage_options": options, "zarr_format": 3, "consolidated": False}
    dataset.chunk(time=16).to_zarr(url, compute=False, encoding=ENCODING, **layout)
    # Not in the order of the regions.
    for start in (32, 0, 16):
        region = {"time": slice(start, start + 16)}
        dataset.isel(region).to_zarr(url, region=region, **layout)
    changed = dataset.isel(time=slice(16, 32), y=slice(0, 256)) * 2
    changed.drop_vars("time").to_zarr(url, region={"time": slice(16, 32), "y": slice(0, 256)}, **layout)
    changed = changed.assign_coords(time=dataset.time[16:32])
    expected = xr.concat([dataset[{"time": slice(0, 16)}], changed, dataset[{"time": slice(32, 48)}]], "time")
    with xr.open_zarr(url, storage_options=other, consolidated=False) as found:
        xr.testing.assert_equal(found.load(), expected)


def test_xarray_appends_along_a_dimension(dataset, options, other):
    url, layout = "unisono://xarray/appended", {"storage_options": options, "consolidated": False}
    dataset = dataset[["temperature"]]
    # The second part begins within a shard.
    dataset.isel(time=slice(0, 24)).to_zarr(url, zarr_format=3, encoding=ENCODING, **layout)
    dataset.isel(time=slice(24, 48)).to_zarr(url, append_dim="time", **layout)
    with xr.open_zarr(url, storage_options=other, consolidated=False) as found:
        xr.testing.assert_identical(found.load(), dataset)


def test_xarray_replaces_a_zarr_only_if_asked(dataset, options, other):
    url, layout = "unisono://xarray/replaced", {"storage_options": options, "consolidated": False}
    dataset.to_zarr(url, **layout)
    with pytest.raises(FileExistsError):
        dataset.to_zarr(url, **layout)
    dataset[["mask"]].to_zarr(url, mode="w", **layout)
    with xr.open_zarr(url, storage_options=other, consolidated=False) as found:
        xr.testing.assert_identical(found.load(), dataset[["mask"]])


def test_xarray_reads_one_group_of_a_tree(dataset, options, other):
    url, layout = "unisono://xarray/tree", {"storage_options": options, "consolidated": False}
    tree = xr.DataTree.from_dict({"/": dataset[["mask"]], "/warm/days": dataset[["temperature"]].isel(time=[0, 1])})
    tree.to_zarr(url, **layout)
    with xr.open_datatree(url, engine="zarr", **layout | {"storage_options": other}) as found:
        xr.testing.assert_identical(found.load(), tree)
    with xr.open_zarr(url, group="warm/days", storage_options=other, consolidated=False) as found:
        xr.testing.assert_identical(found.load(), tree["warm/days"].to_dataset(inherit=False))


def test_xarray_says_that_a_zarr_is_missing(options):
    with pytest.raises(FileNotFoundError):
        xr.open_zarr("unisono://xarray/missing", storage_options=options, consolidated=False)
