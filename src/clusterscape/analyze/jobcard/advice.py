"""What would have been enough for an ended job: memory, cores, time limit, GPUs, GPU model, MIG instance. Pure.

Each piece rests on the job and on similar past jobs (same user, same name without numbers). It has a margin, and none is given
with which a past job would have failed: no less memory than a job used or was killed with, no shorter limit than a job ran for
or was ended at, no smaller GPU on which a job would not have fit into its memory or its time limit.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from clusterscape.analyze.jobcard.rounding import format_bytes, format_clock, suggest_memory_gib
from clusterscape.model import WorkloadState
from clusterscape.model.job_summaries import JobSummary

MIN_RUN_S = 300
MIN_LIMIT_RUN_S = 60
WORTH = 0.75
"""Advice is given where at most this share of what was asked for would have been enough."""
GIB = 2**30
SPARED_MEMORY_PER_GPU = 50 * GIB
TIME_MARGIN, TIME_MARGIN_OF_FEW, FEW = 1.2, 1.5, 3
CORES_MARGIN = 1.1
GPU_CORES_MARGIN = 1.25
GPU_MEMORY_MARGIN = 1.2
MORE_MEMORY = 1.5
"""After the kernel ended a job for its memory, how much more to try."""
LOW_UTIL = 0.15
COMPUTE_SLICES = 7
SLOWEST_MODEL = 3.0
"""Assumed: a smaller model takes at most this much longer for the same kernels."""
_PROFILE = re.compile(r"(\d+)g\.(\d+)gb", re.IGNORECASE)
_LIMIT_STEPS_S = (300, 900, 1800, 3600, 4 * 3600, 12 * 3600, 86_400)


class AdviceKind(StrEnum):
    """What a piece of advice is about."""

    MEMORY = "memory"
    CORES = "cores"
    TIME_LIMIT = "time_limit"
    GPUS = "gpus"
    GPU_MODEL = "gpu_model"
    MIG = "mig"


class SavedUnit(StrEnum):
    """What is saved."""

    GPU_HOURS = "gpu_hours"
    CORE_HOURS = "core_hours"
    GIB_HOURS = "gib_hours"
    HOURS = "hours"  # of the time limit


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAdvice:
    """One piece of advice. ``asked`` and ``enough`` are numbers of the kind: bytes per node, cores, seconds, GPUs.

    ``option``: what to write into the job script. ``saved``: by this job. ``basis``: jobs that it rests on, this one included.
    ``model``: the GPU model or MIG profile.
    """

    kind: AdviceKind
    option: str
    asked: float
    enough: float
    saved: float | None
    saved_unit: SavedUnit | None
    basis: int
    text: str
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuOffer:
    """GPU models of the cluster and their memory in bytes, and the profiles of its MIG instances."""

    models: Mapping[str, float]
    mig_profiles: tuple[str, ...] = ()


def find_advice(job: JobSummary, similar: Sequence[JobSummary], offer: GpuOffer) -> list[JobAdvice]:
    """All advice on an ended job, the most valuable first. ``similar``: past jobs of its family, without itself."""
    past = [other for other in similar if other.workload != job.workload]
    pieces = (
        _advise_gpus(job, past),
        _advise_mig(job, past, offer),
        _advise_model(job, past, offer),
        _advise_memory(job, past),
        _advise_cores(job, past),
        _advise_limit(job, past),
    )
    return [piece for piece in pieces if piece is not None]


def _advise_gpus(job: JobSummary, past: Sequence[JobSummary]) -> JobAdvice | None:
    alike = [other for other in past if other.gpus == job.gpus and other.gpus_unused is not None]
    if not job.gpus_unused or job.run_s < MIN_RUN_S:
        return None
    unused = min([job.gpus_unused, *(other.gpus_unused or 0 for other in alike)])
    if not unused:
        return None
    enough, hours = job.gpus - unused, job.run_s / 3600
    text = (
        f"None of its {_count(job.gpus, 'GPU')} was used: ask for none."
        if not enough
        else f"{_count(enough, 'GPU')} instead of {job.gpus}: {_was(unused)} never used."
    )
    return JobAdvice(
        kind=AdviceKind.GPUS,
        option=f"--gpus={enough}",
        asked=job.gpus,
        enough=enough,
        saved=unused * hours,
        saved_unit=SavedUnit.GPU_HOURS,
        basis=1 + len(alike),
        text=text,
    )


def _was(count: int) -> str:
    return f"{count} was" if count == 1 else f"{count} were"


def _is_low_on_gpu(jobs: Iterable[JobSummary]) -> bool:
    """Whether each job that was measured left its GPUs mostly idle."""
    ratios = [job.gpu_util_ratio for job in jobs if job.gpu_util_ratio is not None]
    return bool(ratios) and all(0 < ratio < LOW_UTIL for ratio in ratios)


def _fits_limit(jobs: Iterable[JobSummary], slowdown: float) -> bool:
    """Whether each job would still end in time if its GPU work took ``slowdown`` times as long."""
    return all(
        job.time_limit_s is None
        or job.state is WorkloadState.TIMEOUT
        or job.run_s * (1 + (job.gpu_util_ratio or 0.0) * (slowdown - 1)) <= job.time_limit_s
        for job in jobs
    )


def _gpu_memory_need(jobs: Iterable[JobSummary]) -> float | None:
    """The memory that each GPU needs, with a margin; None if a job with GPUs was not measured."""
    peaks = [job.gpu_memory_peak_bytes for job in jobs]
    measured = [peak for peak in peaks if peak is not None]
    return GPU_MEMORY_MARGIN * max(measured) if measured and len(measured) == len(peaks) else None


def _gpu_jobs(job: JobSummary, past: Sequence[JobSummary]) -> list[JobSummary]:
    return [job, *(other for other in past if other.gpus and other.gpu_util_ratio is not None)]


def _advise_mig(job: JobSummary, past: Sequence[JobSummary], offer: GpuOffer) -> JobAdvice | None:
    jobs = _gpu_jobs(job, past)
    need = _gpu_memory_need(jobs)
    if job.gpus != 1 or job.run_s < MIN_RUN_S or need is None or not _is_low_on_gpu(jobs):
        return None
    if any(other.gpus != 1 for other in jobs) or job.gpu_util_ratio is None:
        return None
    busiest = max(other.gpu_util_ratio or 0.0 for other in jobs)
    for slices, memory, profile in sorted(_read_profiles(offer.mig_profiles)):
        share = slices / COMPUTE_SLICES
        if memory >= need and share >= busiest and _fits_limit(jobs, 1 / share):
            return JobAdvice(
                kind=AdviceKind.MIG,
                option=f"--gres=gpu:{profile}:1",
                asked=1,
                enough=share,
                saved=(1 - share) * job.run_s / 3600,
                saved_unit=SavedUnit.GPU_HOURS,
                basis=len(jobs),
                text=f"A MIG instance {profile} instead of a whole GPU: the GPU was {job.gpu_util_ratio:.0%} busy and used "
                f"{format_bytes(job.gpu_memory_peak_bytes or 0.0)} of its memory.",
                model=profile,
            )
    return None


def _read_profiles(profiles: Iterable[str]) -> list[tuple[int, float, str]]:
    """Compute slices, memory and name of each MIG profile."""
    matches = ((profile, _PROFILE.fullmatch(profile)) for profile in profiles)
    return [(int(match[1]), float(match[2]) * 1e9, profile) for profile, match in matches if match is not None]


def _advise_model(job: JobSummary, past: Sequence[JobSummary], offer: GpuOffer) -> JobAdvice | None:
    jobs, own = _gpu_jobs(job, past), (job.resource_type or "").rpartition("-")[0]
    need, memory = _gpu_memory_need(jobs), offer.models.get(own) or job.gpu_memory_total_bytes
    if not job.gpus or job.run_s < MIN_RUN_S or need is None or memory is None or job.gpu_util_ratio is None:
        return None
    if not _is_low_on_gpu(jobs) or not _fits_limit(jobs, SLOWEST_MODEL):
        return None
    smaller = [(size, model) for model, size in offer.models.items() if model != own and need <= size <= WORTH * memory]
    if not smaller:
        return None
    size, model = max(smaller)
    gpus = "GPU was" if job.gpus == 1 else "GPUs were"
    return JobAdvice(
        kind=AdviceKind.GPU_MODEL,
        option=f"--gpus={model.lower()}:{job.gpus}",
        asked=memory,
        enough=size,
        saved=job.gpus * job.run_s / 3600,
        saved_unit=SavedUnit.GPU_HOURS,
        basis=len(jobs),
        text=f"{model} instead of {own or 'the larger model'}: the {gpus} {job.gpu_util_ratio:.0%} busy and used at most "
        f"{format_bytes(job.gpu_memory_peak_bytes or 0.0)} of memory. Frees GPUs of the larger model.",
        model=model,
    )


def _limit_per_node(job: JobSummary) -> float | None:
    total = job.memory_limit_bytes if job.memory_limit_bytes is not None else job.memory_requested_bytes
    return None if total is None or not job.nodes else total / job.nodes


def _advise_memory(job: JobSummary, past: Sequence[JobSummary]) -> JobAdvice | None:
    own_limit = _limit_per_node(job)
    if own_limit is None:
        return None
    killed = [
        limit
        for other in (job, *past)
        if other.state is WorkloadState.OUT_OF_MEMORY and (limit := _limit_per_node(other)) is not None
    ]
    if job.state is WorkloadState.OUT_OF_MEMORY:
        return _advise_more_memory(job, past, own_limit, max(killed))
    measured = [other for other in (job, *past) if other.memory_peak_bytes is not None]
    if job.memory_peak_bytes is None or job.run_s < MIN_RUN_S:
        return None
    if job.gpus and own_limit * job.nodes / job.gpus < SPARED_MEMORY_PER_GPU:
        return None
    peak = max([other.memory_peak_bytes or 0.0 for other in measured] + killed)
    gib = suggest_memory_gib(peak / GIB)
    if gib * GIB > WORTH * own_limit:
        return None
    return JobAdvice(
        kind=AdviceKind.MEMORY,
        option=f"--mem={gib}G",
        asked=own_limit,
        enough=float(gib * GIB),
        saved=(own_limit / GIB - gib) * job.nodes * job.run_s / 3600,
        saved_unit=SavedUnit.GIB_HOURS,
        basis=len(measured),
        text=f"{gib} GB of memory{' per node' if job.nodes > 1 else ''} instead of {format_bytes(own_limit, is_limit=True)}: "
        f"{'the most that was used' if len(measured) > 1 else 'it used'} is {format_bytes(peak)}, and a fifth is margin.",
    )


def _advise_more_memory(job: JobSummary, past: Sequence[JobSummary], own_limit: float, killed: float) -> JobAdvice:
    """The job ran out of memory: what past jobs of the kind needed, or half as much again."""
    completed = [
        other.memory_peak_bytes
        for other in past
        if other.state is WorkloadState.COMPLETED and other.memory_peak_bytes is not None
    ]
    peak = max(completed, default=0.0)
    is_known = peak > killed
    gib = suggest_memory_gib(peak / GIB) if is_known else math.ceil(MORE_MEMORY * killed / GIB)
    why = (
        f"a similar job completed with {format_bytes(peak)}"
        if is_known
        else "half as much again; how much it needs is unknown, since it was ended before"
    )
    return JobAdvice(
        kind=AdviceKind.MEMORY,
        option=f"--mem={gib}G",
        asked=own_limit,
        enough=float(gib * GIB),
        saved=None,
        saved_unit=None,
        basis=1 + len(past),
        text=f"{gib} GB of memory{' per node' if job.nodes > 1 else ''}: {format_bytes(own_limit, is_limit=True)} were too "
        f"little ({why}).",
    )


def _busy_cores(job: JobSummary) -> float | None:
    mean = None if job.cpu_s is None or not job.run_s else job.cpu_s / job.run_s
    return max((cores for cores in (mean, job.peak_cores) if cores is not None), default=None)


def _advise_cores(job: JobSummary, past: Sequence[JobSummary]) -> JobAdvice | None:
    own = _busy_cores(job)
    if own is None or job.cpu_s is None or not job.cpus or job.run_s < MIN_RUN_S:
        return None
    alike = [other for other in past if other.gpus == job.gpus and _busy_cores(other) is not None]
    busy = max(own, *(_busy_cores(other) or 0.0 for other in alike)) if alike else own
    margin = GPU_CORES_MARGIN if job.gpus else CORES_MARGIN
    # A core that was busy all the time is one core, although its measured time is a little more.
    enough = 1 if busy <= 1.02 and not job.gpus else math.ceil(busy * margin - 0.02)
    enough = max(enough, job.gpus, job.nodes, 1)
    if enough > WORTH * job.cpus:
        return None
    reason = "one core was busy at most: its code may be serial" if enough == 1 else f"at most {busy:.1f} were busy"
    return JobAdvice(
        kind=AdviceKind.CORES,
        option=f"--cpus-per-task={enough}" if job.nodes == 1 else f"--ntasks={enough}",
        asked=job.cpus,
        enough=enough,
        saved=(job.cpus - enough) * job.run_s / 3600,
        saved_unit=SavedUnit.CORE_HOURS,
        basis=1 + len(alike),
        text=f"{_count(enough, 'core')} instead of {job.cpus}: {reason}.",
    )


def _advise_limit(job: JobSummary, past: Sequence[JobSummary]) -> JobAdvice | None:
    if not job.time_limit_s:
        return None
    jobs = [job, *past]
    longest = max(other.run_s for other in jobs)
    completed = [other.run_s for other in jobs if other.state is WorkloadState.COMPLETED]
    if job.state is WorkloadState.TIMEOUT:
        return _advise_longer_limit(job, completed)
    if job.state is not WorkloadState.COMPLETED or job.run_s < MIN_LIMIT_RUN_S:
        return None
    ended_at_limit = [other.time_limit_s or 0 for other in jobs if other.state is WorkloadState.TIMEOUT]
    margin = TIME_MARGIN if len(completed) >= FEW else TIME_MARGIN_OF_FEW
    enough = round_limit_s(margin * max([longest, *ended_at_limit]))
    if enough > WORTH * job.time_limit_s:
        return None
    text = (
        f"A time limit of {format_clock(enough)} instead of {format_clock(job.time_limit_s)}: it ran for "
        f"{format_clock(job.run_s)}"
    )
    if longest > job.run_s:
        text += f", the longest of {len(jobs)} similar jobs for {format_clock(longest)}"
    return JobAdvice(
        kind=AdviceKind.TIME_LIMIT,
        option=f"--time={format_clock(enough)}",
        asked=job.time_limit_s,
        enough=enough,
        saved=(job.time_limit_s - enough) / 3600,
        saved_unit=SavedUnit.HOURS,
        basis=len(jobs),
        text=f"{text}.",
    )


def _advise_longer_limit(job: JobSummary, completed: Sequence[float]) -> JobAdvice | None:
    """The job was ended at its limit, and similar jobs needed longer."""
    assert job.time_limit_s is not None
    longest = max(completed, default=0.0)
    enough = round_limit_s(TIME_MARGIN * longest)
    if longest <= job.time_limit_s:
        return None
    return JobAdvice(
        kind=AdviceKind.TIME_LIMIT,
        option=f"--time={format_clock(enough)}",
        asked=job.time_limit_s,
        enough=enough,
        saved=None,
        saved_unit=None,
        basis=1 + len(completed),
        text=f"A time limit of {format_clock(enough)}: a similar job completed after {format_clock(longest)}.",
    )


def round_limit_s(seconds: float) -> int:
    """A limit as people write it: of a whole number of 5 minutes, quarter hours, half hours … days."""
    for step in _LIMIT_STEPS_S:
        if seconds <= 6 * step:
            return math.ceil(seconds / step) * step
    return math.ceil(seconds / _LIMIT_STEPS_S[-1]) * _LIMIT_STEPS_S[-1]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
