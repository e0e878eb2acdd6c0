"""Proves: the package is typed, in the eyes of mypy and pyright, and a program with wrong types is found."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHECKERS = {
    "mypy": ["mypy"],
    "pyright": ["pyright", "--project", "pyproject.toml", "--pythonpath", sys.executable],
}


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """Keep what mypy knows of NumPy and pandas from one run to the next."""
    os.environ["MYPY_CACHE_DIR"] = str(tmp_path_factory.mktemp("mypy"))


def _check(checker, *arguments):
    command = [sys.executable, "-m", *CHECKERS[checker], *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("checker", CHECKERS)
def test_the_package_has_no_wrong_type(checker):
    arguments = ["python/unisono"] if checker == "mypy" else []
    told = _check(checker, *arguments)
    assert told.returncode == 0, told.stdout + told.stderr


def test_wrong_arguments_are_found(tmp_path):
    program = tmp_path / "program.py"
    program.write_text('import unisono\nunisono.open_array("a", shape=3)\nunisono.simulate("s", 5)\n')
    told = _check("mypy", str(program))
    assert told.returncode == 1 and told.stdout.count("error:") == 2, told.stdout
