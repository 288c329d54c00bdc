"""The whole description of one to four job traces as one document: geometry, failures, users, and tests of the paper's claims."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.jobs.columns import read_columns
from clusterscape.analyze.jobs.comparisons import ComparedTrace, SystemKind, classify_system, compare_systems
from clusterscape.analyze.jobs.distributions import ValueSpread, spread_values
from clusterscape.analyze.jobs.failures import Failures, describe_failures
from clusterscape.analyze.jobs.geometry import (
    Arrivals,
    Occupancy,
    WaitSummary,
    count_waiting_at_submission,
    describe_arrivals,
    describe_occupancy,
    describe_waiting,
    find_zone,
)
from clusterscape.analyze.jobs.intervals import PaperClaim, Resamples
from clusterscape.analyze.jobs.takeaways import ElapsedTest, join_claims, judge_ends, judge_prediction, measure_elapsed
from clusterscape.analyze.jobs.users import UserBehavior, describe_users
from clusterscape.errors import QueryError
from clusterscape.model.identity_fields import access_checked
from clusterscape.model.jobs import CleaningNote, JobTrace, SizeUnit

MAX_TRACES = 4
LEVEL = 0.95


@access_checked("job trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class TraceDescription:
    """One trace. Times in seconds; sizes and unit-hours in ``size_unit``.

    ``epoch_s``: added to a time of the trace gives Unix time; null if the trace does not state its start. ``kind``: deep learning
    if jobs are measured in GPUs. ``total_units``: the size of the machine, if stated. Parts for which the trace has no data
    (ends, waits, users) are null.
    """

    name: str
    format: str
    kind: SystemKind
    size_unit: SizeUnit
    total_units: int | None
    jobs: int
    dropped: int
    notes: list[CleaningNote]
    epoch_s: float | None
    first_submit_s: float
    last_submit_s: float
    unit_hours: float
    run_s: ValueSpread
    size_units: ValueSpread
    requested_s: ValueSpread
    arrivals: Arrivals
    occupancy: Occupancy | None
    waiting: WaitSummary | None
    failures: Failures | None
    users: UserBehavior
    elapsed: ElapsedTest | None


@access_checked("job trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class TracesDescription:
    """One to four traces, and the verdicts on the paper's claims. Intervals have the confidence ``level``."""

    timezone: str
    seed: int
    level: float
    traces: list[TraceDescription]
    claims: list[PaperClaim]


@dataclass(frozen=True)
class _DescribedTrace:
    description: TraceDescription
    side: ComparedTrace


def describe_traces(
    traces: Sequence[JobTrace],
    *,
    timezone: str = "UTC",
    seed: int = 0,
    on_progress: Callable[[int], None] = lambda _: None,
) -> TracesDescription:
    """Describe traces and test the claims. ``on_progress`` is called with the number of finished traces.

    Each trace has its own random generator from ``seed``, so its numbers do not depend on the other traces.
    """
    if not 1 <= len(traces) <= MAX_TRACES:
        raise QueryError(f"1 to {MAX_TRACES} traces can be described together, not {len(traces)}")
    find_zone(timezone)
    described = []
    for trace in traces:
        if len(trace) == 0:
            raise QueryError(f"{trace.name} has no jobs", hint="Use a trace with at least one job.")
        described.append(_describe_trace(trace, timezone, np.random.default_rng(seed)))
        on_progress(len(described))
    return TracesDescription(
        timezone=timezone,
        seed=seed,
        level=LEVEL,
        traces=[trace.description for trace in described],
        claims=_test_claims(described, np.random.default_rng([seed, 1])),
    )


def _describe_trace(trace: JobTrace, timezone: str, random: np.random.Generator) -> _DescribedTrace:
    jobs = read_columns(trace)
    users = Resamples(jobs.user, random) if jobs.has_users else None
    waiting_jobs = count_waiting_at_submission(jobs)
    description = TraceDescription(
        name=trace.name,
        format=trace.format,
        kind=classify_system(jobs),
        size_unit=trace.size_unit,
        total_units=trace.total,
        jobs=len(jobs),
        dropped=trace.dropped,
        notes=list(trace.notes),
        epoch_s=jobs.epoch_s,
        first_submit_s=float(jobs.submit_s[0]),
        last_submit_s=float(jobs.submit_s[-1]),
        unit_hours=float(jobs.unit_s.sum()) / 3600,
        run_s=spread_values(jobs.run_s),
        size_units=spread_values(jobs.size),
        requested_s=spread_values(jobs.requested_s),
        arrivals=describe_arrivals(jobs, timezone),
        occupancy=describe_occupancy(jobs),
        waiting=None if np.isnan(jobs.wait_s).all() else describe_waiting(jobs, waiting_jobs),
        failures=describe_failures(jobs, users),
        users=describe_users(jobs, waiting_jobs, users, random),
        elapsed=measure_elapsed(jobs, random),
    )
    return _DescribedTrace(description, ComparedTrace(jobs, users))


def _test_claims(described: Sequence[_DescribedTrace], random: np.random.Generator) -> list[PaperClaim]:
    """Takeaway 1 and the other comparisons first, then each takeaway for each trace and for all traces."""
    compared = compare_systems([trace.side for trace in described], random)
    ends = [judge_ends(trace.description.name, trace.description.failures) for trace in described]
    larger, longer = [pair[0] for pair in ends], [pair[1] for pair in ends]
    elapsed = [judge_prediction(trace.description.name, trace.description.elapsed) for trace in described]
    claims = list(compared)
    for group in (larger, longer, elapsed):
        joined = join_claims(group)
        claims += [*([joined] if joined else []), *group]
    return claims
