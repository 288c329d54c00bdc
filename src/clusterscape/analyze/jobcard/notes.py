"""Sentences on what a job's numbers say. Each states a fact with its number; thresholds are those of jobstats' settings."""

from dataclasses import dataclass
from enum import StrEnum

from clusterscape.analyze.jobcard.card import JobShares
from clusterscape.analyze.jobcard.rounding import format_bytes, suggest_memory_gib
from clusterscape.model import WorkloadKind, WorkloadState
from clusterscape.model.job_usage import JobUsage

MIN_RUN_S = 300
MIN_RUN_FOR_LIMIT_S = 900
MIN_INTERACTIVE_S = 8 * 3600
GPU_LOW, GPU_MODERATE = 0.15, 0.25
CPU_LOW, CPU_MODERATE = 0.65, 0.80
TIME_LOW, TIME_MODERATE = 0.10, 0.60
MEMORY_LOW = 0.70
SERIAL = (0.85, 1.01)
SPARED_MEMORY_PER_GPU = 50 * 2**30
"""Of a job with GPUs, memory is not noted below this: a GPU's share of the node is free to use."""


class NoteLevel(StrEnum):
    """How much a note matters."""

    CRITICAL = "critical"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNote:
    """One sentence; ``code`` does not change when its words change."""

    code: str
    level: NoteLevel
    text: str


def find_notes(
    usage: JobUsage, shares: JobShares, *, state: WorkloadState, kind: WorkloadKind, time_limit_s: int | None
) -> list[JobNote]:
    """All notes, the critical ones first."""
    notes = [
        *_unused(usage),
        *_gpu_notes(usage, shares, kind),
        *_ending_notes(usage, shares, state, time_limit_s),
        *_cpu_notes(usage, shares),
        *_memory_notes(usage, shares, state),
    ]
    return sorted(notes, key=lambda note: note.level is not NoteLevel.CRITICAL)


def _critical(code: str, text: str) -> JobNote:
    return JobNote(code=code, level=NoteLevel.CRITICAL, text=text)


def _info(code: str, text: str) -> JobNote:
    return JobNote(code=code, level=NoteLevel.INFO, text=text)


def _unused(usage: JobUsage) -> list[JobNote]:
    if usage.run_s <= MIN_RUN_S:
        return []
    notes = []
    gpus = [gpu for node in usage.nodes.values() for gpu in node.gpus.values()]
    unused = sum(gpu.util_ratio == 0 for gpu in gpus)
    if unused:
        notes.append(_critical("unused-gpus", f"{unused} of {max(usage.gpu_count, len(gpus))} GPUs were never used."))
    idle = sum(node.cpu_s == 0 for node in usage.nodes.values())
    if idle:
        notes.append(_critical("unused-nodes", f"The CPUs of {idle} of {len(usage.nodes)} nodes were never used."))
    return notes


def _gpu_notes(usage: JobUsage, shares: JobShares, kind: WorkloadKind) -> list[JobNote]:
    ratio = None if shares.gpu is None else shares.gpu.ratio
    least_s = MIN_INTERACTIVE_S if kind is WorkloadKind.SESSION else MIN_RUN_S
    if not ratio or ratio >= GPU_MODERATE or usage.run_s <= least_s:
        return []
    text = f"GPU utilization was {100 * ratio:.0f}% on average."
    return [_critical("low-gpu", text) if ratio <= GPU_LOW else _info("low-gpu", text)]


def _ending_notes(usage: JobUsage, shares: JobShares, state: WorkloadState, time_limit_s: int | None) -> list[JobNote]:
    if state is WorkloadState.OUT_OF_MEMORY:
        limit = shares.cpu_memory.total
        limit_text = f" It had {format_bytes(limit, is_limit=True)}." if limit else ""
        return [
            _critical("out-of-memory", f"The job was ended because it needed more CPU memory than it had.{limit_text}")
        ]
    if state is WorkloadState.TIMEOUT:
        return [_critical("timeout", "The job was ended at its time limit.")]
    ratio = compute_time_ratio(usage.run_s, state, time_limit_s)
    if ratio is None or ratio >= TIME_MODERATE or usage.run_s <= MIN_RUN_FOR_LIMIT_S:
        return []
    text = f"The job needed {100 * ratio:.0f}% of its time limit; shorter limits start sooner."
    return [_critical("long-limit", text) if ratio < TIME_LOW else _info("long-limit", text)]


def compute_time_ratio(run_s: float, state: WorkloadState, time_limit_s: int | None) -> float | None:
    """Run time of the limit, of a completed job with one."""
    if state is not WorkloadState.COMPLETED or not time_limit_s:
        return None
    return min(1.0, run_s / time_limit_s)


def _cpu_notes(usage: JobUsage, shares: JobShares) -> list[JobNote]:
    ratio, cores = shares.cpu.ratio, sum(node.cores or 0 for node in usage.nodes.values())
    if not ratio or usage.gpu_count or usage.run_s <= MIN_RUN_S:
        return []
    if len(usage.nodes) == 1 and cores > 1 and SERIAL[0] < ratio * cores < SERIAL[1]:
        return [_info("serial", f"The job used one of its {cores} CPU cores: its code may be serial.")]
    if ratio >= CPU_MODERATE:
        return []
    text = f"CPU utilization was {100 * ratio:.1f}%."
    return [_critical("low-cpu", text) if ratio < CPU_LOW else _info("low-cpu", text)]


def _memory_notes(usage: JobUsage, shares: JobShares, state: WorkloadState) -> list[JobNote]:
    share = shares.cpu_memory
    if share.ratio is None or share.total is None or share.used is None or share.ratio >= MEMORY_LOW:
        return []
    if usage.run_s <= MIN_RUN_S or state is WorkloadState.OUT_OF_MEMORY:
        return []
    if usage.gpu_count and share.total / usage.gpu_count < SPARED_MEMORY_PER_GPU:
        return []
    peak = max(node.memory_used_bytes or 0.0 for node in usage.nodes.values())
    return [
        _info(
            "much-memory",
            f"The job used {100 * share.ratio:.0f}% of its CPU memory: --mem={suggest_memory_gib(peak / 2**30)}G would have been "
            "enough, with a margin of a fifth.",
        )
    ]
