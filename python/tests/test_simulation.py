"""Proves: simulations from Python are those of the command, in tables, on all processors and on Dask."""

import json
import os
import signal
import subprocess
import threading

import numpy as np
import pytest

import unisono
from unisono import errors
from unisono.simulation import Picture

SMALL = {"size": "1MiB", "trials": 2}


def _of_command(*arguments):
    """Rows of the command, without the time that this machine took."""
    told = subprocess.run(["unisono", "sim", "--json", *arguments], check=True, capture_output=True, text=True)
    return _without_host(json.loads(told.stdout)["results"])


def _without_host(rows):
    return [{key: value for key, value in row.items() if key != "host_seconds"} for row in rows]


def test_rows_are_those_of_the_command():
    found = unisono.simulate(pattern=["rb", "wcc"], record=["8KiB", 1024], strategy="all", availability=True, **SMALL)
    options = ["--pattern", "rb,wcc", "--record", "8KiB,1024", "--strategy", "all", "--availability"]
    expected = _of_command(*options, "--size", "1MiB", "--trials", "2")
    assert len(found) == len(expected) == 12
    assert _without_host(found) == expected
    assert list(found[0]) == list(expected[0]) + ["host_seconds"]


def test_scenarios_are_files_and_dictionaries(tmp_path):
    file = tmp_path / "scenario.toml"
    file.write_text('pattern = "rb"\nstrategy = "disk-directed"\ntrials = 1\nsize = "1MiB"\n[parameters]\nbuffers-per-disk = 4\n')
    expected = _of_command("--scenario", str(file), "--servers", "4")
    assert _without_host(unisono.simulate(file, servers=np.int64(4))) == expected
    scenario = {"pattern": "rb", "strategy": "disk-directed", "trials": 1, "size": 2**20, "parameters": {"buffers-per-disk": 4}}
    assert _without_host(unisono.simulate(scenario, servers=4)) == expected
    assert expected[0]["changed"] == ["buffers-per-disk = 4"]
    assert "buffers-per-disk = 4" in unisono.simulate(scenario).to_pandas()["changed"][0]


def test_sweeps_cross_every_list():
    found = unisono.sweep(servers=(4, 16), buffers_per_disk=[1, 4], strategy="disk-directed", pattern="wb", **SMALL)
    assert [(row["servers"], row["buffers_per_disk"]) for row in found] == [(4, 1), (4, 4), (16, 1), (16, 4)]
    alone = unisono.simulate(servers=16, buffers_per_disk=1, strategy="disk-directed", pattern="wb", **SMALL)
    assert found[2]["digest"] == alone[0]["digest"] and found[2]["mib_s"] == alone[0]["mib_s"]
    assert found.best() == max(found, key=lambda row: row["mib_s"])


def test_tables_of_pandas_and_pyarrow_have_the_same_values():
    found = unisono.sweep(record=["1KiB", "8KiB"], strategy=["caching", "disk-directed"], pattern="rc", **SMALL)
    frame, table = found.to_pandas(), found.to_arrow()
    assert frame.shape == (4, len(found.columns())) and table.num_rows == 4
    assert list(frame.columns) == table.column_names == found.columns()
    assert frame["record_bytes"].tolist() == [1024, 1024, 8192, 8192] == table["record_bytes"].to_pylist()
    assert frame["mib_s"].dtype == "float64" and frame["mib_s"].tolist() == table["mib_s"].to_pylist()
    pivot = frame.pivot(index="record_bytes", columns="strategy", values="mib_s")
    assert (pivot["disk-directed"] > pivot["caching"]).all()


def test_notebooks_show_a_table_and_a_picture(tmp_path):
    found = unisono.sweep(servers=[2, 4, 8], strategy=["caching", "disk-directed"], pattern="rb", **SMALL)
    shown = found._repr_html_()
    assert shown.count("<tr>") == 7 and shown.count("<svg") == 1 and shown.count("<polyline") == 4
    assert "simulated tr94" in shown and "mean of 2 trials" in shown
    assert repr(found).splitlines()[0].split() == ["servers", "strategy", "mib_s", "seconds"]
    bars = found.plot(x="strategy", y="seconds", by=["servers"])
    assert isinstance(bars, Picture) and "seconds of a transfer" in bars.svg and ">servers 8<" in bars.svg
    bars.save(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").read_text() == bars.svg
    with pytest.raises(errors.UsageError, match="no column 'speed'"):
        found.plot(y="speed")
    with pytest.raises(errors.UsageError, match="has no numbers"):
        found.best("strategy")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"patern": "rb"}, "did you mean pattern"),
        ({"clients": "many"}, 'clients cannot be "many"'),
        ({"clients": None}, "a whole number"),
        ({"size": 1.5}, "a number of bytes"),
        ({"layout": "contigous"}, "did you mean contiguous"),
        ({"size": 12345, "record": 8192}, "whole number of records"),
        ({"disk": object()}, "not JSON serializable"),
        ({"servers": []}, "servers"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, said):
    for function in (unisono.simulate, unisono.sweep):
        with pytest.raises(errors.UsageError, match=said):
            function(**wrong)


def test_errors_name_the_line_of_the_file(tmp_path):
    file = tmp_path / "bad.toml"
    file.write_text('pattern = "rb"\nclients = "many"\n')
    with pytest.raises(errors.UsageError, match="bad.toml, line 2"):
        unisono.simulate(file)
    with pytest.raises(FileNotFoundError, match="help:  name a TOML file"):
        unisono.simulate(tmp_path / "none.toml")
    with pytest.raises(errors.LocalFileError, match="cannot read the scenario file"):
        unisono.simulate(tmp_path)


def test_ctrl_c_ends_a_simulation():
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        # Hours of work, in short trials: the one under way goes on to its end.
        unisono.simulate(pattern="rc", strategy="caching", size="1MiB", trials=1_000_000)
