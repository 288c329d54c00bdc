"""Reads an nvidia-smi log for ``rules test``: one life per run and GPU; without run events, the log is one run."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path

import numpy as np

from clusterscape.analyze.rules.facts import LifeFacts
from clusterscape.analyze.stats.exact import ExactColumns, Series
from clusterscape.cli.unused_input import note_lines
from clusterscape.collect.recorded_logs import RunSpan, SmiLog, read_run_events, read_smi_log
from clusterscape.errors import SourceError
from clusterscape.model import NodeId, SampleBatch, UnitId, UnixMs, WorkloadId
from clusterscape.model.arrays import Float64s, Int64s

LOCAL = NodeId("local")
# Metric → metric of its limit in the log.
_LIMITS = {
    "power_watts": "power_limit_watts",
    "memory_used_bytes": "memory_total_bytes",
    "memory_free_bytes": "memory_total_bytes",
    "memory_reserved_bytes": "memory_total_bytes",
}


@dataclass(frozen=True, slots=True)
class RecordedLives:
    """Lives with all their samples, by start."""

    columns: ExactColumns
    facts: LifeFacts
    from_at: Int64s
    until_at: Int64s
    interval_ms: int  # median time between samples of a GPU
    skipped_lines: int


def read_recorded_lives(log_path: Path, events_path: Path | None, *, zone: tzinfo) -> RecordedLives:
    """The lives of a log, divided by run events if there are any."""
    log = read_smi_log(log_path, node=LOCAL, zone=zone)
    note_lines(str(log_path), log.read_lines, log.skipped_lines)
    runs = [_whole_log(log, log_path)] if events_path is None else read_run_events(events_path)
    return build_recorded_lives(log, runs)


def build_recorded_lives(log: SmiLog, runs: Sequence[RunSpan]) -> RecordedLives:
    """One life per run and GPU with samples during the run."""
    last_ms = int(log.samples.time_ms.max())
    lives = []
    for workload, run in enumerate(runs):
        until_ms = last_ms if run.until_at is None else int(run.until_at)
        for code, unit in enumerate(log.samples.units.values):
            if _holds(run, unit) and _samples_within(log.samples, code, run.from_at, until_ms):
                lives.append((workload, code, int(run.from_at), until_ms))
    if not lives:
        raise SourceError(
            "no run of the events overlaps with the log",
            hint="nvidia-smi writes local time: set its time zone with --timezone, such as Europe/Berlin.",
        )
    table = np.array(lives, dtype=np.int64)
    series = _cut(log.samples, table)
    return RecordedLives(
        columns=ExactColumns(series, len(table), limits=_limits(log.samples, table[:, 1])),
        facts=_facts(log, runs, table),
        from_at=table[:, 2],
        until_at=table[:, 3],
        interval_ms=_interval_ms(log.samples),
        skipped_lines=log.skipped_lines,
    )


def _whole_log(log: SmiLog, path: Path) -> RunSpan:
    # Before the first sample: samples at the start of a life do not count.
    first = UnixMs(int(log.samples.time_ms.min()) - 1)
    return RunSpan(WorkloadId(path.stem), path.stem, first, None)


def _holds(run: RunSpan, unit: str) -> bool:
    return not run.gpus or unit in {f"{LOCAL}:{index}" for index in run.gpus}


def _samples_within(samples: SampleBatch, unit: int, from_ms: int, until_ms: int) -> bool:
    return bool(np.any((samples.unit == unit) & (samples.time_ms >= from_ms) & (samples.time_ms <= until_ms)))


def _cut(samples: SampleBatch, table: Int64s) -> dict[str, Series]:
    series = {}
    for code, metric in enumerate(samples.metrics.values):
        is_metric = samples.metric == code
        unit, time_ms, value = samples.unit[is_metric], samples.time_ms[is_metric], samples.value[is_metric]
        parts = [np.nonzero((unit == life[1]) & (time_ms >= life[2]) & (time_ms <= life[3]))[0] for life in table]
        row = np.repeat(np.arange(len(table)), [len(part) for part in parts]).astype(np.int64)
        picked = np.concatenate(parts)
        series[metric] = Series.from_rows(row, time_ms[picked], value[picked], len(table))
    return series


def _limits(samples: SampleBatch, unit_of_row: Int64s) -> dict[str, Float64s]:
    limits = {}
    for metric, source in _LIMITS.items():
        code = samples.metrics.find(source)
        if code is None:
            continue
        by_unit = np.full(len(samples.units), np.nan)
        for unit in range(len(samples.units)):
            values = samples.value[(samples.metric == code) & (samples.unit == unit)]
            if len(values):
                by_unit[unit] = np.median(values)
        limits[metric] = by_unit[unit_of_row]
    return limits


def _interval_ms(samples: SampleBatch) -> int:
    times_ms = np.unique(samples.time_ms[samples.unit == samples.unit[0]])
    return int(np.median(np.diff(times_ms))) if len(times_ms) > 1 else 1000


def _facts(log: SmiLog, runs: Sequence[RunSpan], table: Int64s) -> LifeFacts:
    unknown = [None] * len(runs)
    units = [UnitId(log.samples.units.values[code]) for code in table[:, 1]]
    machines: list[str | None] = [None] * len(runs)
    for (workload, *_), unit in zip(table, units, strict=True):
        machines[workload] = log.gpu_names.get(unit)
    return LifeFacts(
        units=units,
        workload=table[:, 0],
        age_ms=table[:, 3] - table[:, 2],
        workloads=[run.workload for run in runs],
        users=unknown,
        projects=unknown,
        partitions=unknown,
        machine_types=machines,
        names=[run.name for run in runs],
        gpus=np.bincount(table[:, 0], minlength=len(runs)),
    )
