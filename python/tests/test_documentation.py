"""Proves: the examples of docstrings, of pages and of notebooks run, and what is public has an example."""

import concurrent.futures
import doctest
import importlib
import inspect
import pathlib
import re
import subprocess
import sys

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

import unisono

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULES = [
    "unisono",
    "unisono._connect",
    "unisono.arrays",
    "unisono.fs",
    "unisono.records",
    "unisono.simulation",
    "unisono.tables",
    "unisono.transfers",
]
# Classes that users make or call methods of; others are made and shown in their examples.
CLASSES = ["Array", "Records", "Results", "Table", "UnisonoFileSystem"]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(instance, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"unisono": unisono, "np": np, "concurrent": concurrent}
    module = importlib.import_module(name)
    failed, attempted = doctest.testmod(module, extraglobs=names, optionflags=OPTIONS)
    assert failed == 0 and attempted > 0


@pytest.mark.parametrize("name", MODULES)
def test_what_is_public_has_an_example(name):
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", ["connect", "disconnect", "mounted"]):
        thing = getattr(module, public)
        if inspect.isfunction(thing) or inspect.isclass(thing) and thing.__name__ in CLASSES:
            texts = [thing.__doc__, *(member.__doc__ for member in vars(thing).values() if inspect.isfunction(member))]
            assert any(text and ">>>" in text for text in texts), f"{name}.{public} has no example"


@pytest.mark.parametrize("page", ["README.md", "docs/python.md", "docs/out-of-core.md", "docs/records.md"])
def test_examples_of_pages(instance, page, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    # The README also shows lines of examples/heat.py, which is tested with MPI.
    program = "\n".join(block for block in blocks if "unisono" in block)
    assert program
    told = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb")))
def test_notebooks(name, tmp_path, monkeypatch):
    # Their instances and copies are below.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("UNISONO_ALLOW_ROOT", "true")
    monkeypatch.delenv("UNISONO_INSTANCE", raising=False)
    notebook = nbformat.read(ROOT / "notebooks" / name, 4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "notebooks are kept without outputs"
    try:
        NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    finally:
        for instance in tmp_path.glob("unisono-*/instance"):
            subprocess.run(["unisono", "stop", "--instance", str(instance)], check=False, capture_output=True)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    shown = str([output.get("data") for output in outputs])
    assert "<svg" in shown or "image/png" in shown, "a notebook shows a picture"
