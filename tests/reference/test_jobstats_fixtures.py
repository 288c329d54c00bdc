"""The published fixtures of jobstats: its own code prints its card of each, and ours has the same numbers in the same lines.

Its test file is executed as it is, with its ``subprocess.check_output`` replaced by what its fixtures answer.
"""

import ast
import csv
import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from clusterscape.analyze.jobcard.text import card_text
from clusterscape.collect.slurm.job_summaries import parse_job_summary
from clusterscape.collect.slurm.states import job_state
from clusterscape.collect.slurm.values import read_tres_bytes, read_tres_count, read_words
from clusterscape.model import UnixMs, Workload, WorkloadId, WorkloadState
from clusterscape.query.jobs.query import describe_card, find_window

JOBSTATS = (
    Path(os.environ.get("CLUSTERSCAPE_REFERENCE_DATA", Path(__file__).parents[3] / "shared/data/reference"))
    / "jobstats"
)
NAMES = (
    "simple_cpu_job",
    "cpu_total_time_missing",
    "cpu_mem_over_100_percent",
    "cpu_used_memory_missing",
    "cpu_total_memory_is_zero",
    "simple_gpu_job",
    "gpu_utilization_missing",
    "gpu_used_memory_missing",
)
WITHOUT_GAPS = ("simple_cpu_job", "simple_gpu_job")
NOW_S = 1_730_300_000

pytestmark = pytest.mark.skipif(not JOBSTATS.is_dir(), reason=f"{JOBSTATS} is not on this machine")


class Mocker:
    """What the fixtures need of pytest-mock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.answer: Callable[..., bytes] = lambda *_: b""

    def patch(self, name: str, *, side_effect: Callable[..., bytes]) -> None:
        assert name == "subprocess.check_output"
        self.answer = side_effect
        self._monkeypatch.setattr(subprocess, "check_output", side_effect)


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The functions of its test file, and its formatter."""
    pytest.importorskip("requests")
    monkeypatch.syspath_prepend(str(JOBSTATS))
    before = set(sys.modules)
    source = ast.parse((JOBSTATS / "tests/test_jobstats.py").read_text())
    for node in source.body:
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = []
    module = types.ModuleType("jobstats_fixtures")
    exec(compile(source, "test_jobstats.py", "exec"), module.__dict__)
    import jobstats  # type: ignore[import-not-found]
    import output_formatters  # type: ignore[import-not-found]

    monkeypatch.setattr(jobstats.time, "time", lambda: NOW_S)
    yield {**module.__dict__, "ClassicOutput": output_formatters.ClassicOutput}
    for holder in (module, jobstats):
        holder.DEVNULL.close()
    for name in set(sys.modules) - before:
        del sys.modules[name]


def read_record(line: bytes) -> tuple[dict[str, str], Workload]:
    """The answer of sacct, and the workload of it."""
    [row] = csv.DictReader(line.decode().splitlines(), delimiter="|")
    state = job_state(read_words(row["State"])) or WorkloadState.UNKNOWN
    workload = Workload(
        id=WorkloadId(f"slurm:{row['JobIDRaw']}"),
        state=state,
        name=row["JobName"],
        user=row["User"],
        project=row["Account"],
        partition=row["Partition"],
        qos=row["QOS"],
        time_limit_s=int(row["TimelimitRaw"]) * 60,
        started_at=UnixMs(int(row["Start"]) * 1000),
        ended_at=None if row["End"] == "Unknown" else UnixMs(int(row["End"]) * 1000),
        nodes=tuple(f"n{number}" for number in range(int(row["NNodes"]))),
        gpus_requested=read_tres_count(row["AllocTRES"], "gres/gpu") or 0,
        cpus=int(row["NCPUS"]),
        memory_requested_bytes=read_tres_bytes(f"mem={row['ReqMem']}"),
    )
    return row, workload


def our_card(line: bytes) -> str:
    row, workload = read_record(line)
    window = find_window(workload, UnixMs(NOW_S * 1000))
    assert window is not None
    usage = parse_job_summary(row["AdminComment"], run_s=window.run_s, gpu_count=window.gpu_count)
    assert usage is not None
    return card_text(asdict(describe_card(window, usage, cluster=row["Cluster"], curves=[])))


def compared_lines(card: str) -> list[str]:
    """The lines of a card before its notes, without marks of color."""
    lines = [line.rstrip() for line in card.splitlines() if line.strip()]
    return lines[: [*map(str.strip, lines), "Notes"].index("Notes")]


@pytest.mark.parametrize("name", NAMES)
def test_lines_are_those_of_jobstats_when_it_prints_a_published_fixture(
    name: str, peer: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    mocker = Mocker(monkeypatch)
    stats = peer[name](mocker)
    line = mocker.answer(["sacct", "-P", "-X", "-o", peer["fields"], "-j", stats.jobid])
    ours = compared_lines(our_card(line))
    try:
        expected = compared_lines(peer["ClassicOutput"](stats).output(no_color=True))
    except (TypeError, AttributeError, ZeroDivisionError, KeyError):
        # jobstats has no card of this fixture: its own test looks only at the code of the error.
        codes = [value for key, value in vars(stats).items() if key.endswith("_error_code")]
        assert any(codes)
        assert any("unknown" in text for text in ours)
        return

    # Where jobstats cannot compute a number it prints a code or a reason; ours says "unknown", and still shows what is known.
    assert len(expected) == len(ours)
    assert all("error" in a or "unknown" in b for a, b in zip(expected, ours, strict=True) if a != b)
    assert name not in WITHOUT_GAPS or expected == ours
