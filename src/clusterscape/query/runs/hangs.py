"""Who hangs in a job: the looks of all of its trackers joined and judged. A job on several machines has a run on each."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np
import polars as pl

from clusterscape.analyze.hang.joining import MachineLooks, join_looks
from clusterscape.analyze.hang.picture import report_hang
from clusterscape.errors import NotFoundError
from clusterscape.model.hangs import HangLook, HangReport, ProcessLook, is_consistent
from clusterscape.model.ids import UnitId, UnixMs, WorkloadId
from clusterscape.model.runs import RunRecord, StoredRun
from clusterscape.model.xids import find_xid
from clusterscape.query.context import QueryContext
from clusterscape.query.runs.answers import HangAnswer, HangList, HangRow

MOST_LISTED = 50
SAME_STALL_MS = 600_000
"""Looks of one job that lie further apart are of different stalls."""
KEPT_ANSWERS = 64
MOST_UNITS = 16_384
MOST_LOOK_BYTES = 128 * 2**20
"""Looks of one job that are joined, as JSON: those of about 7,000 ranks. Machines beyond count as without a look."""
MOST_NAMED = 6
GPU_METRICS = ("gpu_util_ratio", "power_watts", "power_limit_watts")
BUSY_RATIO, IDLE_RATIO = 0.95, 0.05
WAITING_POWER_RATIO = 0.5
"""A recorded H200 draws 121 of 700 W in a collective that waits, and 630 W and more in training."""
XID_BEFORE_MS = 600_000


class HangQuery:
    """Queries on runs that make no steps."""

    def __init__(self, context: QueryContext) -> None:
        self._context = context
        self._records = context.records
        self._answers: dict[tuple[tuple[str, int, int, int], ...], HangAnswer] = {}

    def one(self, run: str) -> HangAnswer:
        """Who hangs in the job of ``run``. Raises NotFoundError."""
        record = self._records.run_record(run)
        if record is None:
            raise NotFoundError(f"no run `{run}`", hint="GET /api/v1/runs lists them.")
        return self._answer(record, self._records.runs().records)

    def all(self, *, workload: str | None = None, limit: int = MOST_LISTED) -> HangList:
        """Jobs that were looked at, newest first. ``workload``: a run, or the Slurm job that runs belong to."""
        records = self._records.runs().records
        looked = [record for record in records if record.summary.ranks and record.summary.ranks.looked_at is not None]
        looked.sort(key=lambda record: -_looked_at(record))
        seen: set[tuple[str | None, str]] = set()
        rows: list[HangRow] = []
        for record in looked:
            about = record.summary.ranks
            assert about is not None
            if workload is not None and workload not in (record.workload, self._slurm_job(record)):
                continue
            key = (record.owned_by, about.job or record.run)
            if key in seen:
                continue
            seen.add(key)
            job = _same_job(record, records)
            shown = record if workload == record.workload else min(job, key=lambda other: other.run)
            rows += [row] if (row := _row_of(self._answer(shown, records), shown, job)) is not None else []
            if len(rows) == limit:
                break
        return HangList(rows=rows)

    def looked_elsewhere(self, run: str) -> int | None:
        """When another tracker of the job of ``run`` last looked at a stall that lasts; None: none did."""
        record = self._records.run_record(run)
        if record is None or record.summary.ranks is None or not record.summary.ranks.job:
            return None
        others = [other for other in _same_job(record, self._records.runs().records) if other.run != run]
        times = [
            _looked_at(other)
            for other in others
            if other.summary.ranks and other.summary.ranks.is_stalled and other.summary.end.state is None
        ]
        return max(times, default=None)

    def _slurm_job(self, record: RunRecord) -> WorkloadId | None:
        """The Slurm job that the tracker names, unless it is another user's: a tracker may name any."""
        ranks = record.summary.ranks
        if ranks is None or not ranks.slurm_job:
            return None
        job = WorkloadId(f"slurm:{ranks.slurm_job}")
        workload = self._records.workload(job)
        return job if workload is None or workload.user == record.owned_by else None

    def _answer(self, record: RunRecord, records: Sequence[RunRecord]) -> HangAnswer:
        job = _same_job(record, records)
        # Runs are written whenever samples arrive; only these change the answer.
        key = tuple((other.run, _looked_at(other), other.summary.end.at or 0, _went_on_at(other) or 0) for other in job)
        cached = self._answers.get(key)
        if cached is None:
            cached = self._join(record, job)
            while len(self._answers) >= KEPT_ANSWERS:
                self._answers.pop(next(iter(self._answers)), None)
            self._answers[key] = cached
        return replace(cached, run=record.run, workload=record.workload)

    def _with_telemetry(self, report: HangReport, job: Sequence[RunRecord], at: UnixMs) -> HangReport:
        """The report with what the GPUs of the job showed when it was looked at."""
        slurm_job = next(filter(None, map(self._slurm_job, job)), None)
        workloads = [other.workload for other in job] + ([slurm_job] if slurm_job else [])
        units = {
            allocation.unit
            for workload in workloads
            for allocation in self._context.records.allocations(workload=workload, start_ms=at, end_ms=UnixMs(at + 1))
        }
        if not units:
            return report
        names = [UnitId(unit) for unit in sorted(units)[:MOST_UNITS]]
        evidence = (*report.verdict.evidence, *self._describe_gpus(names, at), *self._describe_xids(names, at))
        return replace(report, verdict=replace(report.verdict, evidence=evidence))

    def _describe_gpus(self, units: Sequence[UnitId], at: UnixMs) -> list[str]:
        """Utilization against power: a GPU that waits in a collective is busy and draws little."""
        context = self._context
        latest = context.metrics.latest(GPU_METRICS, at_ms=at, lookback_ms=context.lookback_ms)
        latest = latest.filter(pl.col("unit").is_in(units)).drop_nulls("gpu_util_ratio")
        if latest.is_empty():
            return []
        busy = latest.filter(
            (pl.col("gpu_util_ratio") >= BUSY_RATIO)
            & (pl.col("power_watts") <= WAITING_POWER_RATIO * pl.col("power_limit_watts"))
        )
        idle = latest.filter(pl.col("gpu_util_ratio") <= IDLE_RATIO)["unit"].sort().to_list()
        lines = []
        if not busy.is_empty():
            share = float(np.median((busy["power_watts"] / busy["power_limit_watts"]).to_numpy()))
            lines.append(
                f"telemetry: {busy.height:,} of {latest.height:,} GPUs are at {BUSY_RATIO:.0%} utilization or more and draw "
                f"{share:.0%} of their power limit: they wait inside a kernel"
            )
        if idle:
            more = f" and {len(idle) - MOST_NAMED:,} more" if len(idle) > MOST_NAMED else ""
            verb = "is" if len(idle) == 1 else "are"
            lines.append(f"telemetry: {', '.join(idle[:MOST_NAMED])}{more} {verb} idle")
        return lines

    def _describe_xids(self, units: Sequence[UnitId], at: UnixMs) -> list[str]:
        begin = UnixMs(at - XID_BEFORE_MS)
        table = self._context.metrics.series(
            ["xid_error_code"], units, start_ms=begin, end_ms=UnixMs(at + 1), step_ms=None
        )
        if table.is_empty():
            return []
        changes = (
            table.sort("unit", "time_ms")
            .with_columns(before=pl.col("value").shift(1).over("unit"))
            .filter((pl.col("value") > 0) & pl.col("before").is_not_null() & (pl.col("value") != pl.col("before")))
        )
        return [
            f"{unit}: {find_xid(int(code)).describe()}"
            for unit, code in changes.select("unit", "value").head(MOST_NAMED).iter_rows()
        ]

    def _join(self, record: RunRecord, job: Sequence[RunRecord]) -> HangAnswer:
        newest = max(map(_looked_at, job))
        machines: list[MachineLooks] = []
        hosts: list[str] = []
        missing: list[str] = []
        room = MOST_LOOK_BYTES
        for other in job:
            stored = self._records.run(other.run)
            if stored is None or stored.damage is not None:
                continue
            room -= len(msgspec.json.encode(stored.detail.looks))
            is_of_stall = bool(stored.detail.looks) and newest - _looked_at(other) <= SAME_STALL_MS and room >= 0
            ended = _ended_ranks(stored, newest)
            if is_of_stall or ended:
                machines.append(MachineLooks(looks=_looks_of(stored) if is_of_stall else (), ended=ended))
            host = other.summary.about.host or other.run
            (hosts if is_of_stall else missing).append(host)
        looks = join_looks(machines)
        return HangAnswer(
            run=record.run,
            workload=record.workload,
            runs=[other.run for other in job],
            hosts=sorted(hosts),
            hosts_without_look=sorted(missing),
            looked_at=newest or None,
            went_on_at=max(filter(None, map(_went_on_at, job)), default=None),
            report=self._with_telemetry(report_hang(looks), job, UnixMs(newest)) if looks else None,
        )


