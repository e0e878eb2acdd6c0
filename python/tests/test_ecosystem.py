"""Proves: NumPy, pandas, pyarrow, h5py and xarray's netCDF engine write files of an instance and read them unchanged.

What one connection writes is read by another. The files have several blocks of 1 MiB.
"""

import subprocess
import sys
import zlib

import fsspec
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.fs
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
import xarray as xr

MIB = 2**20


@pytest.fixture(scope="module")
def other_fs(fs, other):
    made = fsspec.filesystem("unisono", **other)
    assert made._connection is not fs._connection
    return made


# ---- NumPy ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(1).standard_normal((1200, 1100))


@pytest.mark.parametrize("order", ["C", "F"])
def test_numpy_loads_what_it_saved(values, order, options, other):
    values = np.asarray(values, order=order)
    with fsspec.open(f"unisono://numpy/{order}.npy", "wb", **options) as file:
        np.save(file, values)
    with fsspec.open(f"unisono://numpy/{order}.npy", "rb", **other) as file:
        found = np.load(file)
    assert found.flags[f"{order}_CONTIGUOUS"]
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_numpy_loads_one_array_of_an_archive(values, save, fs, other_fs):
    with fs.open("numpy/archive.npz", "wb") as file:
        save(file, values=values, count=np.arange(300_000), text=np.array(["α", "beta"]))
    with other_fs.open("numpy/archive.npz") as file, np.load(file) as archive:
        assert sorted(archive.files) == ["count", "text", "values"]
        np.testing.assert_array_equal(archive["count"], np.arange(300_000))
        np.testing.assert_array_equal(archive["values"], values)
        assert archive["text"].tolist() == ["α", "beta"]


def test_memory_of_numpy_is_written_and_read_without_a_format(values, fs, other_fs):
    with fs.open("numpy/raw", "wb") as file:
        assert file.write(values) == values.nbytes
    with other_fs.open("numpy/raw") as file:
        found = np.empty_like(values)
        assert file.readinto(found) == values.nbytes
        assert file.readinto(bytearray(8)) == 0
    np.testing.assert_array_equal(found, values)
    row = values[7].nbytes
    part = other_fs.cat_file("numpy/raw", 7 * row, 9 * row)
    np.testing.assert_array_equal(np.frombuffer(part).reshape(2, -1), values[7:9])


def test_numpy_reads_text(values, fs, other_fs):
    with fs.open("numpy/text", "wt") as file:
        np.savetxt(file, values[:40])
    with other_fs.open("numpy/text", "rt") as file:
        np.testing.assert_array_equal(np.loadtxt(file), values[:40])


def test_another_process_reads_what_this_one_saved(values, fs, instance):
    with fs.open("numpy/process.npy", "wb") as file:
        np.save(file, values)
    program = (
        "import fsspec, numpy, sys, zlib\n"
        "with fsspec.open('unisono://numpy/process.npy', instance=sys.argv[1]) as file:\n"
        "    print(zlib.crc32(numpy.load(file)))\n"
    )
    found = subprocess.run([sys.executable, "-c", program, instance], capture_output=True, check=True, text=True)
    assert int(found.stdout) == zlib.crc32(values)


# ---- pandas ---------------------------------------------------------------------------------------


def assert_same(found, expected):
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


@pytest.fixture(scope="module")
def frame():
    generator = np.random.default_rng(2)
    rows = 120_000
    return pd.DataFrame(
        {
            "time": pd.date_range("2024-01-01", periods=rows, freq="s"),
            "station": pd.Categorical.from_codes(generator.integers(0, 3, rows), ["alpha", "beta", "gamma"]),
            "count": generator.integers(-(2**40), 2**40, rows),
            "value": np.where(generator.random(rows) < 0.01, np.nan, generator.standard_normal(rows)),
            "note": pd.Series(generator.integers(0, 10**6, rows)).astype(str) + " ü, \"q\"\n",
        }
    )


def test_pandas_reads_the_parquet_file_that_it_wrote(frame, options, other, fs):
    frame.to_parquet("unisono://pandas/frame.parquet", storage_options=options, row_group_size=20_000)
    assert fs.size("pandas/frame.parquet") > 2 * MIB
    found = pd.read_parquet("unisono://pandas/frame.parquet", storage_options=other)
    assert_same(found, frame)


