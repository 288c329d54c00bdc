"""Behavior of a job's GPUs while it runs (phases, each a recorded shape with its own scaling), and the state of every GPU at
every moment: entries that refer to rows of parameters.

Built from the scenario and rebuilt when it is extended. Independent of metrics.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clusterscape.demo.jobs import Attempt, Behavior, DemoJob, Life
from clusterscape.demo.recorded import Mode, Shapes
from clusterscape.demo.scenario import DemoScenario
from clusterscape.model.arrays import Float32s, Float64s, Int32s, Int64s
from clusterscape.model.durations import MINUTE_S
from clusterscape.simulate.faults import FaultKind

FULL_RATIO = 0.985  # of the memory: above this, allocations fail


class BehaviorPhase(NamedTuple):
    """A phase, from ``start_s`` after the job's start to the next phase. Rates are those at full activity."""

    start_s: float
    mode: Mode
    cycle_s: float = 0.0  # one pass through a cyclic shape
    level: float = 1.0  # of the recorded utilization
    jitter: float = 0.0  # relative variation of utilization
    power: float = 1.0  # of the recorded dynamic power
    memory_ratio: float = 0.0  # of the GPU's memory, at the start of the phase
    memory_per_s: float = 0.0  # growth of that ratio
    sm: float = 0.85  # SM activity at full utilization
    tensor: float = 0.45  # tensor activity at full power
    nvlink: float = 0.0  # share of the link's bandwidth
    pcie_rx_bytes_per_s: float = 1.5e9
    pcie_tx_bytes_per_s: float = 0.4e9


IDLE = BehaviorPhase(
    start_s=0.0, mode=Mode.IDLE, level=0.0, sm=0.0, tensor=0.0, pcie_rx_bytes_per_s=2e4, pcie_tx_bytes_per_s=5e4
)
# Holds its GPUs and computes nothing.
_WAITING = IDLE._replace(mode=Mode.CONTEXT, level=1.0, pcie_rx_bytes_per_s=3e6, pcie_tx_bytes_per_s=1e6)


def plan_phases(demo: DemoJob) -> tuple[BehaviorPhase, ...]:
    """The phases of most of the job's GPUs, in order; the first starts at 0."""
    run_s = float(min(demo.job.run_s, demo.job.limit_s))
    is_leaking = demo.behavior is Behavior.MEMORY_LEAK
    memory_ratio = 0.3 + 0.2 * demo.draws[0] if is_leaking else 0.35 + 0.6 * demo.draws[0] ** 0.6
    loading_s = min(MINUTE_S * (1.0 + 3.0 * demo.draws[1]), 0.2 * run_s)
    loading = _WAITING._replace(
        memory_ratio=0.01, memory_per_s=(memory_ratio - 0.01) / loading_s, pcie_rx_bytes_per_s=4e9
    )
    main = _main_phase(demo)._replace(start_s=loading_s, memory_ratio=memory_ratio)
    turning_s = loading_s + (0.1 + 0.3 * demo.draws[2]) * (run_s - loading_s)
    match demo.behavior:
        case Behavior.STALLED:
            return loading, main, _stall(main, turning_s)
        case Behavior.IDLE_TAIL:
            return loading, main, _WAITING._replace(start_s=turning_s, memory_ratio=memory_ratio)
        case Behavior.MEMORY_LEAK:
            return loading, main._replace(memory_per_s=(FULL_RATIO - memory_ratio) / (run_s - loading_s))
        case Behavior.INTERACTIVE:
            return (loading, *_bursts(demo, main, run_s))
        case _:
            return loading, main


def plan_master_phases(demo: DemoJob) -> tuple[BehaviorPhase, ...] | None:
    """The phases of the first GPU of each node if it behaves differently; else None.

    It works on while the others wait for it: no pauses.
    """
    if demo.behavior is not Behavior.NODE_MASTER:
        return None
    loading, main = plan_phases(demo)
    busy = main._replace(
        mode=Mode.HEALTHY,
        cycle_s=0.0,
        level=0.79,
        power=0.85,
        memory_ratio=min(0.97, main.memory_ratio + 0.12),
        tensor=0.5,
        pcie_rx_bytes_per_s=7e9,
        pcie_tx_bytes_per_s=3e9,
    )
    return loading, busy


