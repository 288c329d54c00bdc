"""The card of a job, joined from its record and the samples of its nodes and GPUs, or of an ended job from its summary."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from clusterscape.analyze.jobcard.card import ComputedShare, JobShares, compute_shares
from clusterscape.analyze.jobcard.notes import compute_time_ratio, find_notes
from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model import NodeId, UnitId, UnixMs, Workload, WorkloadId, WorkloadState
from clusterscape.model.job_summaries import IDLE_BELOW, JobSummary, SummarySource, summarize
from clusterscape.model.job_usage import JobUsage, NodeUsage
from clusterscape.query.context import QueryContext
from clusterscape.query.jobs.advice import TimedAdvice, find_similar, read_advice
from clusterscape.query.jobs.answers import (
    JobCard,
    JobCardAdvice,
    JobCardGpu,
    JobCardNode,
    JobCardNote,
    JobCurve,
    JobShare,
    PastJob,
    PastJobs,
)
from clusterscape.query.jobs.curves import read_curves
from clusterscape.query.jobs.usage import JobWindow, find_held, read_usage
from clusterscape.query.past import PastPictures
from clusterscape.query.search import qualify
from clusterscape.query.workloads import WorkloadQuery

KEPT_ADVICE = 200
LISTED_SIMILAR = 5
SHORTEST_S = 60
"""A job that ran for less may have ended between two samples."""


class JobQuery:
    """Queries on single jobs."""

    def __init__(self, context: QueryContext, workloads: WorkloadQuery, past: PastPictures) -> None:
        self._context = context
        self._workloads = workloads
        self._past = past
        self._advice = context.new_cache("advice on jobs", KEPT_ADVICE)

    def card(self, job: str) -> JobCard:
        """The card of a job that runs or ran; raises QueryError if it never started."""
        record, summary = self._find(job)
        window = find_window(record, self._context.clock())
        if window is None:
            raise QueryError(
                f"{record.id} has not started, so it has no card", hint="`clusterscape sched why` says why it waits."
            )
        held = find_held(self._context, window)
        usage = summary.usage if summary is not None and summary.is_whole else read_usage(self._context, window, held)
        curves = read_curves(self._context, window, held, _most(usage))
        card = describe_card(window, usage, cluster=self._context.cluster, curves=curves)
        if summary is None and not record.state.is_active:
            busy = next((curve for curve in curves if curve.name == "cpu_cores"), None)
            peak = None if busy is None else max((value for value in busy.values if value is not None), default=None)
            summary = summarize(record, usage, source=SummarySource.SAMPLES, peak_cores=peak)
        if summary is None:
            return card
        return self._advise(card, summary)

    def _advise(self, card: JobCard, summary: JobSummary) -> JobCard:
        """The card with advice and similar past jobs, which take longer to find and do not change after the end."""
        key, version = ("advice", summary.workload), (summary.ended_at, summary.source)

        def find() -> tuple[list[JobCardAdvice], PastJobs | None]:
            similar = find_similar(self._context, summary)
            advice = read_advice(self._context, self._past, summary, similar)
            return [_describe_advice(piece) for piece in advice], _describe_similar(similar)

        advice, similar = self._advice.get(key, version, find)
        return replace(card, advice=advice, similar=similar)

    def _find(self, job: str) -> tuple[Workload, JobSummary | None]:
        """The record of a job, and its summary if it has ended; of a job whose record was removed, only the summary."""
        records = self._context.records
        try:
            record = self._workloads.find(job)
        except NotFoundError:
            summary = records.job_summary(WorkloadId(qualify(job)))
            if summary is None:
                raise
            return summary.workload_record, summary
        summary = None if record.state.is_active else records.job_summary(record.id)
        return record, summary if summary is not None and summary.ended_at == record.ended_at else None


def _most(usage: JobUsage) -> dict[str, float | None]:
    """What each curve may be at most."""
    shares, cores = compute_shares(usage), sum(node.cores or 0 for node in usage.nodes.values())
    return {
        "cpu_cores": float(cores) or None,
        "cpu_memory": shares.cpu_memory.total,
        "gpu_util": 1.0,
        "gpu_memory": None if shares.gpu_memory is None else shares.gpu_memory.total,
    }


def describe_card(window: JobWindow, usage: JobUsage, *, cluster: str, curves: list[JobCurve]) -> JobCard:
    """The card, from the job's record and what it used."""
    record, shares = window.workload, compute_shares(usage)
    is_running = record.state in (WorkloadState.RUNNING, WorkloadState.SUSPENDED)
    cores = sum(node.cores or 0 for node in usage.nodes.values())
    notes = find_notes(usage, shares, state=record.state, kind=record.kind, time_limit_s=record.time_limit_s)
    return JobCard(
        cluster=cluster,
        workload=record.id,
        name=record.name,
        user=record.user,
        project=record.project,
        state=record.state,
        is_running=is_running,
        qos=record.qos,
        partition=record.partition,
        node_count=len(window.nodes) or record.nodes_requested or 0,
        cpus=record.cpus if record.cpus is not None else cores or None,
        memory_requested_bytes=record.memory_requested_bytes,
        gpus=window.gpu_count,
        started_at=window.start,
        ended_at=None if is_running else window.end,
        run_s=window.run_s,
        time_limit_s=record.time_limit_s,
        time_ratio=compute_time_ratio(window.run_s, record.state, record.time_limit_s),
        executions=len(record.earlier) + (record.started_at is not None and record.state is not WorkloadState.WAITING),
        exit_code=record.exit_code,
        exit_signal=record.exit_signal,
        cpu=describe_share(shares.cpu, truncates=True),
        cpu_memory=describe_share(shares.cpu_memory),
        gpu=None if shares.gpu is None else describe_share(shares.gpu),
        gpu_memory=None if shares.gpu_memory is None else describe_share(shares.gpu_memory),
        nodes=[_describe_node(name, node, usage.run_s) for name, node in usage.nodes.items()],
        gpu_hours=window.run_s * window.gpu_count / 3600,
        wasted_gpu_hours=_wasted_hours(usage),
        curves=curves,
        notes=[JobCardNote(code=note.code, level=note.level, text=note.text) for note in notes],
        advice=[],
        similar=None,
        hint=_explain_missing(window, shares),
    )


