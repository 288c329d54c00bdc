"""Answers of our verdicts and of the baselines. An answer of a tool is a list of causes, the most important first; each may have
``kind``, ``rank`` (null: none in particular), ``seconds_per_step``. The same JSON of any other tool can be scored.

Baselines: ``last_arrival`` blames the rank that arrives last most often (as HolisticTraceAnalysis finds stragglers: it names no
cause); ``what_if`` the rank whose replacement by its peers saves most (after Lin et al.); ``telemetry`` the rank whose share of
time at work is farthest from the others', from the step breakdown alone (after Minder: distance between machines).
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from clusterscape.analyze.trace.changes import Change, ChangedRun, ChangeError
from clusterscape.analyze.trace.match import add_counterparts
from clusterscape.analyze.trace.report import TraceReport, analyze_trace
from clusterscape.collect.traces import read_traces

MIN_WHAT_IF = 0.01
MIN_LAST_SHARE = 0.5
MIN_DISTANCE = 3.0
Answer = list[dict[str, Any]]


def answer_ours(report: TraceReport) -> Answer:
    """Our verdicts."""
    answers = []
    for verdict in report.verdicts:
        seconds = verdict.seconds_per_step
        if verdict.rhythm is not None and verdict.rank is not None:
            seconds = verdict.rhythm.seconds_per_affected_step * verdict.rhythm.step_share
        answers.append({"kind": verdict.kind.value, "rank": verdict.rank, "seconds_per_step": seconds})
    return answers


def answer_last_arrival(report: TraceReport) -> Answer:
    """The rank that arrives last in at least half of the collectives."""
    last = report.collectives["last_rank"].drop_nulls()
    if not last.len():
        return []
    counts = last.value_counts().sort("count", descending=True)
    rank, count = counts.row(0)
    return [{"rank": rank, "kind": None}] if count >= MIN_LAST_SHARE * last.len() else []


def answer_what_if(report: TraceReport) -> Answer:
    """The rank whose replacement by its peers saves most."""
    spans = add_counterparts(report.trace.spans, report.parts, report.matches)
    run = ChangedRun(spans, report.steps, np.random.default_rng(0))
    saved = []
    for facts in report.trace.ranks:
        try:
            answer = run.ask(Change("straggler", rank=facts.rank))
        except ChangeError:
            continue
        saved.append((answer.now_s - answer.then_s, answer.now_s, facts.rank))
    if not saved:
        return []
    seconds, now_s, rank = max(saved)
    return [{"rank": rank, "kind": None, "seconds_per_step": seconds}] if seconds > MIN_WHAT_IF * now_s else []


def answer_telemetry(report: TraceReport) -> Answer:
    """The rank farthest from the others, in robust spreads."""
    shares = report.breakdown.select(
        "rank",
        "step",
        *((pl.col(f"{name}_ns") / pl.col("step_ns")).alias(name) for name in ("compute", "exposed", "idle")),
    )
    means = shares.group_by("rank").agg(pl.col("compute", "exposed", "idle").mean()).sort("rank")
    values = means.select("compute", "exposed", "idle").to_numpy()
    if values.shape[0] < 3:
        return []
    distances = np.linalg.norm(values[:, None] - values[None], axis=2).sum(axis=1)
    spread = 1.4826 * float(np.median(np.abs(distances - np.median(distances)))) or 1e-9
    at = int(np.argmax(distances))
    far = (distances[at] - np.median(distances)) / spread > MIN_DISTANCE
    return [{"rank": int(means["rank"][at]), "kind": None}] if far else []


TOOLS: dict[str, Callable[[TraceReport], Answer]] = {
    "clusterscape": answer_ours,
    "last_arrival": answer_last_arrival,
    "what_if": answer_what_if,
    "telemetry": answer_telemetry,
}


def list_cases(folder: Path, half: str) -> list[dict[str, Any]]:
    """The cases of a half, in the order of their names."""
    cases = []
    for path in sorted(folder.glob("*.json")):
        if "-rank" in path.name:
            continue
        case = json.loads(path.read_text())
        if half == "both" or case["is_held_back"] == (half == "held-back"):
            cases.append(case)
    return cases


def answer_cases(folder: Path, half: str, tools: list[str]) -> None:
    """Write ``answers/TOOL.json`` in the folder: case id → answer."""
    chosen = {name: tool for name, tool in TOOLS.items() if not tools or name in tools}
    answers: dict[str, dict[str, Answer]] = {name: {} for name in chosen}
    for case in list_cases(folder, half):
        paths = [folder / file["path"] for file in case["files"] if file["format"] in ("kineto", "capture")]
        report = analyze_trace(read_traces(paths, workers=1), np.random.default_rng(0))
        for name, tool in chosen.items():
            answers[name][case["id"]] = tool(report)
    target = folder / "answers"
    target.mkdir(exist_ok=True)
    for name, answer in answers.items():
        path = target / f"{name}.json"
        before = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(before | answer, indent=1) + "\n")