def test_pandas_reads_columns_and_rows_of_a_parquet_file(frame, options, other):
    frame.to_parquet("unisono://pandas/part.parquet", storage_options=options, row_group_size=20_000)
    found = pd.read_parquet(
        "unisono://pandas/part.parquet",
        columns=["count", "station"],
        filters=[("station", "==", "beta"), ("count", ">", 0)],
        storage_options=other,
    )
    expected = frame[(frame.station == "beta") & (frame["count"] > 0)][["count", "station"]].reset_index(drop=True)
    assert 0 < len(expected) < len(frame)
    assert_same(found, expected)


def test_pandas_reads_a_partitioned_parquet_directory(frame, options, other, fs):
    url = "unisono://pandas/partitioned"
    frame.to_parquet(url, storage_options=options, partition_cols=["station"])
    assert len(fs.ls("pandas/partitioned")) == 3
    found = pd.read_parquet(url, filters=[("station", "==", "gamma")], storage_options=other)
    expected = frame[frame.station == "gamma"].reset_index(drop=True)
    assert_same(found[expected.columns.drop("station")], expected.drop(columns="station"))


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.bz2", "csv.zip", "csv.xz"])
def test_pandas_reads_the_csv_file_that_it_wrote(frame, ending, options, other, fs):
    frame = frame[: 120_000 if ending == "csv" else 15_000]
    url = f"unisono://pandas/frame.{ending}"
    frame.to_csv(url, index=False, storage_options=options)
    if ending == "csv":
        assert fs.size("pandas/frame.csv") > 5 * MIB
    found = pd.read_csv(url, parse_dates=["time"], dtype={"station": frame.station.dtype}, storage_options=other)
    assert_same(found, frame)


def test_pandas_reads_a_csv_file_in_pieces(frame, options, other):
    frame.to_csv("unisono://pandas/pieces.csv", index=False, columns=["count", "value"], storage_options=options)
    with pd.read_csv("unisono://pandas/pieces.csv", chunksize=50_000, storage_options=other) as pieces:
        found = list(pieces)
    assert [len(piece) for piece in found] == [50_000, 50_000, 20_000]
    assert_same(pd.concat(found), frame[["count", "value"]])


def test_pandas_appends_to_a_csv_file(frame, options, other):
    url = "unisono://pandas/appended.csv"
    half = len(frame) // 2
    columns = ["count", "value"]
    frame[:half].to_csv(url, index=False, columns=columns, storage_options=options)
    frame[half:].to_csv(url, index=False, columns=columns, header=False, mode="a", storage_options=options)
    found = pd.read_csv(url, storage_options=other)
    assert_same(found, frame[columns])


@pytest.mark.parametrize("write, read", [("to_json", "read_json"), ("to_pickle", "read_pickle")])
def test_pandas_reads_other_formats_that_it_wrote(frame, write, read, options, other):
    frame = frame[["count", "note"]]
    url = f"unisono://pandas/{write}"
    getattr(frame, write)(url, storage_options=options)
    assert_same(getattr(pd, read)(url, storage_options=other), frame)


def test_pandas_says_that_a_file_is_missing(options):
    for read in (pd.read_parquet, pd.read_csv, pd.read_json, pd.read_pickle):
        with pytest.raises(FileNotFoundError):
            read("unisono://pandas/missing", storage_options=options)


# ---- pyarrow --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    generator = np.random.default_rng(3)
    rows = 300_000
    return pa.table(
        {
            "id": np.arange(rows),
            "year": generator.integers(2020, 2024, rows),
            "month": generator.integers(1, 4, rows),
            "value": generator.standard_normal(rows),
            "words": pa.array(["x" * (number % 17) for number in range(rows)]),
        }
    )


def wrapped(*systems):
    return [pa.fs.PyFileSystem(pa.fs.FSSpecHandler(one)) for one in systems]


