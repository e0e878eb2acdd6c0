"""An instance with two servers for each module of tests."""

import os
import subprocess

import pytest


@pytest.fixture(scope="session")
def instance(tmp_path_factory):
    """Start servers; return the directory of the instance."""
    directory = tmp_path_factory.mktemp("unisono") / "instance"
    environment = {**os.environ, "UNISONO_ALLOW_ROOT": "true"}
    command = ["unisono", "start", "--servers", "2", "--instance", str(directory)]
    subprocess.run(command, check=True, env=environment, capture_output=True)
    os.environ["UNISONO_INSTANCE"] = str(directory)
    os.environ["UNISONO_TIMEOUT"] = "10"
    yield str(directory)
    subprocess.run(["unisono", "stop", "--instance", str(directory)], check=False, env=environment, capture_output=True)


@pytest.fixture
def connection(instance):
    """Connect to the instance."""
    import unisono

    return unisono.connect(instance)
