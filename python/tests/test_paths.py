"""Proves: paths of universal_pathlib name files of an instance, and each character of a name is itself."""

import itertools
import pickle
import subprocess
import sys
import warnings

import fsspec
import numpy as np
import pytest
from upath import UPath
from upath.registry import available_implementations

from unisono.paths import UnisonoPath

_numbers = itertools.count()


@pytest.fixture
def folder(instance):
    """Make a directory for one test."""
    made = UPath(f"unisono://paths/{next(_numbers)}", instance=instance)
    made.mkdir(parents=True)
    return made


@pytest.fixture
def tree(folder):
    """Make some files and directories."""
    (folder / "empty").mkdir()
    for name in ("a.txt", "b.csv", "deep/c.txt", "deep/er/d.txt"):
        folder.joinpath(name).write_text(name)
    return folder


def names(folder, paths):
    return sorted(str(path.relative_to(folder)) for path in paths)


# ---- Names ----------------------------------------------------------------------------------------


def test_the_protocol_is_registered(instance):
    assert "unisono" in available_implementations()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = UPath("unisono://dir/a.txt", instance=instance)
    assert type(path) is UnisonoPath
    assert path.fs is fsspec.filesystem("unisono", instance=instance)


def test_a_new_process_makes_paths_without_a_warning():
    program = (
        "from upath import UPath\n"
        "path = UPath('unisono://dir/a.txt')\n"
        "print(type(path).__name__, path.relative_to(UPath('unisono://dir')), path.parent.parent.path == '')\n"
    )
    command = [sys.executable, "-W", "error::UserWarning", "-c", program]
    found = subprocess.run(command, capture_output=True, check=True, text=True)
    assert found.stdout.split() == ["UnisonoPath", "a.txt", "True"]


def test_a_path_has_the_parts_of_its_name(instance):
    path = UPath("unisono://dir/sub/a.tar.gz", instance=instance)
    assert (path.name, path.stem, path.suffix, path.suffixes) == ("a.tar.gz", "a.tar", ".gz", [".tar", ".gz"])
    assert (path.path, str(path), path.as_uri()) == ("dir/sub/a.tar.gz",) + ("unisono://dir/sub/a.tar.gz",) * 2
    assert path.parts[1:] == ("dir", "sub", "a.tar.gz")
    assert path.with_segments(*path.parts) == path
    assert [parent.path for parent in path.parents] == ["dir/sub", "dir", ""]
    assert path.is_absolute()


def test_paths_are_joined_and_compared(instance):
    root = UPath("unisono://", instance=instance)
    path = root / "dir" / "a.txt"
    assert path == root.joinpath("dir", "a.txt") == UPath("unisono:///dir/a.txt", instance=instance)
    assert path != UPath("unisono://dir/a.txt", instance="/elsewhere")
    assert (path.with_name("b"), path.with_suffix(".csv")) == (root / "dir/b", root / "dir/a.csv")
    assert path.parent.parent == root == root.parent
    assert str(path.relative_to(root / "dir")) == "a.txt" and path.is_relative_to(root)
    assert (root / "dir/../x/./y").resolve() == root / "x/y"
    assert sorted([root / "b", root / "a"]) == [root / "a", root / "b"]
    assert len({path, root / "dir/a.txt"}) == 1
    with pytest.raises(ValueError, match="is not in the subpath"):
        path.relative_to(root / "other")


def test_a_pickled_path_names_the_same_file(tree):
    again = pickle.loads(pickle.dumps(tree / "a.txt"))
    assert again == tree / "a.txt" and type(again) is UnisonoPath
    assert again.read_text() == "a.txt"


# ---- Content --------------------------------------------------------------------------------------


def test_text_and_bytes_are_read_back(folder):
    data = np.random.default_rng(10).bytes(5 * 2**20 + 7)
    assert (folder / "bytes").write_bytes(data) == len(data)
    assert (folder / "bytes").read_bytes() == data
    text = "α\nβ\r\n" * 500_000
    (folder / "text").write_text(text, encoding="utf-16", newline="")
    assert (folder / "text").open(encoding="utf-16", newline="").read() == text


def test_a_path_is_opened_in_each_mode(folder):
    path = folder / "new" / "file"
    with path.open("x") as file:
        file.write("first\n")
    with path.open("a") as file:
        file.write("second\n")
    with path.open("r+b") as file:
        file.seek(3)
        file.write(b"ST")
    with path.open() as file:
        assert list(file) == ["firST\n", "second\n"]
    with pytest.raises(FileExistsError):
        path.open("x")
    with path.open("w"):
        pass
    assert path.stat().st_size == 0


def test_a_file_system_takes_paths(folder):
    (folder / "bytes").write_bytes(b"0123456789")
    assert folder.fs.cat_file(folder / "bytes", 2, 5) == b"234"
    with folder.fs.open(folder / "bytes") as file:
        assert file.read() == b"0123456789"


def test_numpy_loads_from_a_path_what_it_saved(folder):
    values = np.random.default_rng(11).standard_normal(10**6)
    with (folder / "array.npy").open("wb") as file:
        np.save(file, values)
    with (folder / "array.npy").open("rb") as file:
        np.testing.assert_array_equal(np.load(file), values)


# ---- Directories ----------------------------------------------------------------------------------


