"""What a period shows, as sentences with their numbers: changes, idle GPUs and their owners, failures, waits."""

from collections.abc import Sequence
from dataclasses import dataclass

from clusterscape.model.identity_fields import PublicText, ScopedText
from clusterscape.model.quantities import format_duration, format_hours

LEAST_HOURS = 1.0
"""Less is not worth a sentence."""
LEAST_MEASURED_SHARE = 0.5
"""Who left most idle is only said of users of whom at least this share of the hours was measured."""
FAILURES = {
    "failed": "failed",
    "timeout": "reached their time limit",
    "out_of_memory": "ran out of memory",
    "node_failed": "ended when a node failed",
    "cancelled": "were cancelled",
    "preempted": "were preempted",
    "requeued": "were requeued and began again",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodSums:
    """GPU-hours and waits of one period, or of one group within it."""

    name: str
    gpu_hours: float
    idle_gpu_hours: float = 0.0
    execution_idle_gpu_hours: float = 0.0
    unknown_gpu_hours: float = 0.0
    suspended_gpu_hours: float = 0.0
    jobs: int = 0
    started: int = 0
    wait_hours: float = 0.0
    median_wait_s: float | None = None
    money: float | None = None

    @property
    def measured_gpu_hours(self) -> float:
        """Those whose use was measured."""
        return max(0.0, self.gpu_hours - self.unknown_gpu_hours)

    @property
    def all_idle_gpu_hours(self) -> float:
        """Idle with or without a program loaded."""
        return self.idle_gpu_hours + self.execution_idle_gpu_hours


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageFinding:
    """One sentence, and the number that it states. ``is_bad``: something was lost."""

    code: PublicText
    text: ScopedText
    value: float
    is_bad: bool


def find_usage(
    total: PeriodSums,
    *,
    before: PeriodSums | None,
    is_complete: bool,
    owners: Sequence[PeriodSums],
    owner_word: str,
    ends: Sequence[PeriodSums],
    capacity_gpu_hours: float | None = None,
    currency: str | None = None,
) -> list[UsageFinding]:
    """Findings of a period, the most general first.

    Parameters
    ----------
    before
        The period before of the same length, for comparison; None: unknown.
    is_complete
        Whether the period is over.
    owners
        Sums by user or project (``owner_word``), largest first.
    ends
        Sums by end state.
    capacity_gpu_hours
        Of all GPUs over the period; None where only a part of the cluster is reported.
    """
    if total.gpu_hours < LEAST_HOURS:
        return []
    findings = [_describe_total(total, before, is_complete, capacity_gpu_hours, currency)]
    if owners and len(owners) > 1:
        findings.append(_describe_largest(owners[0], total, owner_word))
    findings += [
        *_describe_idle(total, owners, owner_word),
        *_describe_ends(total, ends),
        *_describe_waits(total, before, is_complete),
        *_describe_suspended(total),
    ]
    return findings


def _describe_total(
    total: PeriodSums,
    before: PeriodSums | None,
    is_complete: bool,
    capacity: float | None,
    currency: str | None,
) -> UsageFinding:
    text = f"{format_hours(total.gpu_hours)} GPU-hours were held by {_count(total.jobs, 'job')}"
    if capacity:
        text += f", {_percent(total.gpu_hours / capacity)} of what today's GPUs can give"
    if not is_complete:
        text += " so far"
    elif before is not None and before.gpu_hours >= LEAST_HOURS:
        text += f", {_change(total.gpu_hours / before.gpu_hours)} than in {before.name}"
    if currency and total.money is not None:
        text += f"; they cost {total.money:,.2f} {currency}"
    return UsageFinding(code="held", text=f"{text}.", value=total.gpu_hours, is_bad=False)


def _describe_largest(largest: PeriodSums, total: PeriodSums, word: str) -> UsageFinding:
    share = largest.gpu_hours / total.gpu_hours
    text = f"The {word} with the most GPU-hours, {largest.name}, held {_percent(share)} of them."
    return UsageFinding(code="largest", text=text, value=share, is_bad=False)


def _describe_idle(total: PeriodSums, owners: Sequence[PeriodSums], word: str) -> list[UsageFinding]:
    idle, measured = total.all_idle_gpu_hours, total.measured_gpu_hours
    if measured < LEAST_HOURS or idle < LEAST_HOURS:
        return []
    text = f"{format_hours(idle)} GPU-hours were idle while held, {_percent(idle / measured)} of those measured"
    if total.unknown_gpu_hours >= 0.05 * total.gpu_hours:
        text += f" ({_percent(total.unknown_gpu_hours / total.gpu_hours)} were not measured)"
    loaded = total.execution_idle_gpu_hours
    if loaded >= 0.05 * idle:
        text += f"; in {_percent(loaded / idle)} of them a program was loaded"
    findings = [UsageFinding(code="idle", text=f"{text}.", value=idle, is_bad=True)]
    judged = [owner for owner in owners if owner.measured_gpu_hours >= LEAST_MEASURED_SHARE * owner.gpu_hours]
    worst = max(judged, key=lambda owner: owner.all_idle_gpu_hours, default=None)
    if worst is not None and worst.all_idle_gpu_hours >= LEAST_HOURS and len(owners) > 1:
        hours = worst.all_idle_gpu_hours
        is_loaded = worst.execution_idle_gpu_hours > hours / 2
        why = "mostly with a program loaded" if is_loaded else "mostly with no program on the GPU"
        text = (
            f"The {word} {worst.name} left most idle: {format_hours(hours)} GPU-hours, "
            f"{_percent(hours / worst.measured_gpu_hours)} of its own, {why}."
        )
        findings.append(UsageFinding(code="most_idle", text=text, value=hours, is_bad=True))
    return findings


def _describe_ends(total: PeriodSums, ends: Sequence[PeriodSums]) -> list[UsageFinding]:
    lost = [end for end in ends if end.name in FAILURES and end.gpu_hours >= LEAST_HOURS]
    lost.sort(key=lambda end: -end.gpu_hours)
    hours = sum(end.gpu_hours for end in lost)
    if not lost or hours < 0.01 * total.gpu_hours:
        return []
    parts = [f"{format_hours(end.gpu_hours)} of jobs that {FAILURES[end.name]}" for end in lost[:3]]
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    share = _percent(hours / total.gpu_hours)
    text = f"{format_hours(hours)} GPU-hours ({share}) went into jobs that did not complete: {listed}."
    return [UsageFinding(code="not_completed", text=text, value=hours, is_bad=True)]


def _describe_waits(total: PeriodSums, before: PeriodSums | None, is_complete: bool) -> list[UsageFinding]:
    if not total.started or total.median_wait_s is None:
        return []
    text = (
        f"Jobs waited {format_hours(total.wait_hours)} hours in all before {_count(total.started, 'start')}; "
        f"half of them waited less than {format_duration(max(total.median_wait_s, 1))}"
    )
    if is_complete and before is not None and before.median_wait_s is not None and before.started:
        text += f" (in {before.name}: {format_duration(max(before.median_wait_s, 1))})"
    return [UsageFinding(code="waits", text=f"{text}.", value=total.wait_hours, is_bad=False)]


def _describe_suspended(total: PeriodSums) -> list[UsageFinding]:
    if total.suspended_gpu_hours < LEAST_HOURS:
        return []
    hours = format_hours(total.suspended_gpu_hours)
    text = f"{hours} GPU-hours of suspended jobs are not counted; Slurm's sreport counts them."
    return [UsageFinding(code="suspended", text=text, value=total.suspended_gpu_hours, is_bad=False)]


def _percent(ratio: float) -> str:
    return "less than 1 %" if 0 < ratio < 0.005 else f"{ratio:.0%}".replace("%", " %")


def _change(ratio: float) -> str:
    if 0.995 < ratio < 1.005:
        return "not more or less"
    return f"{_percent(abs(ratio - 1))} {'more' if ratio > 1 else 'less'}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
