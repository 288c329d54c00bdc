"""Tracked runs: what they were, how they went, and their times, each on its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clusterscape.errors import NotFoundError
from clusterscape.query.context import QueryContext

RUN_KIND = "run"
"""Kind of the documents that ingest writes for runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """Seconds; null where a run has not come so far."""

    queued_s: float | None
    barrier_s: float | None
    running_s: float | None
    flush_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run in a list. ``workload`` is the id under which everything else of it is found."""

    run: str
    workload: str
    name: str | None
    experiment: str | None
    group: str | None  # the plan's workload
    letter: str | None
    user: str | None
    host: str | None
    state: str
    cause: str | None
    devices: list[str]
    collocation: str | None
    params: dict[str, str]
    tags: dict[str, str]
    queued_at: int | None
    started_at: int | None
    ended_at: int | None
    times: RunTimes
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSeries:
    """One series of a run: ask for its samples by metric and unit."""

    metric: str
    unit: str
    scope: str | None
    method: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAnswer:
    """Everything of one run but its samples."""

    row: RunRow
    command: list[str]
    marks: list[dict[str, Any]]
    listeners: dict[str, Any]
    environment: dict[str, Any]
    exceptions: list[str]
    series: list[RunSeries]
    not_finite: int  # samples that were NaN or infinite, which the store does not hold
    dropped: int


class RunQuery:
    """Answers about runs."""

    def __init__(self, context: QueryContext) -> None:
        self._records = context.records

    def all(self, *, experiment: str | None = None, limit: int = 1000) -> list[RunRow]:
        """Newest first."""
        rows = [_row(document.key, document.body) for document in self._records.documents(RUN_KIND)]
        kept = [row for row in rows if experiment is None or row.experiment == experiment]
        return sorted(kept, key=lambda row: (row.queued_at or 0, row.run), reverse=True)[:limit]

    def one(self, run: str) -> RunAnswer:
        """Raises NotFoundError."""
        document = self._records.document(RUN_KIND, run)
        if document is None:
            raise NotFoundError(f"no run `{run}`", hint="GET /api/v1/runs lists them.")
        body: Mapping[str, Any] = document.body
        series = [(*key.rpartition(" ")[::2], *how) for key, how in body["series"].items()]
        return RunAnswer(
            row=_row(run, body),
            command=list(body["about"].get("command") or []),
            marks=body["marks"],
            listeners=body["listeners"],
            environment=body["environment"],
            exceptions=[str(text) for text in body["exceptions"]],
            series=[RunSeries(metric=name, unit=unit, scope=scope, method=how) for unit, name, scope, how in series],
            not_finite=body["not_finite"],
            dropped=body["dropped"],
        )


def _row(run: str, body: Mapping[str, Any]) -> RunRow:
    about, moments, end = body["about"], body["moments"], body["end"]
    queued = about.get("queued_at")
    return RunRow(
        run=run,
        workload=f"run:{run}",
        name=about.get("name"),
        experiment=about.get("experiment"),
        group=about.get("workload"),
        letter=about.get("letter"),
        user=about.get("user"),
        host=about.get("host"),
        state=end.get("state") or ("running" if "running" in moments else "waiting"),
        cause=end.get("cause"),
        devices=about.get("devices") or [],
        collocation=about.get("collocation"),
        params=body["params"],
        tags=body["tags"],
        queued_at=queued,
        started_at=moments.get("running"),
        ended_at=moments.get("ended"),
        times=RunTimes(
            queued_s=_between(queued, moments.get("barrier")),
            barrier_s=_between(moments.get("barrier"), moments.get("running")),
            running_s=_between(moments.get("running"), moments.get("ended")),
            flush_s=_between(moments.get("ended"), moments.get("flushed")),
        ),
        samples=body["samples"],
    )


def _between(begin: int | None, end: int | None) -> float | None:
    return None if begin is None or end is None else (end - begin) / 1000