def test_a_directory_is_listed(tree):
    assert names(tree, tree.iterdir()) == ["a.txt", "b.csv", "deep", "empty"]
    assert names(tree, tree.glob("*.txt")) == ["a.txt"]
    assert names(tree, tree.glob("*/*.txt")) == ["deep/c.txt"]
    assert names(tree, tree.glob("**/*.txt")) == names(tree, tree.rglob("*.txt"))
    assert names(tree, tree.rglob("*.txt")) == ["a.txt", "deep/c.txt", "deep/er/d.txt"]
    found = [(names(tree, [path]), sorted(directories), sorted(files)) for path, directories, files in tree.walk()]
    assert found == [
        (["."], ["deep", "empty"], ["a.txt", "b.csv"]),
        (["deep"], ["er"], ["c.txt"]),
        (["deep/er"], [], ["d.txt"]),
        (["empty"], [], []),
    ]
    with pytest.raises(NotADirectoryError):
        list((tree / "a.txt").iterdir())


def test_a_directory_is_made(folder):
    with pytest.raises(FileNotFoundError):
        (folder / "x" / "y").mkdir()
    (folder / "x" / "y").mkdir(parents=True)
    (folder / "x" / "y").mkdir(exist_ok=True)
    for again in ({}, {"parents": True}):
        with pytest.raises(FileExistsError):
            (folder / "x" / "y").mkdir(**again)
    (folder / "file").touch()
    with pytest.raises(FileExistsError):
        (folder / "file").mkdir(exist_ok=True)
    with pytest.raises(NotADirectoryError):
        (folder / "file" / "below").mkdir()


def test_a_directory_is_removed(tree):
    (tree / "empty").rmdir(recursive=False)
    with pytest.raises(OSError, match="not empty"):
        (tree / "deep").rmdir(recursive=False)
    (tree / "deep").rmdir()
    assert names(tree, tree.rglob("*")) == ["a.txt", "b.csv"]
    for recursive in (False, True):
        with pytest.raises(NotADirectoryError):
            (tree / "a.txt").rmdir(recursive=recursive)
        with pytest.raises((NotADirectoryError, FileNotFoundError)):
            (tree / "none").rmdir(recursive=recursive)


# ---- Files ----------------------------------------------------------------------------------------


def test_a_path_knows_what_it_names(tree):
    states = [(path.exists(), path.is_file(), path.is_dir()) for path in (tree / "a.txt", tree / "deep", tree / "none")]
    assert states == [(True, True, False), (True, False, True), (False, False, False)]
    assert not (tree / "a.txt" / "below").exists()
    assert not UPath("unisono://a//b", **tree.storage_options).exists()
    stat = (tree / "deep/c.txt").stat()
    assert stat.st_size == 10 and stat.st_birthtime == (tree / "deep/c.txt").fs.info(tree / "deep/c.txt")["created"]
    with pytest.raises(FileNotFoundError):
        (tree / "none").stat()
    with pytest.raises(FileNotFoundError):
        (tree / "none").read_text()


def test_a_file_is_touched_and_removed(folder):
    path = folder / "touched"
    path.touch()
    path.write_text("kept")
    path.touch()
    assert path.read_text() == "kept"
    with pytest.raises(FileExistsError):
        path.touch(exist_ok=False)
    path.unlink()
    assert not path.exists()
    path.unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError):
        path.unlink()
    with pytest.raises(IsADirectoryError):
        folder.unlink()


def test_files_and_directories_are_renamed(tree):
    renamed = (tree / "a.txt").rename(tree / "deep" / "renamed")
    assert renamed == tree / "deep/renamed" and renamed.read_text() == "a.txt"
    assert (tree / "b.csv").rename(f"{tree}/c.csv") == tree / "c.csv"
    assert (tree / "deep").rename(tree / "moved") == tree / "moved"
    assert names(tree, tree.rglob("*.*")) == ["c.csv", "moved/c.txt", "moved/er/d.txt"]
    with pytest.raises(FileNotFoundError):
        (tree / "none").rename(tree / "other")


def test_a_file_takes_the_place_of_another(tree):
    assert (tree / "a.txt").replace(tree / "b.csv") == tree / "b.csv"
    assert (tree / "b.csv").read_text() == "a.txt" and not (tree / "a.txt").exists()


def test_files_and_directories_are_copied_and_moved(tree, tmp_path):
    copied = (tree / "deep").copy(tree / "copied")
    assert (copied / "er/d.txt").read_text() == "deep/er/d.txt"
    moved = (tree / "a.txt").move(tree / "moved.txt")
    assert moved.read_text() == "a.txt" and not (tree / "a.txt").exists()
    (tree / "deep").copy(UPath(tmp_path / "outside"))
    assert (tmp_path / "outside/er/d.txt").read_text() == "deep/er/d.txt"
    UPath(tmp_path / "outside").copy(tree / "inside")
    assert (tree / "inside/er/d.txt").read_text() == "deep/er/d.txt"


@pytest.mark.parametrize("name", ["a*", "a[1]", "a?", "ü ö", "a#b%20", "{a,b}", ".hidden", "a\\b", "=a&b+c"])
def test_each_character_of_a_name_is_itself(folder, name):
    other = folder / "ab"
    other.write_text("other")
    (folder / "dir" / name).mkdir(parents=True)
    (folder / name).write_text(name)
    (folder / "dir" / name / "file").write_text(name)
    (folder / "dir" / "ab").mkdir()
    assert (folder / name).read_text() == (folder / "dir" / name / "file").read_text() == name
    assert names(folder, folder.iterdir()) == sorted(["ab", "dir", name])
    (folder / name).unlink()
    (folder / "dir" / name).rmdir()
    assert names(folder, folder.rglob("*")) == ["ab", "dir", "dir/ab"]
