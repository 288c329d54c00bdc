"""A sweep on a Dask cluster of real processes gives what it gives here."""

import json
from pathlib import Path

import pytest
from servers.dask import running_dask
from unit.cli.test_commands import run
from unit.cli.test_sched_command import SWF

pytestmark = pytest.mark.server


def test_results_are_those_of_local_processes_when_a_sweep_runs_on_dask(tmp_path: Path) -> None:
    trace = tmp_path / "trace.swf"
    trace.write_text(SWF)
    arguments = ["sched", "sweep", str(trace), "--backfill", "easy", "--backfill", "frugal", "--jitter", "2", "--json"]
    with running_dask(tmp_path) as address:
        there = run(*arguments, "--cache", str(tmp_path / "there"), "--scheduler", address)
    assert there.returncode == 0, there.stderr
    here = run(*arguments, "--cache", str(tmp_path / "here"))
    assert json.loads(there.stdout) == json.loads(here.stdout)
    kept = {path.name: path.read_text() for path in (tmp_path / "there").iterdir()}
    assert kept == {path.name: path.read_text() for path in (tmp_path / "here").iterdir()}