@pytest.fixture(params=["handler", "fsspec"])
def arrow(request, fs, other_fs):
    """Give file systems to write and to read with: wrapped for pyarrow, or as they are."""
    if request.param == "fsspec":
        return fs, other_fs
    return wrapped(fs, other_fs)


def test_a_partitioned_dataset_of_pyarrow_is_read_with_filters(table, arrow, fs):
    write, read = arrow
    folder = f"arrow/{type(write).__name__}"
    scheme = pa.dataset.partitioning(pa.schema([("year", pa.int64()), ("month", pa.int64())]), flavor="hive")
    pa.dataset.write_dataset(table, folder, format="parquet", partitioning=scheme, filesystem=write)
    assert len(fs.glob(f"{folder}/year=*/month=*/*.parquet")) == 12
    found = pa.dataset.dataset(folder, format="parquet", partitioning=scheme, filesystem=read)
    assert found.to_table().sort_by("id").select(table.column_names) == table
    filter = (pa.dataset.field("year") == 2021) & (pa.dataset.field("value") > 1.5)
    part = found.to_table(columns=["id", "words"], filter=filter).sort_by("id")
    assert 0 < len(part) < len(table) / 10
    assert part == table.filter(filter).select(["id", "words"])


def test_a_dataset_of_pyarrow_is_written_over(table, arrow, fs):
    write, read = arrow
    folder = f"arrow/over-{type(write).__name__}"
    for part in (table, table[:1000]):
        pa.dataset.write_dataset(
            part, folder, format="feather", filesystem=write, existing_data_behavior="delete_matching",
            partitioning=["month"],
        )
    assert pa.dataset.dataset(folder, format="feather", filesystem=read).count_rows() == 1000


def test_pyarrow_reads_columns_and_row_groups_of_a_parquet_file(table, fs, other_fs):
    with fs.open("arrow/file.parquet", "wb") as file:
        pq.write_table(table, file, row_group_size=100_000)
    with other_fs.open("arrow/file.parquet") as opened, pq.ParquetFile(opened) as file:
        assert file.num_row_groups == 3
        assert file.read() == table
        assert file.read(["id", "value"]) == table.select(["id", "value"])
        assert file.read_row_group(1, columns=["words"]) == table[100_000:200_000].select(["words"])
    found = pq.read_table("arrow/file.parquet", filesystem=other_fs, pre_buffer=True)
    assert found == table


def test_pyarrow_reads_an_ipc_file_by_batches(table, fs, other_fs):
    write, read = wrapped(fs, other_fs)
    with write.open_output_stream("arrow/file.arrow") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=64_000)
    with read.open_input_file("arrow/file.arrow") as source:
        assert source.size() == source.seek(0, 2) > 10 * MIB
        file = pa.ipc.open_file(source)
        assert pa.Table.from_batches([file.get_batch(3)]) == table[192_000:256_000]
        assert file.read_all() == table


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_pyarrow_reads_a_feather_file(table, compression, fs, other_fs):
    with fs.open("arrow/file.feather", "wb") as file:
        pa.feather.write_feather(table, file, compression=compression)
    with other_fs.open("arrow/file.feather") as file:
        assert pa.feather.read_table(file, columns=["id", "words"]) == table.select(["id", "words"])


def test_pyarrow_reads_a_stream(table, fs, other_fs):
    write, read = wrapped(fs, other_fs)
    with write.open_output_stream("arrow/file.csv.gz") as sink:
        pa.csv.write_csv(table.select(["id", "value"]), sink)
    with read.open_input_stream("arrow/file.csv.gz") as source:
        assert pa.csv.read_csv(source) == table.select(["id", "value"])


