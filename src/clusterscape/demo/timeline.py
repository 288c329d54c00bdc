"""What every GPU is doing at every moment: each GPU's time cut into entries, each entry pointing to a row of parameters.

Built from the course of events and rebuilt when that has grown. Knows nothing of metrics.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from clusterscape.demo.behavior import IDLE, Phase, plan_master_phases, plan_phases
from clusterscape.demo.lives import Attempt, Life
from clusterscape.demo.recorded import Shapes
from clusterscape.demo.scenario import Scenario
from clusterscape.simulate.faults import FaultKind

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Float32s = NDArray[np.float32]
Float64s = NDArray[np.float64]

IDLE_ROW = 0
DOWN_ROW = 1
_MAX_COUNTER_DAYS = 20  # how long a driver may have been loaded at the origin


class _Order(IntEnum):
    """Which of two entries of the same instant comes first; the last one holds."""

    FREED = 0
    DOWN = 1
    PHASE = 2


@dataclass(frozen=True, slots=True)
class Rows:
    """Parameters by row; see Phase. Times of a row count from its entry's start."""

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
    salt: NDArray[np.uint32]  # one number per job, from which noise common to its GPUs is made
    job: Int64s  # the job's id; 0: none


@dataclass(frozen=True, slots=True)
class Entries:
    """Sorted by (unit, start). The entries of unit u are [first[u], first[u + 1]).

    ``energy_j`` is the unit's energy counter at the entry's start; it begins anew when a node comes back from a failure.
    """

    unit: Int32s
    start_ms: Int64s
    row: Int32s
    energy_j: Float64s
    first: Int64s


@dataclass(frozen=True, slots=True)
class Points:
    """Moments of units, sorted by (unit, time); those of units that are down are left out."""

    entry: Int64s
    unit: Int32s
    time_ms: Int64s


@dataclass(frozen=True, slots=True)
class _Plan:
    """One attempt's phases: for each group of its GPUs, when which row begins."""

    attempt: Attempt
    groups: tuple[tuple[NDArray[np.int32], list[int], list[int]], ...]  # units, starts in ms, rows


class Timeline:
    """Entries and rows of one scenario, as far as its course of events is known."""

    def __init__(self, scenario: Scenario, shapes: Shapes) -> None:
        self._scenario = scenario
        self._shapes = shapes
        hardware = scenario.hardware
        units = [node.machine for node in hardware.nodes for _ in range(node.gpu_count)]
        rng = np.random.default_rng(scenario.seed)
        #: Watts at idle, and from there to the limit; cards of one model differ by a few percent.
        self.idle_watts: Float64s = np.array([machine.idle_watts for machine in units]) * rng.uniform(
            0.96, 1.04, len(units)
        )
        limits = np.array([machine.power_limit_watts for machine in units])
        self.span_watts: Float64s = (limits - self.idle_watts) * rng.uniform(0.97, 1.0, len(units))
        self._first_energy_j: Float64s = (
            rng.uniform(0.2, 1.0, len(units)) * _MAX_COUNTER_DAYS * 86_400 * self.idle_watts
        )
        self._phases: list[Phase] = [IDLE, IDLE]
        self._jobs: list[int] = [0, 0]
        self._plans: list[_Plan] = []
        self._planned: dict[int, int] = {}  # job id -> attempts planned so far
        self._built_s = -1
        self.rows = self._build_rows()
        self.entries = self._build_entries()

    def refresh(self, until_ms: int) -> None:
        """Make the timeline reach ``until_ms``."""
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

    def grid(self, start_ms: int, step_ms: int, count: int) -> Points:
        """The moments start, start + step, … of every unit that is up then."""
        entries = self.entries
        # Each entry covers the grid columns from its start to the next entry's start.
        column = np.clip(-((start_ms - entries.start_ms) // step_ms), 0, count)
        following = np.append(column[1:], count)
        following[entries.first[1:] - 1] = count
        covered = np.where(entries.row == DOWN_ROW, 0, following - column)
        entry = np.repeat(np.arange(len(column)), covered)
        place = np.arange(len(entry)) - np.repeat(np.cumsum(covered) - covered, covered) + column[entry]
        return Points(entry, entries.unit[entry], start_ms + place * step_ms)

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
        self, units: NDArray[np.int32], phases: tuple[Phase, ...], life: Life, attempt: Attempt
    ) -> tuple[NDArray[np.int32], list[int], list[int]]:
        first_row = len(self._phases)
        self._phases += phases
        self._jobs += [life.demo.job.id] * len(phases)
        starts = [attempt.start_s * 1000 + int(phase.start_s * 1000) for phase in phases]
        return units, starts, list(range(first_row, first_row + len(phases)))

    def _build_rows(self) -> Rows:
        table = np.array(self._phases, np.float32).T
        columns = dict(zip(Phase._fields, map(np.ascontiguousarray, table), strict=True))
        del columns["start_s"]
        mode = columns.pop("mode").astype(np.int64)
        job = np.array(self._jobs, np.int64)
        return Rows(mode=mode, salt=(job * 2_654_435_761).astype(np.uint32), job=job, **columns)

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
        # Counted from the unit's first entry, or from its last return from a failure.
        is_return = np.append(False, row[:-1] == DOWN_ROW)
        is_return[first[:-1]] = True
        base = np.maximum.accumulate(np.where(is_return, np.arange(len(row)), 0))
        initial = np.where(base == first[unit], self._first_energy_j[unit], 0.0)
        energy: Float64s = before - before[base] + initial
        return energy
