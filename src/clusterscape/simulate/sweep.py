"""Many simulations of one trace: which there are to do, and how one is done. Pure and picklable, so that any process may do it.

Where they run, and where results are kept, is the caller's affair.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import product

from clusterscape.simulate.batch import (
    RELAXED,
    Backfill,
    BackfillKind,
    BatchJobs,
    Estimates,
    Measures,
    Scenario,
    Semantics,
    Spread,
    compute_measures,
    find_policy,
    measure_spread,
    simulate,
)


@dataclass(frozen=True, slots=True)
class Point:
    """One choice of order and backfilling."""

    policy: str
    backfill: Backfill


@dataclass(frozen=True, slots=True)
class Base:
    """What all points of a sweep have in common."""

    jobs: BatchJobs
    total_processors: int
    estimates: Estimates
    semantics: Semantics
    jitter_runs: int = 0
    seed: int = 0

    def scenario(self, point: Point) -> Scenario:
        """The simulation of one point."""
        policy = find_policy(point.policy)
        return Scenario(self.jobs, self.total_processors, policy, point.backfill, self.estimates, self.semantics)

    def fingerprint(self, point: Point) -> str:
        """Names the result of a point: the scenario's own, the jittered runs and their seed."""
        asked = f"{self.scenario(point).fingerprint()} {self.jitter_runs} {self.seed}"
        return hashlib.sha256(asked.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class PointResult:
    """What came of a point; ``measures`` None where there was nothing to measure."""

    fingerprint: str
    measures: Measures | None
    spreads: dict[str, Spread]

    def to_json(self) -> dict[str, object]:
        """As it is kept."""
        return asdict(self)

    @classmethod
    def from_json(cls, kept: dict[str, object]) -> "PointResult":
        """The inverse of `to_json`. Raises TypeError, KeyError or ValueError for anything else."""
        measures, spreads = kept["measures"], kept["spreads"]
        if not isinstance(spreads, dict) or not (measures is None or isinstance(measures, dict)):
            raise TypeError("not a kept result")
        return cls(
            str(kept["fingerprint"]),
            None if measures is None else Measures(**measures),
            {name: Spread(**spread) for name, spread in spreads.items()},
        )

    def best(self, name: str) -> float | None:
        """A measure: its mean over jittered runs where there were any."""
        if name in self.spreads:
            return self.spreads[name].mean
        value = None if self.measures is None else getattr(self.measures, name)
        return None if value is None else float(value)


def plan_points(
    policies: Iterable[str], kinds: Iterable[BackfillKind], shares: Iterable[float], queues: Iterable[float]
) -> list[Point]:
    """All combinations that differ: a factor matters only to relaxed ways, a queue length only to adaptive ones."""
    points: dict[Point, None] = {}
    for policy, kind, share, queue in product(policies, kinds, shares, queues):
        backfill = Backfill(
            kind,
            share if kind in RELAXED else Backfill().share,
            queue if kind == "adaptive" else Backfill().whole_at,
        )
        points[Point(policy, backfill)] = None
    return list(points)


def run_point(base: Base, point: Point) -> PointResult:
    """Simulate one point."""
    scenario = base.scenario(point)
    measures = compute_measures(simulate(scenario))
    spreads = measure_spread(scenario, simulate, runs=base.jitter_runs, seed=base.seed) if base.jitter_runs else {}
    return PointResult(base.fingerprint(point), measures, spreads)


def find_frontier(results: list[tuple[float, float]]) -> list[bool]:
    """Which of (wait, violation) no other beats in both."""
    return [not any(other != own and other[0] <= own[0] and other[1] <= own[1] for other in results) for own in results]