def _same_job(record: RunRecord, records: Sequence[RunRecord]) -> list[RunRecord]:
    """The runs of the trackers of one job: they name the same meeting place, belong to one user, and overlap in time."""
    ranks = record.summary.ranks
    if ranks is None or not ranks.job:
        return [record]
    return [
        other
        for other in records
        if other.summary.ranks is not None
        and other.summary.ranks.job == ranks.job
        and other.summary.ranks.slurm_job == ranks.slurm_job
        and other.owned_by == record.owned_by
        and _overlap(record, other)
    ]


def _overlap(a: RunRecord, b: RunRecord) -> bool:
    def span(record: RunRecord) -> tuple[int, int]:
        moments = record.summary.moments
        return (moments.running or record.received_at or 0, moments.ended or 2**62)

    (begin_a, end_a), (begin_b, end_b) = span(a), span(b)
    return begin_a <= end_b and begin_b <= end_a


def _looked_at(record: RunRecord) -> int:
    return (record.summary.ranks.looked_at or 0) if record.summary.ranks is not None else 0


def _stalled_at(record: RunRecord) -> int | None:
    return record.summary.ranks.stalled_at if record.summary.ranks is not None else None


def _went_on_at(record: RunRecord) -> int | None:
    ranks = record.summary.ranks
    return ranks.went_on_at if ranks is not None and not ranks.is_stalled else None