def _main_phase(demo: DemoJob) -> BehaviorPhase:
    """The training phase. Draws 3–6: whether it is fully busy, power level, frequency of pauses, mix of kernels."""
    _, _, _, busy, hard, pause, kernels, _ = demo.draws
    nvlink = 0.0 if demo.job.gpus == 1 else 0.06 + 0.16 * kernels
    level = 1.0 if busy < 0.6 else 0.45 + 0.5 * hard
    main = BehaviorPhase(
        start_s=0.0,
        mode=Mode.HEALTHY,
        level=level,
        jitter=0.0 if level == 1.0 else 0.08,
        power=level * (0.72 + 0.28 * hard),
        sm=0.7 + 0.25 * kernels,
        tensor=0.25 + 0.4 * kernels,
        nvlink=nvlink,
        pcie_rx_bytes_per_s=(0.5 + 3.0 * kernels) * 1e9,
        pcie_tx_bytes_per_s=(0.2 + 0.8 * kernels) * 1e9,
    )
    cycle_s = MINUTE_S * (60.0 + 200.0 * pause)  # four recorded cycles
    match demo.behavior:
        case Behavior.VALIDATION:
            mode = Mode.MIXED if pause < 0.4 else Mode.MIXED_LIGHT
            return main._replace(mode=mode, cycle_s=cycle_s)
        case Behavior.NODE_MASTER:
            return main._replace(
                mode=Mode.MIXED_LIGHT, cycle_s=cycle_s, level=0.48, jitter=0.12, power=0.58, nvlink=0.2
            )
        case Behavior.INPUT_BOUND:
            level = 1.0 + 4.0 * hard
            return main._replace(
                mode=Mode.INPUT_BOUND, level=level, jitter=0.1, power=0.8 + 0.4 * level, nvlink=0.1 * nvlink
            )
        case _:
            return main


def _stall(main: BehaviorPhase, start_s: float) -> BehaviorPhase:
    """A collective that never completes: a kernel spins on every GPU without progress."""
    return main._replace(
        start_s=start_s,
        mode=Mode.HANG,
        cycle_s=0.0,
        level=1.0,
        jitter=0.0,
        power=1.0,
        sm=0.07,
        tensor=0.0,
        nvlink=0.0,
        pcie_rx_bytes_per_s=2e6,
        pcie_tx_bytes_per_s=1e6,
    )


def _bursts(demo: DemoJob, main: BehaviorPhase, run_s: float) -> list[BehaviorPhase]:
    """An interactive session: short runs between long pauses."""
    count = 2 + int(3 * demo.draws[5])
    slot_s = (run_s - main.start_s) / count
    phases = []
    for slot in range(count):
        start_s = main.start_s + slot * slot_s
        share = 0.15 + 0.35 * ((demo.draws[6] + slot * 0.618) % 1.0)
        phases.append(main._replace(start_s=start_s))
        phases.append(_WAITING._replace(start_s=start_s + share * slot_s, memory_ratio=main.memory_ratio))
    return phases


IDLE_ROW = 0
DOWN_ROW = 1
_MAX_COUNTER_DAYS = 20  # maximum age of the energy counters at the origin


class _Order(IntEnum):
    """Order of entries with the same time; the last one applies."""

    FREED = 0
    DOWN = 1
    PHASE = 2


@dataclass(frozen=True, slots=True)
class TimelineRows:
    """Parameters by row; see BehaviorPhase. Times are relative to the entry's start."""

    mode: Int64s
    cycle_s: Float32s
    level: Float32s
    jitter: Float32s
    power: Float32s
    memory_ratio: Float32s
    memory_per_s: Float32s
    sm: Float32s
    tensor: Float32s
    nvlink: Float32s
    pcie_rx_bytes_per_s: Float32s
    pcie_tx_bytes_per_s: Float32s
    salt: NDArray[np.uint32]  # one number per job, the seed of noise common to its GPUs
    job: Int64s  # the job's id; 0: none


@dataclass(frozen=True, slots=True)
class Entries:
    """State changes of units, sorted by (unit, start). Unit u has the entries [first[u], first[u + 1]).

    ``energy_j`` is the unit's energy counter at the entry's start; it is reset when a node returns from a failure.
    """

    unit: Int32s
    start_ms: Int64s
    row: Int32s
    energy_j: Float64s
    first: Int64s


@dataclass(frozen=True, slots=True)
class TimelinePoints:
    """(unit, time) pairs in this order, without units that are down."""

    entry: Int64s
    unit: Int32s
    time_ms: Int64s


