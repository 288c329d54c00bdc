"""``clusterscape hang`` on folders of dumps."""

import json
from pathlib import Path

from hangs.made_up import write_case
from typer.testing import CliRunner

from clusterscape.cli.entry import app

runner = CliRunner()


def test_verdict_names_rank_line_and_cost_when_it_is_printed(tmp_path: Path) -> None:
    case = write_case("storage", 1, tmp_path)
    done = runner.invoke(app, ["hang", *map(str, case.looks)])
    assert done.exit_code == 0, done.output
    assert f"Rank {next(iter(case.ranks))} waits for a file system (certain)" in done.stdout
    assert "data.py:77 in read_shard" in done.stdout
    assert f"{case.world} GPU-hours per hour" in done.stdout


def test_json_holds_all_fields_when_it_is_requested(tmp_path: Path) -> None:
    case = write_case("mismatch", 1, tmp_path)
    done = runner.invoke(app, ["hang", str(tmp_path), "--json"])
    assert done.exit_code == 0, done.output
    verdict = json.loads(done.stdout)["verdict"]
    assert (verdict["kind"], verdict["ranks"]) == ("mismatch", sorted(case.ranks))
    assert set(verdict) >= {
        "group",
        "collective",
        "sequence",
        "place",
        "since_ms",
        "held_gpus",
        "certainty",
        "evidence",
        "advice",
    }


def test_error_is_a_sentence_when_there_are_no_dumps(tmp_path: Path) -> None:
    done = runner.invoke(app, ["hang", str(tmp_path)])
    assert done.exit_code == 1
    assert "no files in" in str(done.exception)


def test_terminal_is_safe_when_a_name_in_a_dump_has_control_characters(tmp_path: Path) -> None:
    entry = {"record_id": 0, "pg_id": 0, "process_group": ["0", "\x1b[31mred"], "collective_seq_id": 1, "state": "started",
             "profiling_name": "nccl:all_reduce"}  # fmt: skip
    for rank, entries in enumerate(([entry], [])):
        status = {"0": {"last_enqueued_collective": len(entries), "last_completed_collective": 0}}
        config = {"0": {"name": "0", "desc": "\x1b[31mred", "ranks": "[0, 1]"}}
        document = {"version": "2.10", "entries": entries, "pg_status": status, "pg_config": config}
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(document))
    done = runner.invoke(app, ["hang", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "\x1b[31mred" not in done.stdout
    assert "Rank 1" in done.stdout


def test_exit_status_is_1_when_most_dumps_could_not_be_read(tmp_path: Path) -> None:
    entry = {
        "record_id": 0,
        "pg_id": 0,
        "collective_seq_id": 1,
        "state": "started",
        "profiling_name": "nccl:all_reduce",
    }
    (tmp_path / "rank0.json").write_text(json.dumps({"version": "2.10", "entries": [entry]}))
    (tmp_path / "README").write_text("not a dump")
    (tmp_path / "rank1.json").write_text('{"version": "2.10", "entries": [')
    done = runner.invoke(app, ["hang", str(tmp_path)])
    assert done.exit_code == 0, done.output
    (tmp_path / "rank2.json").write_text("")
    done = runner.invoke(app, ["hang", str(tmp_path)])
    assert done.exit_code == 1
    assert "67% of the dumps could not be read" in done.stderr