def _looks_of(stored: StoredRun) -> list[HangLook]:
    looks = []
    for plain in stored.detail.looks:
        try:
            look = msgspec.convert(plain, HangLook, strict=False)
        except msgspec.ValidationError:
            continue
        if is_consistent(look):
            looks.append(look)
    return looks


def _ended_ranks(stored: StoredRun, newest: int) -> dict[int, ProcessLook]:
    """Ranks whose run ended before the others were looked at: they are what these wait for."""
    end = stored.summary.end
    if end.state is None or (end.at or 0) > newest:
        return {}
    process = ProcessLook(
        state="X",
        exit_code=end.exit_code,
        exit_signal=end.exit_signal,
        ran_out_of_memory=end.state == "out_of_memory",
    )
    return dict.fromkeys(stored.detail.ranks, process)


def _row_of(answer: HangAnswer, record: RunRecord, job: Sequence[RunRecord]) -> HangRow | None:
    report = answer.report
    if report is None or answer.looked_at is None:
        return None
    verdict = report.verdict
    return HangRow(
        run=answer.run,
        workload=answer.workload,
        kind=verdict.kind.value,
        title=verdict.title,
        place=verdict.place,
        ranks=list(verdict.ranks[:1024]),
        world_size=verdict.world_size,
        held_gpus=verdict.held_gpus,
        user=record.owned_by,
        name=record.summary.about.name,
        is_sure=verdict.is_hang,
        stalled_at=min(filter(None, map(_stalled_at, job)), default=answer.looked_at),
        looked_at=answer.looked_at,
        went_on_at=answer.went_on_at,
        is_over=not any(other.summary.ranks is not None and other.summary.ranks.is_stalled for other in job)
        or all(other.summary.end.state is not None for other in job),
    )
