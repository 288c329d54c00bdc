"""The whole description of one to four job traces as one document: geometries, failures, users, and the paper's claims tested."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.jobs.arrivals import Arrivals, describe_arrivals, find_zone
from clusterscape.analyze.jobs.columns import read_columns
from clusterscape.analyze.jobs.comparisons import Side, SystemKind, compare_systems, kind_of
from clusterscape.analyze.jobs.distributions import ValueSpread, spread_values
from clusterscape.analyze.jobs.elapsed import ElapsedTest, measure_elapsed
from clusterscape.analyze.jobs.failures import Failures, describe_failures
from clusterscape.analyze.jobs.intervals import Resamples
from clusterscape.analyze.jobs.occupancy import Occupancy, count_waiting_at_submission, describe_occupancy
from clusterscape.analyze.jobs.queueing import Waiting, describe_waiting
from clusterscape.analyze.jobs.takeaways import join_claims, judge_ends, judge_prediction
from clusterscape.analyze.jobs.users import UserBehavior, describe_users
from clusterscape.analyze.jobs.verdicts import PaperClaim
from clusterscape.errors import QueryError
from clusterscape.model.identity_fields import access_checked
from clusterscape.model.jobs import CleaningNote, JobTrace, SizeUnit

MOST_TRACES = 4
LEVEL = 0.95


@access_checked("job trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class TraceDescription:
    """One trace. Times in seconds; sizes and unit-hours in ``size_unit``.

    ``epoch_s`` added to a time of the trace gives Unix time; null where the trace does not say when it began. ``kind``: deep
    learning where jobs are measured in GPUs. ``total_units``: the machine's size, where it is stated. What the trace cannot
    answer is null: no ends, no waits, no users.
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
    waiting: Waiting | None
    failures: Failures | None
    users: UserBehavior
    elapsed: ElapsedTest | None


@access_checked("job trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class TracesDescription:
    """One to four traces side by side, and what the paper's claims come to on them. Intervals are of ``level``."""

    timezone: str
    seed: int
    level: float
    traces: list[TraceDescription]
    claims: list[PaperClaim]


@dataclass(frozen=True)
class _Described:
    description: TraceDescription
    side: Side


def describe_traces(
    traces: Sequence[JobTrace],
    *,
    timezone: str = "UTC",
    seed: int = 0,
    tell: Callable[[int], None] = lambda _: None,
) -> TracesDescription:
    """Describe traces and test the claims. ``tell`` hears how many traces are done.

    A trace gets the same numbers alone and beside others: each has its own generator from ``seed``.
    """
    if not 1 <= len(traces) <= MOST_TRACES:
        raise QueryError(f"1 to {MOST_TRACES} traces can be described side by side, not {len(traces)}")
    find_zone(timezone)
    described = []
    for trace in traces:
        if len(trace) == 0:
            raise QueryError(f"{trace.name} has no jobs", hint="There is nothing to describe.")
        described.append(_describe(trace, timezone, np.random.default_rng(seed)))
        tell(len(described))
    return TracesDescription(
        timezone=timezone,
        seed=seed,
        level=LEVEL,
        traces=[one.description for one in described],
        claims=_claims(described, np.random.default_rng([seed, 1])),
    )


def _describe(trace: JobTrace, timezone: str, random: np.random.Generator) -> _Described:
    jobs = read_columns(trace)
    users = Resamples(jobs.user, random) if jobs.has_users else None
    waiting_jobs = count_waiting_at_submission(jobs)
    description = TraceDescription(
        name=trace.name,
        format=trace.format,
        kind=kind_of(jobs),
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
    return _Described(description, Side(jobs, users))


def _claims(described: Sequence[_Described], random: np.random.Generator) -> list[PaperClaim]:
    """Takeaway 1 and the other comparisons first, then each takeaway for each trace and across them."""
    compared = compare_systems([one.side for one in described], random)
    ends = [judge_ends(one.description.name, one.description.failures) for one in described]
    larger, longer = [pair[0] for pair in ends], [pair[1] for pair in ends]
    elapsed = [judge_prediction(one.description.name, one.description.elapsed) for one in described]
    claims = list(compared)
    for group in (larger, longer, elapsed):
        joined = join_claims(group)
        claims += [*([joined] if joined else []), *group]
    return claims
