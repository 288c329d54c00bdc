"""The shapes of answers about usage. Times are Unix ms, missing is null."""

from dataclasses import dataclass
from enum import StrEnum

from clusterscape.analyze.usage.calendar import CalendarStep
from clusterscape.analyze.usage.findings import UsageFinding
from clusterscape.model.identity_fields import FreeText, ProjectName, PublicText, UserName


class UsageKey(StrEnum):
    """What usage can be grouped by."""

    USER = "user"
    PROJECT = "project"
    PARTITION = "partition"
    GPU_MODEL = "gpu_model"
    QOS = "qos"
    JOB_SIZE = "job_size"
    END_STATE = "end_state"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageFigures:
    """Sums over a period.

    GPU-hours held, as accounting counts them (without suspensions). Of them ``used``, ``stalled`` (utilized, but multiprocessors
    inactive), ``execution_idle`` (idle with a program loaded), ``idle`` and ``unknown`` (not measured). ``jobs`` ran in the
    period; ``users`` are theirs. Waits are of jobs that started in it.
    """

    gpu_hours: float
    used_gpu_hours: float
    stalled_gpu_hours: float
    execution_idle_gpu_hours: float
    idle_gpu_hours: float
    unknown_gpu_hours: float
    suspended_gpu_hours: float
    cpu_hours: float
    energy_kwh: float | None  # as far as it is measured; null if it is not
    money: float | None  # null without price lists
    jobs: int
    submitted: int
    started: int  # executions
    ended: int
    users: int
    wait_hours: float
    mean_wait_s: float | None
    median_wait_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageGroup:
    """One user, project and so on. Of the names, those that it is grouped by; null if unknown."""

    user: UserName | None
    project: ProjectName | None
    partition: PublicText | None
    gpu_model: PublicText | None
    qos: FreeText | None
    job_size: PublicText | None
    end_state: PublicText | None
    figures: UsageFigures
    gpu_hours: list[float]  # by step
    cpu_hours: list[float]
    money: list[float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageAnswer:
    """Usage of [start, end) in steps of the calendar; ``edges`` are their starts and the end of the last one.

    ``groups``: those with the most GPU-hours; ``others``: the rest, if there is one. ``is_measured``: whether samples were read;
    false if there are too many.
    """

    name: PublicText  # of the period: "2026-10"
    start: int
    end: int
    until: int  # the end, or now
    step: CalendarStep
    timezone: PublicText
    currency: PublicText | None  # null without price lists
    by: list[UsageKey]
    edges: list[int]
    total: UsageFigures
    steps: list[UsageFigures]
    groups: list[UsageGroup]
    others: UsageFigures | None
    group_count: int
    is_measured: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetAnswer:
    """A budget, what was used of it, and when it runs out at the pace of the last eight weeks.

    Used and granted are GPU-hours, or money where ``currency`` is set. ``runs_out_at``: the median of the forecast,
    ``runs_out_low`` and ``runs_out_high``: its middle 90 %; null: not within three years, or too little history.
    ``used_by_end``: forecast for the end of the budget.
    """

    name: FreeText
    user: UserName | None
    project: ProjectName | None
    start: int
    end: int
    currency: PublicText | None
    granted: float
    used: float
    used_ratio: float
    time_ratio: float
    has_forecast: bool
    runs_out_at: int | None
    runs_out_low: int | None
    runs_out_high: int | None
    used_by_end: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerPeriod:
    """The sums of a period of the same kind, for comparison."""

    name: PublicText
    start: int
    figures: UsageFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodName:
    """A period of the calendar by its name."""

    kind: CalendarStep
    name: PublicText


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReport:
    """A period in full, the periods before it, and findings.

    ``parts``: the same usage by project and user (as far as it is not restricted to one), partition, GPU model, job size, QOS
    and end state. ``former``: the periods before with their sums, and this one. ``kinds``: the day, week, month, quarter and
    year that this period begins in; ``kind``: which of them it is, if it is one.
    """

    cluster: PublicText
    user: UserName | None  # what it is restricted to
    project: ProjectName | None
    parts: list[UsageAnswer]
    previous: PublicText  # the names of the periods before and after
    next: PublicText
    kind: CalendarStep | None
    kinds: list[PeriodName]
    former: list[FormerPeriod]
    findings: list[UsageFinding]
    budgets: list[BudgetAnswer]
