"""Traces that a Dask cluster of real processes reads are those that are read here."""

import json
from pathlib import Path

import polars as pl
import pytest
from servers.dask import running_dask
from unit.cli.test_commands import run
from unit.collect.traces.trace_files import simple_rank, write

pytestmark = pytest.mark.server


def test_trace_is_the_same_when_it_is_read_on_dask(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for rank in range(3):
        write(folder / f"rank{rank}.json.gz", simple_rank(rank, 4, late_us=20.0 * rank, steps=6))
    (folder / "rank3.json").write_text('{"schemaVersion": 1, "traceEvents": [', encoding="utf-8")
    settings = tmp_path / "clusterscape.toml"
    settings.write_text(f'[storage]\ndata_dir = "{tmp_path / "data"}"\n', encoding="utf-8")
    importing = ["trace", "import", str(folder), "--config", str(settings), "--json"]
    with running_dask(tmp_path) as address:
        report_there = run("trace", "report", str(folder), "--json", "--scheduler", address)
        kept_there = run(*importing, "--scheduler", address)
    assert report_there.returncode == 0, report_there.stderr
    assert kept_there.returncode == 0, kept_there.stderr
    assert report_there.stdout == run("trace", "report", str(folder), "--json").stdout
    kept_here = run(*importing)
    there, here = json.loads(kept_there.stdout), json.loads(kept_here.stdout)
    assert any("Cannot read rank3.json" in note for note in there["notes"])
    assert [there[key] for key in ("ranks", "steps", "spans", "notes")] == [
        here[key] for key in ("ranks", "steps", "spans", "notes")
    ]
    tables = [tmp_path / "data" / "artifacts" / "traces" / row["trace_id"] / "spans.parquet" for row in (there, here)]
    assert pl.read_parquet(tables[0]).equals(pl.read_parquet(tables[1]))


def test_command_is_refused_when_both_a_server_and_a_scheduler_are_named(tmp_path: Path) -> None:
    process = run("trace", "import", str(tmp_path), "--url", "http://127.0.0.1:1", "--scheduler", "tcp://127.0.0.1:1")
    assert process.returncode != 0
    assert "--url and --scheduler cannot be combined" in process.stderr
