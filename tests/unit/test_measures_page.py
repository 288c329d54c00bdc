"""The page of measures is complete: it names every number that the code defines, and every file on it exists."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

from clusterscape.analyze.diagnose.features import compute_features
from clusterscape.analyze.jobs.runtime_report import PredictionTable, PredictorRow
from clusterscape.analyze.runs.workloads import Repeats, Slowdown
from clusterscape.analyze.trace.changes import Change
from clusterscape.analyze.trace.document import BREAKDOWN
from clusterscape.analyze.trace.pipeline import Bubble, LoadImbalance
from clusterscape.analyze.trace.whatif import StragglerAnswer
from clusterscape.cli.sched_describe_text import FACTS
from clusterscape.model.findings import FindingKind
from clusterscape.model.hangs import HangVerdict
from clusterscape.model.rules import Across, StatisticKind
from clusterscape.model.trace_report import VerdictKind
from clusterscape.query.answers import ClusterSummary, Startable, Timeline, UnitCounts, WasteAnswer
from clusterscape.query.jobs.answers import JobCard
from clusterscape.query.runs.answers import RunRow, RunTimes, RunWorkload
from clusterscape.query.runs.rows import DERIVED
from clusterscape.query.scheduling.promises import SlipCause
from clusterscape.query.scheduling.whatif_simulation import MEASURES
from clusterscape.services.backtest.report import WaitReport
from clusterscape.simulate.batch.measures import Measures
from clusterscape.simulate.cluster.measures import ClusterMeasures

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/measures.md"

NUMBERS = (int, float, int | None, float | None, list[int], list[float], list[float | None])


def numbers_of(shape: type, *left_out: str) -> set[str]:
    """The numeric fields of an answer, except identifiers and times."""
    hints: dict[str, Any] = get_type_hints(shape)
    names = {field.name for field in fields(shape)}
    assert names.issuperset(left_out), f"{shape.__name__} has no longer {set(left_out) - names}"
    return {name for name in names if hints[name] in NUMBERS} - set(left_out)


ALWAYS_THERE = ("at", "inventory_version", "tick_version", "newest_sample_at")
WHEN = ("start", "end", "step_ms", "oldest_at", "time_ms", "total_gpus")
JOB_FACTS = [
    "node_count",
    "cpus",
    "memory_requested_bytes",
    "gpus",
    "started_at",
    "ended_at",
    "time_limit_s",
    "exit_code",
    "exit_signal",
]
SIMULATED = ("measured_s", "without_delay_s", "ideal_s", "without_worker_s", "without_last_stage_s")

DEFINED: dict[str, set[str]] = {
    "Overview": numbers_of(ClusterSummary, *ALWAYS_THERE, "stranded") | numbers_of(UnitCounts),
    "What could start, and what is stranded": numbers_of(Startable),
    "A job's card": numbers_of(JobCard, *JOB_FACTS) | {"percent", "values", "most"},
    "Waste": numbers_of(WasteAnswer, "start", "end"),
    "Timeline": numbers_of(Timeline, *WHEN),
    "Rules: statistics over a life": {kind.value for kind in StatisticKind} | {word.value for word in Across},
    "Diagnostics": {kind.value for kind in FindingKind} | set(compute_features(np.eye(4)).names),
    "Hangs": numbers_of(HangVerdict),
    "Where a step went": set(BREAKDOWN),
    "Balance, bubble, critical path": {
        *numbers_of(LoadImbalance),
        *numbers_of(Bubble, "stages", "micro_batches", "chunks", "step_s", "resimulated_s", "balanced_s"),
    },
    "Stragglers": numbers_of(StragglerAnswer, *SIMULATED) | set(get_args(get_type_hints(Change)["kind"])),
    "Verdicts": {kind.value for kind in VerdictKind},
    "A schedule": numbers_of(Measures),
    "A schedule on GPU nodes": numbers_of(ClusterMeasures) - numbers_of(Measures),
    "What if, on the live queue": {name for name, *_ in MEASURES},
    "Promises": {cause.value for cause in SlipCause},
    "Predictions": {
        *numbers_of(WaitReport, "jobs", "median_wait_s"),
        *(field.name for field in fields(PredictorRow) if field.name != "name"),
        *(name for name in (field.name for field in fields(PredictionTable)) if name.endswith("_ratio")),
    },
    "Runs": {
        *numbers_of(RunTimes),
        *numbers_of(RunRow, "queued_at", "started_at", "ended_at", "samples"),
        *numbers_of(RunWorkload, "started_at", "ended_at"),
        *{field.name for field in fields(Repeats)} - {"workloads", "joules"},
        *numbers_of(Slowdown, "ratio"),
        *DERIVED,
        "energy",
        "work",
        "slowdown",
    },
}


def read_sections() -> dict[str, str]:
    """The text below each heading, without that of its subheadings."""
    parts = re.split(r"^#{2,3} (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("section", DEFINED)
def test_measures_are_on_the_page_when_the_code_defines_them(section: str) -> None:
    named = set(re.findall(r"`([\w]+)`", read_sections()[section]))
    assert DEFINED[section] <= named, f"not in “{section}” of {PAGE.name}: {sorted(DEFINED[section] - named)}"


def test_facts_of_job_traces_are_on_the_page_when_the_report_has_them() -> None:
    section = read_sections()["Job traces"]
    plain = {
        "jobs", "dropped rows", "users", "jobs of the most active user", "submissions span", "sizes in", "machine",
        "median run time", "95th percentile run time", "median size", "largest size", "jobs of unknown end",
    }  # fmt: skip
    words = {"in users' 10 largest groups": "jobs in users' 10 largest groups"}
    words |= dict.fromkeys(("median wait", "mean wait"), "waits")
    words |= {"mean queue, jobs": "mean queue", "unsuccessful, of the others": "unsuccessful"}
    words |= {"unit-hours lost, share": "unit-hours lost"}
    missing = [label for label, _ in FACTS if label not in plain and words.get(label, label) not in section]
    assert not missing


def test_every_table_names_a_file_that_exists_when_the_page_is_read() -> None:
    text = PAGE.read_text(encoding="utf-8")
    paths = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+(?:\.\w+)?)`", text))
    roots = (ROOT, ROOT / "src/clusterscape")
    assert paths
    assert not [path for path in paths if not any((root / path).exists() for root in roots)]
    without = [head for head, body in read_sections().items() if "|---" in body and not re.search(r"`[a-z_]+/", body)]
    assert not without
