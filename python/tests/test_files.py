"""Proves: files are read and written by any buffer, errors are the right exceptions, Ctrl-C ends a wait."""

import ctypes
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import unisono
from unisono import _native, errors


def test_a_file_is_mirrored_if_that_is_asked_for(connection):
    with connection.open("mirrored", "x", protection="mirror") as file:
        file.write(0, b"bytes")
        assert connection.stat("mirrored")["protected_bytes"] == 0, "they are in a cache only"
        file.flush(sync=True)
    stat = connection.stat("mirrored")
    assert (stat["protection"], stat["protected_bytes"]) == ("mirror", 5)
    with connection.open("usual", "w") as file:
        file.write(0, b"bytes")
    stat = connection.stat("usual")
    assert stat["protection"] == "none"
    assert "protected_bytes" not in stat
    with pytest.raises(ValueError, match="none, mirror, parity"):
        connection.open("other", "x", protection="copies")


def test_an_ordinary_file_is_used_in_place(connection, tmp_path):
    path = tmp_path / "data.bin"
    with connection.open(str(path), "x", in_place=True, block_bytes=4096) as file:
        file.write(0, bytes(range(256)) * 100)
        file.write(30_000, b"behind a hole")
    assert path.read_bytes() == bytes(range(256)) * 100 + bytes(30_000 - 25_600) + b"behind a hole"
    path.write_bytes(b"changed by others")
    with connection.open(str(path), in_place=True) as file:
        assert file.read(0, 100) == b"changed by others"
    with pytest.raises(errors.AlreadyExistsError):
        connection.open(str(path), "x", in_place=True)
    with pytest.raises(errors.NotFoundError, match="No such file"):
        connection.open(str(tmp_path / "none"), in_place=True)
    with connection.open(str(path), "w", in_place=True) as file:
        assert file.size() == 0
    assert path.read_bytes() == b""
    assert [entry.name for entry in tmp_path.iterdir()] == ["data.bin"]


def test_what_a_killed_process_wrote_in_place_is_in_the_file(connection, instance, tmp_path):
    path = tmp_path / "data.bin"
    program = (
        "import os, signal, sys, unisono\n"
        "file = unisono.connect(sys.argv[1]).open(sys.argv[2], 'x', in_place=True)\n"
        "file.write(0, bytes(range(256)) * 65536)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, instance, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    with connection.open(str(path), "a", in_place=True) as file:
        assert file.read(0, 1 << 24) == bytes(range(256)) * 65536
    assert path.read_bytes() == bytes(range(256)) * 65536


def test_buffers_of_each_kind_are_written_and_read(connection):
    file = connection.open("buffers", "w")
    values = np.arange(1000, dtype="f8")
    assert file.write(0, values) == 8000
    assert file.write(8000, b"bytes") == 5
    assert file.write(8005, memoryview(bytearray(b"view"))) == 4
    found = np.empty(1000)
    assert file.read_into(0, found) == 8000
    assert (found == values).all()
    rest = bytearray(20)
    assert file.read_into(8000, rest) == 9
    assert rest == b"bytesview" + bytes(11)
    assert file.size() == 8009
    file.set_size(3)
    assert file.size() == 3
    file.close()
    assert file.closed
    with connection.open("buffers") as again:
        assert again.size() == 3
    assert again.closed


def test_memory_that_does_not_fit_is_refused(connection):
    file = connection.open("memory", "w")
    with pytest.raises(ValueError, match="not contiguous"):
        file.write(0, np.arange(10)[::2])
    with pytest.raises(ValueError, match="cannot be written"):
        file.read_into(0, b"constant")
    with pytest.raises(TypeError):
        file.write(0, 7)
    for wrong in (np.array([object()]), memoryview(np.array([object()])), (ctypes.py_object * 3)()):
        with pytest.raises(errors.UsageError, match="Python objects"):
            file.write(0, wrong)
    names = np.zeros(2, [("Ox", "i4"), (":O", "f8")])
    assert file.write(0, names) == names.nbytes
    for part in (lambda: unisono._native.Part.contiguous(2**64 - 1, 100), lambda: unisono._native.Part.list([(2**63, 0, 1)])):
        with pytest.raises(errors.UsageError, match="a part of a file"):
            part()
    with pytest.raises(errors.UsageError, match="so many bytes"):
        file.read(0, 2**63)
    assert file.write(0, np.datetime64("2026-01-01", "ns")) == 8 and file.read(0, 100) == file.read(0, file.size())
    file.close()
    with pytest.raises(errors.UsageError, match="was closed"):
        file.size()


def test_each_kind_of_error_has_a_class():
    kinds = _native.error_kinds()
    assert len(kinds) == 30
    classes = {type(errors.of_kind(kind, "e", "c", "h", dict(file=None, range=None, server=None, ranks=[]))) for kind, _, _ in kinds}
    assert len(classes) == len(kinds)
    for kind, code, number in kinds:
        made = errors.of_kind(kind, "e", "c", "h", dict(file="f", range=(0, 8), server=1, ranks=[2]))
        assert str(made) == "e\ncause: c\nhelp:  h"
        again = pickle.loads(pickle.dumps(made))
        assert (again.kind, again.exit_code, again.ranks, again.file) == (kind, code, [2], "f")
        if isinstance(made, OSError):
            assert made.errno == again.errno == number and made.filename == again.filename == "f"
            assert type(made)("e", "c", "h").errno == number


def test_missing_files_and_instances(connection, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        connection.open("missing")
    assert caught.value.kind == "not-found" and caught.value.file == "missing" and caught.value.errno == 2
    with pytest.raises(errors.NoInstanceError):
        unisono.connect(tmp_path / "none")
    connection.open("taken", "x").close()
    with pytest.raises(FileExistsError):
        connection.open("taken", "x")


def test_ctrl_c_ends_a_wait(connection):
    # Nobody else comes: the call would wait for ten seconds.
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        connection.group("alone", 0, 2)
    connection.open("after", "w").close()


def test_connections_are_shared_until_they_are_forgotten(instance):
    first = unisono.connect(instance)
    assert unisono.connect(instance) is first
    file = first.open("kept", "w")
    unisono.disconnect(instance)
    assert unisono.connect(instance) is not first
    assert file.write(0, b"still") == 5


def test_threads_use_one_connection(connection):
    file, failures = connection.open("threads", "w"), []

    def work(number):
        values = np.full(1000, number)
        for turn in range(20):
            file.write((number * 20 + turn) * 8000, values)
            found = np.empty(1000, dtype=values.dtype)
            file.read_into((number * 20 + turn) * 8000, found)
            if (found != number).any():
                failures.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    file.close()


def _child(results):
    connection = unisono.connect()
    file = connection.open("forked")
    found = bytearray(6)
    file.read_into(0, found)
    results.put(bytes(found))


def test_a_forked_child_has_a_connection_of_its_own(connection):
    file = connection.open("forked", "w")
    file.write(0, b"parent")
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=_child, args=(results,))
    child.start()
    assert results.get(timeout=20) == b"parent"
    child.join()
    assert file.read_into(0, bytearray(6)) == 6


def test_the_module_is_the_command():
    command = [sys.executable, "-m", "unisono", "--version"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stdout.startswith("unisono ")
    told = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PATH": "", "HOME": "/none"})
    assert told.returncode == 1 and "help:  install the wheel" in told.stderr
