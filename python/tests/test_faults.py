"""Proves: servers that die or stop end calls with the right exception, and an interrupt loses nothing."""

import contextlib
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
    with pytest.raises(errors.UnisonoError, match="has not answered for 0.5 s"):
        with unisono.connect(own_instance, timeout=1).open("file", "w") as file:
            file.write(0, bytes(4 << 20))
            os.kill(server, signal.SIGSTOP)
            file.read_into(0, bytearray(4 << 20))
    os.kill(server, signal.SIGCONT)


@contextlib.contextmanager
def _interrupted_while_stopped(process):
    """Send this process SIGINT while a server is stopped, so that no transfer ends before; then let it go on."""
    os.kill(process, signal.SIGSTOP)
    # Enough time to begin a transfer; one that has not begun would lose its data rightly.
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        os.kill(process, signal.SIGCONT)


@pytest.mark.parametrize("method", ["disk-directed", "two-phase", "caching"])
def test_an_interrupt_leaves_an_array_and_loses_nothing(own_instance, method):
    expected, options = np.arange(2 << 20, dtype="f8"), {"instance": own_instance, "timeout": 60}
    array = unisono.open_array("array", "w", shape=expected.shape, dtype="f8", method=method, **options)
    # It leaves the block too, without a wait for the server.
    with _interrupted_while_stopped(_processes(own_instance)[1]), array:
        # Nobody but the transfer keeps the memory.
        array.write(expected.copy())
    with unisono.open_array("array", **options) as again:
        assert (again.read() == expected).all()


@pytest.mark.parametrize("count", [16_000_000, 2_000_000, 900_000])
def test_an_interrupt_leaves_a_file_and_loses_nothing(own_instance, count):
    fs = fsspec.filesystem("unisono", instance=own_instance, timeout=60)
    file = fs.open("file", "wb")
    with _interrupted_while_stopped(_processes(own_instance)[1]), file:
        # Nobody but the transfer keeps the memory; a small write is buffered until the flush.
        file.write(b"x" * count)
        file.flush()
    # Other memory takes the place of what was freed.
    filler = [bytes(count) for _ in range(4)]
    assert file.closed and fs.cat_file("file") == b"x" * count and filler


def test_an_interrupted_read_leaves_memory_alone(own_instance):
    fs = fsspec.filesystem("unisono", instance=own_instance, timeout=60)
    fs.pipe_file("file", b"x" * 8_000_000)
    for count in (8_000_000, 100):
        file = fs.open("file", "rb")
        with _interrupted_while_stopped(_processes(own_instance)[1]), file:
            # The second block is on the stopped server.
            file.seek(1 << 20)
            file.read(count)
        filler = [bytearray(count) for _ in range(4)]
        assert fs.cat_file("file") == b"x" * 8_000_000
        assert not any(any(one) for one in filler)


def test_what_is_written_after_an_interrupt_is_not_lost(own_instance):
    fs = fsspec.filesystem("unisono", instance=own_instance, timeout=60)
    other = fs.open("file", "wb")
    file = fs.open("file", "r+b")
    with _interrupted_while_stopped(_processes(own_instance)[1]):
        file.write(b"x" * 4_000_000)
    file.seek(4_000_000)
    file.write(b"tail")
    file.close()
    other.write(b"head")
    other.close()
    assert fs.cat_file("file") == b"head" + b"x" * 3_999_996 + b"tail"


def test_the_end_of_an_interrupted_transfer_can_be_waited_for(own_instance):
    expected = np.arange(2 << 20, dtype="f8")
    with unisono.open_array("array", "w", shape=expected.shape, dtype="f8", instance=own_instance, timeout=60) as array:
        with _interrupted_while_stopped(_processes(own_instance)[1]):
            transfer = array.start_write(expected)
            try:
                transfer.wait()
            finally:
                assert not transfer.done()
        assert transfer.wait().bytes == expected.nbytes and transfer.done()
        assert (array.read() == expected).all()
