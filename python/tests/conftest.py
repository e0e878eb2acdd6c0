"""Instances with two servers, for all tests and for one."""

import contextlib
import os
import subprocess

import fsspec
import pytest


@contextlib.contextmanager
def _running(directory):
    """Start servers; stop those that are left."""
    environment = {**os.environ, "UNISONO_ALLOW_ROOT": "true"}
    command = ["unisono", "start", "--servers", "2", "--instance", str(directory)]
    subprocess.run(command, check=True, env=environment, capture_output=True)
    try:
        yield str(directory)
    finally:
        command = ["unisono", "stop", "--instance", str(directory)]
        subprocess.run(command, check=False, env=environment, capture_output=True)


@pytest.fixture(scope="session")
def instance(tmp_path_factory):
    """Start servers for all tests; return the directory of the instance."""
    with _running(tmp_path_factory.mktemp("unisono") / "instance") as directory:
        os.environ["UNISONO_INSTANCE"] = directory
        os.environ["UNISONO_TIMEOUT"] = "10"
        yield directory


@pytest.fixture
def own_instance(tmp_path):
    """Start servers for one test, which may kill them."""
    with _running(tmp_path / "instance") as directory:
        yield directory


@pytest.fixture
def connection(instance):
    """Connect to the instance."""
    import unisono

    return unisono.connect(instance)


@pytest.fixture(scope="session")
def options(instance):
    """Give the storage options of the file system that writes."""
    return {"instance": instance}


@pytest.fixture(scope="session")
def other(instance):
    """Give the storage options of a file system with a connection of its own, for reading."""
    return {"instance": instance, "timeout": 11}


@pytest.fixture(scope="session")
def fs(options):
    """Give the file system that writes."""
    return fsspec.filesystem("unisono", **options)
