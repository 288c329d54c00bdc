"""``clusterscape sched`` as a user types it."""

import json
from pathlib import Path

from unit.cli.test_commands import run

from clusterscape.collect.job_traces import read_trace

SWF = """; MaxProcs: 8
1 0 -1 10 6 -1 -1 6 10 -1 1 1 -1 -1 -1 -1 -1 -1
2 1 -1 5 8 -1 -1 8 5 -1 1 1 -1 -1 -1 -1 -1 -1
3 2 -1 5 2 -1 -1 2 5 -1 1 2 -1 -1 -1 -1 -1 -1
4 3 -1 5 9 -1 -1 9 5 -1 1 2 -1 -1 -1 -1 -1 -1
"""


def test_starts_measures_and_notes_are_reported_when_a_trace_is_simulated(tmp_path: Path) -> None:
    trace, output = tmp_path / "trace.swf", tmp_path / "schedule.swf"
    trace.write_text(SWF)
    done = run("sched", "simulate", str(trace), "--semantics", "pyss", "--output", str(output), "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["jobs"], report["processors"], report["unit"]) == (3, 8, "processors")
    assert report["measures"]["wait_s"] == 3.0
    assert report["semantics"]["events"] == "one_by_one"
    assert report["notes"][0]["reason"] == "larger than the machine (8 processors)"
    written = read_trace(output)
    assert written.frame["wait_s"].to_list() == [0.0, 9.0, 0.0]
    assert report["fingerprint"] in output.read_text()
    assert 0 < report["measures"]["fairness"] <= 1
    assert [(row["low"], row["high"], row["reference_p99_s"]) for row in report["sizes"]] == [
        (2, 2, None),
        (5, 8, None),
    ]
    plain = run("sched", "simulate", str(trace), "--jitter", "3", "--policy", "sjf", "--estimates", "predicted")
    assert "bounded slowdown" in plain.stdout
    assert "fairness over users" in plain.stdout
    assert "FCFS p99, s" in plain.stdout
    assert "1 dropped: larger than the machine (8 processors) (line 5)" in plain.stderr


def test_table_is_printed_without_published_rows_when_the_trace_is_another(tmp_path: Path) -> None:
    trace = tmp_path / "trace.swf"
    trace.write_text(SWF)
    done = run("sched", "table", "--trace", str(trace), "--jitter", "3", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [row["measure"] for row in rows] == ["wait_s", "bounded_slowdown", "utilization", "violation_s"]
    assert rows[0]["baseline"]["published"] is None
    assert rows[0]["frugal"]["spread"]["mean"] > 0


def test_errors_say_what_to_do_when_something_is_missing(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("submit_time,wait_time,run_time,gpu_num\n1,0,5,1\n")
    for arguments, message in (
        (("simulate", str(trace)), "Set it with --processors, in gpus."),
        (("simulate", str(trace), "--processors", "4", "--policy", "fifo"), "unknown policy 'fifo'"),
        (("simulate", str(trace), "--processors", "4", "--semantics", "best"), "unknown semantics 'best'"),
        (("simulate", str(tmp_path / "nowhere.swf")), "cannot read"),
        (("table", "--trace", "mira"), "CLUSTERSCAPE_REFERENCE_DATA"),
    ):
        done = run("sched", *arguments)
        assert done.returncode == 1
        assert message in done.stderr


def test_sweep_resumes_when_results_are_kept(tmp_path: Path) -> None:
    trace, cache = tmp_path / "trace.swf", tmp_path / "cache"
    trace.write_text(SWF)
    arguments = ("sched", "sweep", str(trace), "--cache", str(cache), "--workers", "2", "--json")
    first = run(*arguments, "--backfill", "easy")
    assert first.returncode == 0, first.stderr
    (kept,) = cache.iterdir()
    written = kept.stat().st_mtime_ns
    more = run(*arguments, "--backfill", "easy", "--backfill", "frugal", "--omega", "0.1", "--omega", "0.2")
    points = json.loads(more.stdout)["points"]
    assert sorted((point["backfill"], point["omega"]) for point in points) == [
        ("easy", None),
        ("frugal", 0.1),
        ("frugal", 0.2),
    ]
    assert kept.stat().st_mtime_ns == written
    assert json.loads(first.stdout)["points"][0] in points
    kept.write_text("{")  # broken off while writing: computed again
    repaired = run(*arguments, "--backfill", "easy")
    assert json.loads(repaired.stdout) == json.loads(first.stdout)
    assert json.loads(kept.read_text())["measures"]["jobs"] == 3


def test_errors_say_what_to_do_when_a_sweep_cannot_run(tmp_path: Path) -> None:
    trace = tmp_path / "trace.swf"
    trace.write_text(SWF)
    for arguments, message in (
        (("--backfill", "tight"), "unknown backfill strategy 'tight'"),
        (("--policy", "fifo"), "unknown policy 'fifo'"),
        (("--estimates", "guess"), "unknown estimates"),
        (("--scheduler", "tcp://127.0.0.1:1", "--cache", str(tmp_path)), "no Dask scheduler answers"),
    ):
        done = run("sched", "sweep", str(trace), *arguments)
        assert done.returncode == 1, done.stdout
        assert message in done.stderr
