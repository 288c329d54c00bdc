"""What a rule on GPUs, nodes or sources would have done in a stored past. Importing this imports numba."""

from collections.abc import Generator, Iterator, Sequence

import numpy as np

from clusterscape.model import Unit, UnixMs
from clusterscape.model.rules import Rule, Violation
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records.contract import RecordStore
from clusterscape.watch.hardware_columns import (
    NOW_WITHIN_MS,
    HardwareColumns,
    HardwareRow,
    find_windows,
    list_rows,
    make_columns,
    read_series,
)
from clusterscape.watch.judging import add_values, judge
from clusterscape.watch.keeper import ViolationKeeper

SAMPLES_AT_ONCE = 4_000_000
EXPECTED_INTERVAL_MS = 15_000


def follow_hardware(
    rule: Rule, *, records: RecordStore, metrics: MetricStore, start_ms: UnixMs, end_ms: UnixMs, step_ms: int
) -> Generator[float, None, tuple[int, int, list[Violation]]]:
    """Judge all that is known now at every step of [start, end), a part of it at a time; yields the share that is done.

    Returns how many there are, how many of them could be judged at least once, and the violations.
    """
    rows, units = list_rows(rule.scope.subject, records), records.units()
    found: list[Violation] = []
    judged = done = 0
    for part in _in_parts(rule, rows, end_ms - start_ms):
        replay = _Replay(rule, part, units, metrics, start_ms, end_ms)
        for share in replay.run(start_ms, end_ms, step_ms):
            yield (done + share * len(part)) / len(rows)
        found += replay.violations()
        judged += replay.judged
        done += len(part)
    return len(rows), judged, found


def _in_parts(rule: Rule, rows: Sequence[HardwareRow], span_ms: int) -> Iterator[list[HardwareRow]]:
    """Rows of one node together, in parts whose samples fit into memory."""
    samples_each = max(1, span_ms // EXPECTED_INTERVAL_MS) * max(1, len(find_windows([rule])))
    most = max(1, SAMPLES_AT_ONCE // samples_each)
    part: list[HardwareRow] = []
    for row in sorted(rows, key=lambda row: row.subject):
        if len(part) >= most and row.subject != part[-1].subject:
            yield part
            part = []
        part.append(row)
    if part:
        yield part


class _Replay:
    def __init__(
        self,
        rule: Rule,
        rows: Sequence[HardwareRow],
        units: Sequence[Unit],
        metrics: MetricStore,
        start_ms: int,
        end_ms: int,
    ) -> None:
        self._rule = rule
        self._rows = rows
        windows = find_windows([rule])
        before_ms = max(NOW_WITHIN_MS, *(window or 0 for window in windows.values()))
        series = read_series(metrics, list(windows), rows, start_ms - before_ms, end_ms)
        self._columns = make_columns(series, rows, units)
        self._keeper = ViolationKeeper()
        self._ended: list[Violation] = []
        self._was_judged = np.zeros(len(rows), np.bool_)

    @property
    def judged(self) -> int:
        """Rows that could be judged at least once."""
        return int(self._was_judged.sum())

    def run(self, start_ms: int, end_ms: int, step_ms: int) -> Iterator[float]:
        """Judge step by step; yields the share that is done."""
        moments = [*range(start_ms + step_ms, end_ms, step_ms), end_ms]
        for number, moment in enumerate(moments, 1):
            self._judge(UnixMs(moment))
            yield number / len(moments)

    def _judge(self, at: UnixMs) -> None:
        columns = HardwareColumns(self._rows, self._columns, at)
        judged = judge([self._rule], columns, columns.facts(self._rule.scope.subject), at=at, gpus=columns.gpus)
        self._was_judged |= np.asarray(judged.verdicts.states[0] % 2 == 0)  # TRUE or FALSE
        turned = add_values(self._keeper.judge(judged.judgement), judged)
        self._ended += turned.stopped
        self._keeper.amend(turned.started)

    def violations(self) -> list[Violation]:
        """All of them; those still going on have no end."""
        return [*self._ended, *self._keeper.open.values()]