def _describe_advice(timed: TimedAdvice) -> JobCardAdvice:
    piece = timed.advice
    return JobCardAdvice(
        kind=piece.kind,
        text=piece.text,
        option=piece.option,
        asked=piece.asked,
        enough=piece.enough,
        saved=piece.saved,
        saved_unit=piece.saved_unit,
        sooner_s=timed.sooner_s,
        basis=piece.basis,
    )


def _describe_similar(similar: Sequence[JobSummary]) -> PastJobs | None:
    if not similar:
        return None
    runs = [job.run_s for job in similar]
    return PastJobs(
        count=len(similar),
        completed=sum(job.state is WorkloadState.COMPLETED for job in similar),
        median_run_s=median(runs),
        longest_run_s=max(runs),
        latest=[
            PastJob(
                workload=job.workload,
                state=job.state,
                ended_at=job.ended_at,
                run_s=job.run_s,
                gpus=job.gpus,
                gpu_util_ratio=job.gpu_util_ratio,
                memory_peak_bytes=job.memory_peak_bytes,
            )
            for job in similar[:LISTED_SIMILAR]
        ],
    )


def find_window(record: Workload, now: UnixMs) -> JobWindow | None:
    """The latest execution; None if the job never started."""
    run_s = record.run_s(now)
    if run_s is not None and record.started_at is not None:
        start, end, gpus = record.started_at, record.ended_at or now, record.gpus_held
    elif record.earlier:
        latest = record.earlier[-1]
        start, end, run_s, gpus = latest.started_at, latest.ended_at, latest.run_s, latest.gpus
    else:
        return None
    return JobWindow(
        workload=record,
        start=start,
        end=UnixMs(max(start, end)),
        run_s=run_s,
        gpu_count=gpus,
        nodes=tuple(NodeId(node) for node in record.nodes),
    )


def describe_share(share: ComputedShare, *, truncates: bool = False) -> JobShare:
    """A share with its whole percent. ``truncates``: as jobstats does for CPU, of one decimal."""
    percent = None
    if share.ratio is not None:
        percent = int(round(100 * share.ratio, 1)) if truncates else round(100 * share.ratio)
    return JobShare(used=share.used, total=share.total, ratio=share.ratio, percent=percent, problem=share.problem)


def _describe_node(name: str, node: NodeUsage, run_s: float) -> JobCardNode:
    total = None if node.cores is None else run_s * node.cores
    return JobCardNode(
        node=name,
        cores=node.cores,
        cpu_s=node.cpu_s,
        cpu_ratio=None if node.cpu_s is None or not total else node.cpu_s / total,
        memory_used_bytes=node.memory_used_bytes,
        memory_limit_bytes=node.memory_limit_bytes,
        gpus=[
            JobCardGpu(
                unit=UnitId(f"{name}:{index}"),
                index=index,
                util_ratio=gpu.util_ratio,
                memory_used_bytes=gpu.memory_used_bytes,
                memory_total_bytes=gpu.memory_total_bytes,
            )
            for index, gpu in node.gpus.items()
        ],
    )


def _wasted_hours(usage: JobUsage) -> float | None:
    """GPU-hours of GPUs whose mean utilization is idle, as in the cluster's waste."""
    ratios = [gpu.util_ratio for node in usage.nodes.values() for gpu in node.gpus.values()]
    sampled = [ratio for ratio in ratios if ratio is not None]
    return usage.run_s / 3600 * sum(ratio < IDLE_BELOW for ratio in sampled) if sampled else None


def _explain_missing(window: JobWindow, shares: JobShares) -> str | None:
    if shares.cpu.problem is None or shares.cpu.problem.value != "missing":
        return None
    if window.run_s < SHORTEST_S:
        return "The job was too short for samples of its CPU and memory; `seff` knows what Slurm accounted."
    return (
        "No exporter reports CPU and memory of this job on all of its nodes: add cgroup_exporter to collect.dcgm.targets, or to "
        "the Prometheus that is read."
    )
