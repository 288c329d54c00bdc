"""Many simulations of one trace: the list of points, and how to run one. Pure and picklable, so that any process can run it.

The caller decides where they run and where results are stored.
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
    """One combination of policy and backfilling."""

    policy: str
    backfill: Backfill


@dataclass(frozen=True, slots=True)
class Base:
    """The common input of all points of a sweep."""

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
        """A hash that identifies the result of a point: the scenario's fingerprint, the jittered runs and their seed."""
        key = f"{self.scenario(point).fingerprint()} {self.jitter_runs} {self.seed}"
        return hashlib.sha256(key.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class PointResult:
    """The result of a point; ``measures`` None if there was nothing to measure."""

    fingerprint: str
    measures: Measures | None
    spreads: dict[str, Spread]

    def to_json(self) -> dict[str, object]:
        """The result as it is stored."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, object]) -> "PointResult":
        """The inverse of `to_json`. Raises TypeError, KeyError or ValueError for anything else."""
        measures, spreads = document["measures"], document["spreads"]
        if not isinstance(spreads, dict) or not (measures is None or isinstance(measures, dict)):
            raise TypeError("not a stored result")
        return cls(
            str(document["fingerprint"]),
            None if measures is None else Measures(**measures),
            {name: Spread(**spread) for name, spread in spreads.items()},
        )

    def best(self, name: str) -> float | None:
        """A measure: its mean over jittered runs if there were any, else the single value."""
        if name in self.spreads:
            return self.spreads[name].mean
        value = None if self.measures is None else getattr(self.measures, name)
        return None if value is None else float(value)


def plan_points(
    policies: Iterable[str], kinds: Iterable[BackfillKind], shares: Iterable[float], queues: Iterable[float]
) -> list[Point]:
    """All distinct combinations: a factor matters only to relaxed backfilling, a queue length only to adaptive backfilling."""
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
    """The Pareto frontier of (wait, violation): whether no other result is better in both."""
    return [
        not any(other != point and other[0] <= point[0] and other[1] <= point[1] for other in results)
        for point in results
    ]