def test_pyarrow_lists_moves_copies_and_deletes(fs):
    [arrow] = wrapped(fs)
    arrow.create_dir("arrow/tree/a/b", recursive=True)
    fs.pipe_file("arrow/tree/a/file", b"x" * 3 * MIB)
    [info] = arrow.get_file_info(["arrow/tree/a/file"])
    assert (info.type, info.size) == (pa.fs.FileType.File, 3 * MIB)
    assert arrow.get_file_info("arrow/tree/none").type == pa.fs.FileType.NotFound
    found = arrow.get_file_info(pa.fs.FileSelector("arrow/tree", recursive=True))
    assert sorted(one.path for one in found) == ["arrow/tree/a", "arrow/tree/a/b", "arrow/tree/a/file"]
    arrow.copy_file("arrow/tree/a/file", "arrow/tree/copy")
    arrow.move("arrow/tree/a/file", "arrow/tree/moved")
    assert fs.cat_file("arrow/tree/copy") == fs.cat_file("arrow/tree/moved") == b"x" * 3 * MIB
    arrow.delete_file("arrow/tree/copy")
    arrow.delete_dir_contents("arrow/tree")
    assert fs.ls("arrow/tree") == []
    arrow.delete_dir("arrow/tree")
    assert not fs.exists("arrow/tree")


def test_pyarrow_says_that_a_file_is_missing(arrow, other_fs):
    read = arrow[1]
    with pytest.raises(FileNotFoundError):
        pa.dataset.dataset("arrow/missing", format="parquet", filesystem=read)
    with pytest.raises(FileNotFoundError):
        pq.read_table("arrow/missing", filesystem=read)
    with pytest.raises(FileNotFoundError):
        wrapped(other_fs)[0].open_input_file("arrow/missing")


# ---- h5py -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cube():
    return np.random.default_rng(4).integers(0, 1000, (30, 300, 200)).astype("f4")


def test_h5py_reads_parts_of_a_chunked_and_compressed_dataset(cube, fs, other_fs):
    with fs.open("hdf/new.h5", "w+b") as opened, h5py.File(opened, "w") as file:
        made = file.create_dataset("group/cube", data=cube, chunks=(1, 100, 200), compression="gzip", shuffle=True)
        made.attrs["units"] = "K"
        file["plain"] = np.arange(10**6)
    with other_fs.open("hdf/new.h5") as opened, h5py.File(opened, "r") as file:
        assert file["group/cube"].attrs["units"] == "K"
        np.testing.assert_array_equal(file["group/cube"][7, 20:150:3], cube[7, 20:150:3])
        np.testing.assert_array_equal(file["group/cube"][:, 5, 7], cube[:, 5, 7])
        np.testing.assert_array_equal(file["group/cube"][()], cube)
        np.testing.assert_array_equal(file["plain"][-1000:], np.arange(10**6 - 1000, 10**6))


def test_h5py_changes_and_extends_a_file(cube, fs, other_fs):
    with fs.open("hdf/changed.h5", "w+b") as opened, h5py.File(opened, "w") as file:
        file.create_dataset("cube", data=cube[:20], chunks=(5, 300, 200), maxshape=(None, 300, 200))
    with fs.open("hdf/changed.h5", "r+b") as opened, h5py.File(opened, "r+") as file:
        file["cube"].resize(30, axis=0)
        file["cube"][20:] = cube[20:]
        file["cube"][3, 10:20] = -1
        file["more"] = cube[0]
    expected = cube.copy()
    expected[3, 10:20] = -1
    with other_fs.open("hdf/changed.h5") as opened, h5py.File(opened) as file:
        np.testing.assert_array_equal(file["cube"][()], expected)
        np.testing.assert_array_equal(file["more"][()], cube[0])


def test_h5py_makes_a_file_anew_over_a_longer_one(cube, fs, other_fs):
    for data in (cube, cube[0]):
        with fs.open("hdf/shorter.h5", "w+b") as opened, h5py.File(opened, "w") as file:
            file["data"] = data
    assert cube[0].nbytes < other_fs.size("hdf/shorter.h5") < cube.nbytes / 10
    with other_fs.open("hdf/shorter.h5") as opened, h5py.File(opened) as file:
        np.testing.assert_array_equal(file["data"][()], cube[0])


def test_h5py_says_that_a_file_is_no_hdf5_file(fs):
    fs.pipe_file("hdf/text", b"text" * MIB)
    with fs.open("hdf/text") as opened, pytest.raises(OSError, match="signature"):
        h5py.File(opened, "r")
    with pytest.raises(FileNotFoundError):
        fs.open("hdf/missing", "r+b")


