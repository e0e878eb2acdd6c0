"""Proves: servers that die or stop end calls with the right exception, and an interrupt loses nothing."""

import json
import os
import signal
import subprocess
import threading

import fsspec
import numpy as np
import pytest

import unisono
from unisono import errors


def _processes(instance):
    """Process of each server."""
    told = subprocess.run(["unisono", "status", "--json", "--instance", instance], check=True, capture_output=True)
    return [server["pid"] for server in json.loads(told.stdout)["servers"]]


def test_a_dead_server_is_named(own_instance):
    file = unisono.connect(own_instance, timeout=3).open("before", "w")
    values = np.arange(2**20)
    file.write(0, values)
    os.kill(_processes(own_instance)[1], signal.SIGKILL)
    for call in (lambda: file.write(0, values), lambda: file.read_into(0, values), file.flush, file.close):
        with pytest.raises(errors.ServerLeftError) as caught:
            call()
        assert isinstance(caught.value, ConnectionError) and caught.value.server == 1
    fs = fsspec.filesystem("unisono", instance=own_instance, timeout=3)
    with pytest.raises(ConnectionError):
        fs.pipe_file("after", bytes(4 << 20))
    with pytest.raises(ConnectionError):
        unisono.open_array("array", "w", shape=(1 << 20,), dtype="f8", instance=own_instance, timeout=3)


def test_a_server_that_dies_in_mid_transfer_ends_the_call(own_instance):
    server = _processes(own_instance)[1]
    array = unisono.open_array("array", "w", shape=(1 << 23,), dtype="f8", instance=own_instance, timeout=3)
    values = np.ones(array.local_shape)
    threading.Timer(0.2, os.kill, (server, signal.SIGKILL)).start()
    # The server dies in one of these transfers, or between two. The error is not replaced by one of close.
    with pytest.raises(errors.ServerLeftError, match="cannot write"), array:
        while True:
            array.write(values)


def test_a_server_that_stops_is_given_up(own_instance):
    server = _processes(own_instance)[1]
    with pytest.raises(errors.UnisonoError, match="has not answered for 1 s"):
        with unisono.connect(own_instance, timeout=1).open("file", "w") as file:
            file.write(0, bytes(4 << 20))
            os.kill(server, signal.SIGSTOP)
            file.read_into(0, bytearray(4 << 20))
    os.kill(server, signal.SIGCONT)


def test_an_interrupted_transfer_goes_on_to_its_end(own_instance):
    server = _processes(own_instance)[1]
    expected = np.arange(4 << 20, dtype="f8")
    with unisono.open_array("array", "w", shape=expected.shape, dtype="f8", instance=own_instance, timeout=60) as array:
        # The transfer cannot end before the interrupt.
        os.kill(server, signal.SIGSTOP)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            # Nobody but the transfer keeps the memory.
            array.write(expected.copy())
        os.kill(server, signal.SIGCONT)
        # A later call of the group comes after it.
        assert (array.read() == expected).all()
