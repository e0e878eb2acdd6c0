"""Proves: the file system passes the tests of fsspec, and open files behave like those of `io`."""

import multiprocessing
import pickle
import subprocess
import threading

import fsspec
import numpy as np
import pytest
from fsspec.tests.abstract import AbstractCopyTests, AbstractFixtures, AbstractGetTests, AbstractPutTests
from fsspec.tests.abstract import AbstractOpenTests, AbstractPipeTests

import unisono
from unisono import errors
from unisono.fs import UnisonoFileSystem


class Fixtures(AbstractFixtures):
    """Fixtures that the tests of fsspec need."""

    @pytest.fixture(scope="class")
    @classmethod
    def fs(cls, instance):
        return UnisonoFileSystem(instance=instance)

    @pytest.fixture
    def fs_path(self):
        return "abstract"

    @pytest.fixture
    def fs_join(self):
        return lambda *parts: "/".join(parts)


class TestCopy(AbstractCopyTests, Fixtures):
    """Copies."""


class TestGet(AbstractGetTests, Fixtures):
    """Copies out."""


class TestPut(AbstractPutTests, Fixtures):
    """Copies in."""


class TestOpen(AbstractOpenTests, Fixtures):
    """Opening."""


class TestPipe(AbstractPipeTests, Fixtures):
    """Writing of whole files."""


def test_the_protocol_is_known(instance):
    with fsspec.open("unisono://known", "wb") as file:
        file.write(b"known")
    assert fsspec.open("unisono://known").open().read() == b"known"
    assert fsspec.open("unisono:///known", "rt").open().read() == "known"


def test_every_spelling_of_a_name_is_the_same_file(fs, connection, instance):
    """The file system, connections, arrays and the command read a name in the same way."""
    fs.makedirs("spelt/x/..//y")
    fs.pipe_file("./spelt//f", b"\x07")
    for word in ("spelt/f", "/spelt/./f/", "../spelt/f", "spelt/none/../f", "unisono:spelt/f", "unisono://./spelt//f"):
        assert fs.cat_file(word) == b"\x07"
        assert fs.info(word)["name"] == "spelt/f"
        assert connection.open(word).name == "spelt/f"
        command = ["unisono", "cat", "--instance", instance, word]
        assert subprocess.run(command, check=True, capture_output=True).stdout == b"\x07"
    with unisono.open_array("unisono:./spelt//array", "w", shape=(3,), dtype="u1"):
        pass
    with unisono.open_array("/spelt/y/../array") as array:
        assert array.shape == (3,)
    fs.rm("spelt/array")
    assert fs.exists("unisono:") and fs.isdir("spelt/../..")
    connection.rename("unisono://spelt/f", "spelt/./g", replace=False)
    connection.remove("spelt//g")
    assert fs.ls("unisono:./spelt", detail=False) == ["spelt/y"]
    fs.rm("/spelt/", recursive=True)


def test_files_in_every_mode(fs):
    with fs.open("modes", "wb") as file:
        file.write(b"0123456789")
        assert file.tell() == 10
    with fs.open("modes", "ab") as file:
        file.write(b"ab")
    with fs.open("modes", "r+b") as file:
        file.seek(3)
        file.write(b"xyz")
        file.seek(-4, 2)
        assert file.read(2) == b"89"
    with fs.open("modes", "rb") as file:
        assert file.read() == b"012xyz6789ab"
        assert file.size == 12
    with fs.open("modes", "rt") as text:
        assert text.readline() == "012xyz6789ab"
    with pytest.raises(FileExistsError):
        fs.open("modes", "xb")
    with pytest.raises(ValueError):
        fs.open("modes", "q")
    with pytest.raises(FileNotFoundError):
        fs.open("no-such-file", "rb")