@dataclass(frozen=True, slots=True)
class _Plan:
    """The phases of one attempt: for each group of its GPUs, the rows and their start times."""

    attempt: Attempt
    groups: tuple[tuple[NDArray[np.int32], list[int], list[int]], ...]  # units, starts in ms, rows


class GpuTimeline:
    """Entries and rows of one scenario, as far as it is simulated."""

    def __init__(self, scenario: DemoScenario, shapes: Shapes) -> None:
        self._scenario = scenario
        self._shapes = shapes
        hardware = scenario.hardware
        units = [node.machine for node in hardware.nodes for _ in range(node.gpu_count)]
        rng = np.random.default_rng(scenario.seed)
        #: Watts at idle, and the range from there to the limit; GPUs of one model differ by a few percent.
        self.idle_watts: Float64s = np.array([machine.idle_watts for machine in units]) * rng.uniform(
            0.96, 1.04, len(units)
        )
        limits = np.array([machine.power_limit_watts for machine in units])
        self.span_watts: Float64s = (limits - self.idle_watts) * rng.uniform(0.97, 1.0, len(units))
        self._first_energy_j: Float64s = (
            rng.uniform(0.2, 1.0, len(units)) * _MAX_COUNTER_DAYS * 86_400 * self.idle_watts
        )
        self._phases: list[BehaviorPhase] = [IDLE, IDLE]
        self._jobs: list[int] = [0, 0]
        self._plans: list[_Plan] = []
        self._planned: dict[int, int] = {}  # job id -> attempts planned so far
        self._built_s = -1
        self.rows = self._build_rows()
        self.entries = self._build_entries()

    def refresh(self, until_ms: int) -> None:
        """Extend the timeline to ``until_ms``."""
        self._scenario.advance(until_ms)
        if self._built_s == self._scenario.end_s:
            return
        for life in self._scenario.lives.values():
            done = self._planned.get(life.demo.job.id, 0)
            if done < len(life.attempts):
                self._plans += [self._plan(life, attempt) for attempt in life.attempts[done:]]
                self._planned[life.demo.job.id] = len(life.attempts)
        self.rows = self._build_rows()
        self.entries = self._build_entries()
        self._built_s = self._scenario.end_s

    def grid(self, start_ms: int, step_ms: int, count: int) -> TimelinePoints:
        """The times start, start + step, … of every unit that is up at that time."""
        entries = self.entries
        # Each entry covers the grid columns from its start to the next entry's start.
        column = np.clip(-((start_ms - entries.start_ms) // step_ms), 0, count)
        following = np.append(column[1:], count)
        following[entries.first[1:] - 1] = count
        covered = np.where(entries.row == DOWN_ROW, 0, following - column)
        entry = np.repeat(np.arange(len(column)), covered)
        place = np.arange(len(entry)) - np.repeat(np.cumsum(covered) - covered, covered) + column[entry]
        return TimelinePoints(entry, entries.unit[entry], start_ms + place * step_ms)

    def energy_within(self, entry_row: NDArray[np.int32], unit: NDArray[np.int32], elapsed_s: Float64s) -> Float64s:
        """Joules used since the start of an entry: the integral of its shape, without noise."""
        shapes, rows = self._shapes, self.rows
        mode = rows.mode[entry_row]
        length = shapes.length[mode]
        cycle_s = rows.cycle_s[entry_row].astype(np.float64)
        cycles, place = np.divmod(elapsed_s, np.where(cycle_s > 0, cycle_s, 1.0))
        place *= length / np.where(cycle_s > 0, cycle_s, 1.0)
        sample = np.minimum(place.astype(np.int64), length - 1)
        index = shapes.offset[mode] + sample
        within = shapes.power_sum[index] + (place - sample) * shapes.power[index]
        relative_s = np.where(
            cycle_s > 0,
            cycles * cycle_s * shapes.power_mean[mode] + within / length * cycle_s,
            elapsed_s * shapes.power_mean[mode],
        )
        watts = self.span_watts[unit] * rows.power[entry_row]
        joules: Float64s = self.idle_watts[unit] * elapsed_s + watts * relative_s
        return joules

    def _plan(self, life: Life, attempt: Attempt) -> _Plan:
        demo = life.demo
        masters = plan_master_phases(demo)
        units = np.array(attempt.units, np.int32)
        groups = []
        if masters is not None:
            is_master = np.zeros(len(units), bool)
            is_master[:: demo.job.gpus_per_node] = True
            groups.append(self._add_phases(units[is_master], masters, life, attempt))
            units = units[~is_master]
        groups.append(self._add_phases(units, plan_phases(demo), life, attempt))
        return _Plan(attempt, tuple(groups))

    def _add_phases(
        self, units: NDArray[np.int32], phases: tuple[BehaviorPhase, ...], life: Life, attempt: Attempt
    ) -> tuple[NDArray[np.int32], list[int], list[int]]:
        first_row = len(self._phases)
        self._phases += phases
        self._jobs += [life.demo.job.id] * len(phases)
        starts = [attempt.start_s * 1000 + int(phase.start_s * 1000) for phase in phases]
        return units, starts, list(range(first_row, first_row + len(phases)))

    def _build_rows(self) -> TimelineRows:
        table = np.array(self._phases, np.float32).T
        columns = dict(zip(BehaviorPhase._fields, map(np.ascontiguousarray, table), strict=True))
        del columns["start_s"]
        mode = columns.pop("mode").astype(np.int64)
        job = np.array(self._jobs, np.int64)
        return TimelineRows(mode=mode, salt=(job * 2_654_435_761).astype(np.uint32), job=job, **columns)

    def _build_entries(self) -> Entries:
        pieces = [*self._origin_pieces(), *self._outage_pieces(), *self._attempt_pieces()]
        unit = np.concatenate([units for units, _, _, _ in pieces]).astype(np.int32)
        sizes = [len(units) for units, _, _, _ in pieces]
        start_ms = np.repeat(np.array([start for _, start, _, _ in pieces], np.int64), sizes)
        row = np.repeat(np.array([row for _, _, row, _ in pieces], np.int32), sizes)
        order = np.repeat(np.array([order for _, _, _, order in pieces], np.int8), sizes)
        sorting = np.lexsort((order, start_ms, unit))
        unit, start_ms, row = unit[sorting], start_ms[sorting], row[sorting]
        first = np.searchsorted(unit, np.arange(self._scenario.hardware.unit_count + 1))
        return Entries(unit, start_ms, row, self._energy_at_start(unit, start_ms, row, first), first)

    def _origin_pieces(self) -> list[tuple[NDArray[np.int32], int, int, _Order]]:
        units = np.arange(self._scenario.hardware.unit_count, dtype=np.int32)
        return [(units, self._scenario.origin_s * 1000, IDLE_ROW, _Order.FREED)]

    def _outage_pieces(self) -> list[tuple[NDArray[np.int32], int, int, _Order]]:
        pieces = []
        for outage in self._scenario.outages:
            if outage.kind is FaultKind.FAIL:
                node = self._scenario.hardware.nodes[outage.node]
                units = np.arange(node.first_unit, node.first_unit + node.gpu_count, dtype=np.int32)
                pieces.append((units, outage.from_s * 1000, DOWN_ROW, _Order.DOWN))
                pieces.append((units, outage.to_s * 1000, IDLE_ROW, _Order.FREED))
        return pieces

    def _attempt_pieces(self) -> list[tuple[NDArray[np.int32], int, int, _Order]]:
        pieces = []
        for plan in self._plans:
            end_ms = None if plan.attempt.end_s is None else plan.attempt.end_s * 1000
            for units, starts, rows in plan.groups:
                for start_ms, row in zip(starts, rows, strict=True):
                    if end_ms is None or start_ms < end_ms:
                        pieces.append((units, start_ms, row, _Order.PHASE))
                if end_ms is not None:
                    pieces.append((units, end_ms, IDLE_ROW, _Order.FREED))
        return pieces

    def _energy_at_start(self, unit: Int32s, start_ms: Int64s, row: Int32s, first: Int64s) -> Float64s:
        elapsed_s = np.append(np.diff(start_ms), 0) / 1000.0
        elapsed_s[first[1:] - 1] = 0.0  # the last entry of a unit is open
        used = self.energy_within(row, unit, elapsed_s)
        used[row == DOWN_ROW] = 0.0
        before = np.cumsum(used) - used
        # Accumulated since the unit's first entry, or since it last returned from a failure.
        is_return = np.append(False, row[:-1] == DOWN_ROW)
        is_return[first[:-1]] = True
        base = np.maximum.accumulate(np.where(is_return, np.arange(len(row)), 0))
        initial = np.where(base == first[unit], self._first_energy_j[unit], 0.0)
        energy: Float64s = before - before[base] + initial
        return energy