# ---- netCDF by h5netcdf ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dataset(cube):
    return xr.Dataset(
        {"temperature": (("time", "y", "x"), cube, {"units": "K"}), "mask": (("y", "x"), cube[0] > 500)},
        coords={"time": pd.date_range("2024-01-01", periods=len(cube), unit="ns"), "x": np.linspace(0, 1, 200)},
        attrs={"title": "of a test"},
    )


def test_xarray_reads_parts_of_the_netcdf_file_that_it_wrote(dataset, fs, other_fs):
    encoding = {"temperature": {"chunksizes": (5, 100, 200), "zlib": True}}
    with fs.open("netcdf/file.nc", "w+b") as file:
        dataset.to_netcdf(file, engine="h5netcdf", encoding=encoding)
    with other_fs.open("netcdf/file.nc") as file, xr.open_dataset(file, engine="h5netcdf") as found:
        part = {"time": slice(3, 9), "x": slice(50, 150)}
        xr.testing.assert_identical(found.isel(part).load(), dataset.isel(part))
        xr.testing.assert_identical(found.load(), dataset)


def test_xarray_opens_a_url_of_a_netcdf_file(dataset, fs, other):
    fs.pipe_file("netcdf/url.nc", dataset.to_netcdf(engine="h5netcdf"))
    found = xr.open_dataset("unisono://netcdf/url.nc", engine="h5netcdf", storage_options=other)
    with found:
        xr.testing.assert_identical(found.load(), dataset)


def test_xarray_joins_the_netcdf_files_of_a_directory(dataset, fs, other_fs):
    for number in range(3):
        part = dataset[["temperature"]].isel(time=slice(10 * number, 10 * number + 10))
        fs.pipe_file(f"netcdf/parts/{number}.nc", part.to_netcdf(engine="h5netcdf"))
    files = [other_fs.open(name) for name in other_fs.glob("netcdf/parts/*.nc")]
    with xr.open_mfdataset(files, engine="h5netcdf") as found:
        xr.testing.assert_identical(found.load(), dataset[["temperature"]])


# ---- Other protocols of fsspec over this one ------------------------------------------------------


@pytest.mark.parametrize("cache", ["simplecache", "filecache"])
def test_a_cache_of_fsspec_reads_the_file(values, cache, fs, other, tmp_path):
    fs.pipe_file("chained/file", values)
    layout = {"unisono": other, cache: {"cache_storage": str(tmp_path)}}
    for _ in range(2):
        with fsspec.open(f"{cache}::unisono://chained/file", **layout) as file:
            assert file.read() == values.tobytes()


def test_a_member_of_a_zip_archive_is_read_and_written(values, options, other):
    for name in ("first", "second"):
        archive = fsspec.filesystem(
            "zip", fo="chained/archive.zip", mode="a", target_protocol="unisono", target_options=options
        )
        with archive.open(name, "wb") as file:
            np.save(file, values)
        archive.close()
    with fsspec.open("zip://first::unisono://chained/archive.zip", unisono=other) as file:
        np.testing.assert_array_equal(np.load(file), values)


# ---- Servers that cannot be reached ---------------------------------------------------------------


@pytest.mark.parametrize("method", ["exists", "isfile", "isdir", "info", "ls", "find", "glob", "cat", "rm", "ukey"])
def test_a_lost_instance_does_not_pass_for_an_empty_one(method, tmp_path):
    lost = fsspec.filesystem("unisono", instance=str(tmp_path / "none"))
    with pytest.raises(ConnectionError):
        getattr(lost, method)("dir/*" if method == "glob" else "dir")


def test_libraries_say_that_an_instance_cannot_be_reached(frame, tmp_path):
    lost = {"instance": str(tmp_path / "none")}
    with pytest.raises(ConnectionError):
        frame.to_parquet("unisono://pandas/lost", storage_options=lost)
    with pytest.raises(ConnectionError):
        pd.read_parquet("unisono://pandas/lost", storage_options=lost)
    with pytest.raises(ConnectionError):
        pa.dataset.dataset("arrow/lost", filesystem=fsspec.filesystem("unisono", **lost))
    with pytest.raises(ConnectionError):
        xr.open_zarr("unisono://xarray/lost", storage_options=lost, consolidated=False)