def test_modes_are_kept_for_any_amount(fs):
    fs.pipe_file("mode", b"kept" * 500_000)
    with fs.open("mode", "rb") as file:
        for data in (b"x", bytes(2_000_000)):
            with pytest.raises(OSError):
                file.write(data)
    assert fs.cat_file("mode") == b"kept" * 500_000
    with fs.open("mode", "ab") as file:
        for read in (lambda: file.read(1), file.read, lambda: file.readinto(bytearray(2_000_000))):
            with pytest.raises(OSError):
                read()
    dates = np.arange(200_000).astype("M8[s]")
    fs.pipe_file("dates", dates)
    found = np.zeros_like(dates)
    with fs.open("dates") as file:
        assert file.readinto(found) == dates.nbytes and (found == dates).all()


def test_files_that_are_updated_keep_their_position(fs):
    data = bytearray(range(256)) * 20_000
    fs.pipe_file("updated", data)
    with fs.open("updated", "r+b") as file:
        assert file.read(10) == data[:10]
        assert file.write(b"y" * 2_000_000) == 2_000_000
        data[10:2_000_010] = b"y" * 2_000_000
        assert file.tell() == 2_000_010 and file.read(5) == data[2_000_010:2_000_015]
        file.write(b"z")
        data[2_000_015:2_000_016] = b"z"
        into = bytearray(1_500_000)
        assert file.readinto(into) == len(into) and into == data[2_000_016:3_500_016]
        assert file.read(7) == data[3_500_016:3_500_023]
        assert file.read() == data[3_500_023:] and file.read() == b""
    assert fs.cat_file("updated") == data


def test_large_writes_go_through_unchanged(fs):
    data = bytes(range(256)) * 40_000
    with fs.open("large/one", "wb") as file:
        file.write(data)
    assert fs.cat_file("large/one") == data
    assert fs.cat_file("large/one", 1000, -1000) == data[1000:-1000]
    with fs.open("large/one") as file:
        assert file.read(3) == data[:3]
        into = bytearray(5_000_000)
        assert file.readinto(into) == len(into)
        assert into == data[3 : 3 + len(into)]


def test_transactions_appear_whole(fs):
    with fs.transaction:
        with fs.open("transaction/file", "wb") as file:
            file.write(b"whole")
        assert not fs.exists("transaction/file")
    assert fs.cat_file("transaction/file") == b"whole"
    with pytest.raises(RuntimeError), fs.transaction:
        with fs.open("transaction/other", "wb") as file:
            file.write(b"never")
        raise RuntimeError
    assert not fs.exists("transaction/other")
    assert [name.rsplit("/", 1)[-1] for name in fs.ls("transaction", detail=False)] == ["file"]


def _read(fs):
    return fs.cat_file("shared")


def test_it_is_pickled_and_used_after_a_fork(fs):
    fs.pipe_file("shared", b"shared")
    assert pickle.loads(pickle.dumps(fs)).cat_file("shared") == b"shared"
    with fs.open("shared") as file:
        file.seek(2)
        assert pickle.loads(pickle.dumps(file)).read() == b"ared"
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(_read, [fs] * 4) == [b"shared"] * 4


def test_what_cannot_be_written_leaves_the_file_alone(fs):
    fs.pipe_file("precious", b"precious")
    for wrong in ("text", np.arange(9)[::2], np.array([object()])):
        with pytest.raises((TypeError, ValueError)):
            fs.pipe_file("precious", wrong)
    for other in ("precious", "/precious/"):
        with pytest.raises(errors.UsageError, match="same file"):
            fs.cp_file("precious", other)
    assert fs.cat_file("precious") == b"precious"


def _child(fs):
    assert fs.cat_file("precious") == b"precious"


def test_children_of_a_busy_process_work(fs):
    fs.pipe_file("precious", b"precious")
    stop, context = threading.Event(), multiprocessing.get_context("fork")

    def work():
        while not stop.is_set():
            fs.cat_file("precious")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = context.Process(target=_child, args=(fs,))
            child.start()
            child.join(30)
            assert child.exitcode == 0
    finally:
        stop.set()
