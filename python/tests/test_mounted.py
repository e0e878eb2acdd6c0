"""Proves: a path below a mount of an instance stands for that instance, and for the name of the file in it."""

import os
import pathlib
import subprocess

import fsspec
import numpy as np
import pytest

import unisono
from unisono import errors


def _command(*words):
    subprocess.run(["unisono", *words], check=True, env={**os.environ, "UNISONO_ALLOW_ROOT": "true"}, capture_output=True)


@pytest.fixture
def mount(own_instance, tmp_path):
    """Mount an instance that is not the default one; return the directory."""
    point = (tmp_path / "mount").resolve()
    point.mkdir()
    _command("mount", "--instance", own_instance, str(point))
    try:
        yield point
    finally:
        _command("unmount", "--lazy", str(point))


def test_a_path_below_a_mount_has_an_instance_and_a_name(mount, own_instance, tmp_path):
    unisono.connect(own_instance).make_directory("dir")
    for path, name in [("", ""), ("dir", "dir"), ("dir/../new", "new"), ("dir/new", "dir/new"), ("none/new", "none/new")]:
        assert unisono.mounted(mount / path) == (own_instance, name)
    (tmp_path / "link").symlink_to(mount / "dir/target")
    assert unisono.mounted(tmp_path / "link") == (own_instance, "dir/target")
    assert unisono.mounted(tmp_path / "file") is None and unisono.mounted("") is None


def test_a_mount_stands_for_its_instance(instance, mount, own_instance):
    connection = unisono.connect(mount)
    assert connection is unisono.connect(own_instance) is unisono.connect(f"{mount}/none")
    assert connection.instance == pathlib.Path(own_instance)
    fs = fsspec.filesystem("unisono", instance=str(mount))
    fs.pipe_file("a", b"by fsspec")
    with open(mount / "a", "rb") as file:
        assert file.read() == b"by fsspec"
    assert unisono.connect(own_instance).stat("a")["size"] == 9
    unisono.disconnect(mount)
    assert unisono.connect(own_instance) is not connection


def test_an_array_below_a_mount_is_that_of_its_instance(instance, mount, own_instance):
    values = np.arange(12, dtype="f8").reshape(3, 4)
    path = mount / "array.npy"
    with unisono.open_array(path, "w", shape=values.shape, dtype=values.dtype) as array:
        array.write(values)
    for given in ({"url": str(path)}, {"url": path, "instance": own_instance}, {"url": "array.npy", "instance": mount}):
        with unisono.open_array(**given) as array:
            np.testing.assert_array_equal(array.read(), values)
    np.testing.assert_array_equal(np.load(path), values)
    # It is not a file of the default instance.
    with pytest.raises(errors.NotFoundError):
        unisono.open_array(f"unisono://{path}", instance=instance)
    with pytest.raises(errors.UsageError, match="below a mount of the instance"):
        unisono.open_array(path, instance=instance)


def test_a_word_that_is_no_absolute_path_is_a_name(mount, own_instance, monkeypatch):
    monkeypatch.chdir(mount)
    monkeypatch.setenv("UNISONO_INSTANCE", own_instance)
    unisono.connect().make_directory("dir")
    monkeypatch.chdir(mount / "dir")
    with unisono.open_array("here.npy", "w", shape=(1,), dtype="i1") as array:
        array.write(np.zeros(1, "i1"))
    assert [entry["name"] for entry in unisono.connect().list("")] == ["dir", "here.npy"]
