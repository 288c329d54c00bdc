"""The shipped rules on a simulated cluster with known stalls, idle jobs and memory leaks."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pytest

from clusterscape.analyze.rules.evaluation import evaluate
from clusterscape.analyze.rules.facts import LifeFacts
from clusterscape.analyze.rules.shipped import shipped_rules
from clusterscape.analyze.stats.exact import ExactColumns, Series
from clusterscape.demo import DemoCluster
from clusterscape.demo.hardware import MachineType
from clusterscape.demo.jobs import Behavior, DemoJob
from clusterscape.demo.timeline import plan_phases
from clusterscape.model import Allocation, UnixMs

NOW_MS = 1_794_700_000_000
HOUR_MS = 3_600_000
STEP_MS = 120_000
LATELY_MS = 35 * 60_000  # the window of rules on the end of a lifetime, and some samples


@dataclass(frozen=True)
class Truth:
    """One running job."""

    behavior: Behavior
    turned_ms: int | None  # since when it stalls or idles


@dataclass(frozen=True)
class Outcome:
    truth: dict[str, Truth]
    workloads_by_rule: dict[str, set[str]]

    def behaviors(self, key: str) -> set[Behavior]:
        return {self.truth[workload].behavior for workload in self.workloads_by_rule[key]}

    def turned(self, behavior: Behavior) -> set[str]:
        """Jobs of a behavior that have shown it for long enough."""
        return {
            workload
            for workload, truth in self.truth.items()
            if truth.behavior is behavior and truth.turned_ms and truth.turned_ms <= NOW_MS - LATELY_MS
        }


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    """A day of 512 GPUs, evaluated at its end."""
    cluster = DemoCluster(gpus=512, seed=3, anchor_ms=UnixMs(NOW_MS))
    start = UnixMs(NOW_MS - 24 * HOUR_MS)
    _, allocations = cluster.history_records(start, UnixMs(NOW_MS))
    held = [allocation for allocation in allocations if allocation.to_at is None and allocation.from_at >= start]
    facts = _facts(held)
    columns = ExactColumns(_series(cluster, held, start), len(held), limits=_limits(cluster, held), at_ms=NOW_MS)
    rules = [shipped.rule for shipped in shipped_rules()]
    verdicts = evaluate(rules, columns, facts)
    workloads_by_rule: dict[str, set[str]] = {rule.key: set() for rule in rules}
    for rule, row in zip(*np.nonzero(verdicts.is_broken), strict=True):
        workloads_by_rule[rules[rule].key].add(held[row].workload)
    jobs = {f"slurm:{life.demo.native_id}": life.demo for life in cluster.scenario.lives.values()}
    truth: dict[str, Truth] = {
        allocation.workload: _truth(jobs[allocation.workload], allocation.from_at) for allocation in held
    }
    return Outcome(truth, workloads_by_rule)


def _truth(job: DemoJob, from_ms: int) -> Truth:
    turning = {Behavior.STALLED, Behavior.IDLE_TAIL}
    turned_ms = from_ms + round(plan_phases(job)[-1].start_s * 1000) if job.behavior in turning else None
    return Truth(job.behavior, turned_ms)


def _series(cluster: DemoCluster, held: list[Allocation], start: UnixMs) -> dict[str, Series]:
    row_of: dict[str, int] = {allocation.unit: row for row, allocation in enumerate(held)}
    parts = defaultdict(list)
    for part in cluster.history(start, UnixMs(NOW_MS), step_ms=STEP_MS):
        for batch in part.batches:
            rows = np.array([row_of.get(unit, -1) for unit in batch.units.values])[batch.unit]
            for code, metric in enumerate(batch.metrics.values):
                is_wanted = (batch.metric == code) & (rows >= 0)
                parts[metric].append((rows[is_wanted], batch.time_ms[is_wanted], batch.value[is_wanted]))
    from_ms = np.array([allocation.from_at for allocation in held])
    series = {}
    for metric, pieces in parts.items():
        row, time_ms, value = (np.concatenate(column) for column in zip(*pieces, strict=True))
        lives = time_ms >= from_ms[row]
        series[metric] = Series.from_rows(row[lives].astype(np.int64), time_ms[lives], value[lives], len(held))
    return series


def _limits(cluster: DemoCluster, held: list[Allocation]) -> dict[str, np.ndarray]:
    machines: dict[str, MachineType] = {node.name: node.machine for node in cluster.scenario.hardware.nodes}
    own = [machines[allocation.unit.partition(":")[0]] for allocation in held]
    return {
        "power_watts": np.array([machine.power_limit_watts for machine in own], np.float64),
        "memory_used_bytes": np.array([machine.memory_mib * 2.0**20 for machine in own]),
    }


def _facts(held: list[Allocation]) -> LifeFacts:
    workloads = list(dict.fromkeys(allocation.workload for allocation in held))
    places = {workload: place for place, workload in enumerate(workloads)}
    codes = np.array([places[allocation.workload] for allocation in held])
    unknown = [None] * len(workloads)
    return LifeFacts(
        units=[allocation.unit for allocation in held],
        workload=codes,
        age_ms=np.array([NOW_MS - allocation.from_at for allocation in held]),
        workloads=workloads,
        users=unknown,
        projects=unknown,
        partitions=unknown,
        machine_types=unknown,
        names=unknown,
        gpus=np.bincount(codes),
    )


def test_every_stall_and_nothing_else_is_found_when_it_has_lasted(outcome: Outcome) -> None:
    stalled = outcome.workloads_by_rule["stalled-training"] | outcome.workloads_by_rule["stalled-lately"]
    assert outcome.turned(Behavior.STALLED)
    assert outcome.turned(Behavior.STALLED) <= stalled
    assert outcome.behaviors("stalled-training") | outcome.behaviors("stalled-lately") == {Behavior.STALLED}


def test_every_idle_tail_is_found_when_it_has_lasted(outcome: Outcome) -> None:
    assert outcome.turned(Behavior.IDLE_TAIL)
    assert outcome.turned(Behavior.IDLE_TAIL) <= outcome.workloads_by_rule["idle-after-activity"]
    assert outcome.behaviors("idle-after-activity") <= {Behavior.IDLE_TAIL, Behavior.INTERACTIVE}


def test_only_leaks_are_called_leaks_when_memory_grows(outcome: Outcome) -> None:
    assert outcome.behaviors("memory-leak") == {Behavior.MEMORY_LEAK}


def test_waiting_for_input_is_found_when_it_has_run_for_a_while(outcome: Outcome) -> None:
    assert Behavior.INPUT_BOUND in outcome.behaviors("low-utilization")
    assert Behavior.STALLED not in outcome.behaviors("low-utilization")


def test_no_workload_is_reported_unused_or_hot_when_all_work(outcome: Outcome) -> None:
    assert not outcome.workloads_by_rule["never-used"]
    assert not outcome.workloads_by_rule["thermal-throttling"]
