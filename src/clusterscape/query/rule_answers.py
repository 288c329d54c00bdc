"""The shapes of answers about rules and violations. Times are Unix ms, ratios 0–1, missing is null."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from clusterscape.analyze.rules.completion import Completion as Completion
from clusterscape.analyze.rules.form import FormRow as FormRow
from clusterscape.model.identity_fields import (
    OperatorText,
    OwnerText,
    PersonName,
    ProjectName,
    PublicText,
    Reveals,
    ScopedText,
    UnitRef,
    UserName,
    WorkloadRef,
)
from clusterscape.model.rules import Severity, Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCounts:
    """What a rule says now. ``unjudged``: too young, too few samples, or a metric is missing.

    ``workloads`` counts nodes, or sources, where the rule judges these or GPUs; ``units`` the GPUs that are meant.
    """

    workloads: int
    units: int
    unjudged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleAnswer:
    """A rule in all its forms. ``form`` is null where it does not fit one; ``counts`` until it was judged."""

    key: PublicText
    name: PublicText
    severity: Severity
    text: ScopedText
    words: list[ScopedText]
    reason: PublicText
    advice: PublicText  # to the workload's user
    color: PublicText | None
    owner: PersonName | None
    is_enabled: bool
    is_shipped: bool
    is_changed: bool  # a shipped rule that somebody edited
    blames_units: bool  # else the whole workload, or node
    subject: Subject
    document: Annotated[Mapping[str, Any], Reveals.SCOPED_TEXT]
    form: list[FormRow] | None
    counts: RuleCounts | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleList:
    """All rules in the order of the bar; ``unreadable``: stored ones this version cannot read, and why."""

    rules: list[RuleAnswer]
    judged_at: int | None
    unreadable: Annotated[Mapping[str, str], Reveals.OPERATOR_ONLY]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFault:
    """What is wrong with a rule. ``column`` counts from 1 in its text; ``path`` leads to a field of its form or document."""

    message: ScopedText
    hint: ScopedText | None
    column: int | None = None
    length: int | None = None
    suggestion: ScopedText | None = None
    path: PublicText | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleReading:
    """A rule read from one form and written in all; ``fault`` where it cannot be read."""

    text: ScopedText
    words: list[ScopedText]
    document: Annotated[Mapping[str, Any], Reveals.SCOPED_TEXT] | None
    form: list[FormRow] | None
    fault: RuleFault | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ViolationAnswer:
    """Violations of one rule by one workload, taken together: ``until`` is null while any of them goes on."""

    rule: PublicText
    rule_name: PublicText
    severity: Severity
    workload: WorkloadRef  # of hardware `node:NAME` or `source:KIND`
    workload_name: OwnerText | None
    node: PublicText | None  # where the rule judges nodes or GPUs
    user: UserName | None
    project: ProjectName | None
    partition: PublicText | None
    units: list[UnitRef]  # empty: the whole workload, node or source is blamed
    gpus: int
    since: int
    until: int | None
    gpu_hours: float  # held while the rule was broken; 0 of hardware, which nobody is blamed for
    values: Mapping[PublicText, float]
    readings: PublicText  # ``values`` in words; empty where the rule has changed since or is gone
    mute: "MuteAnswer | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one user or project adds to the violations; null: not known."""

    name: ScopedText | None
    workloads: int
    gpu_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ViolationList:
    """Violations of a time, most GPU-hours first. A GPU that broke two rules at once counts once in the sums."""

    start: int
    end: int
    violations: list[ViolationAnswer]
    gpu_hours: float
    users: list[Share]
    projects: list[Share]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleUnits:
    """Units that break a rule, and those whose holder broke it on them earlier and keeps it now."""

    rule: PublicText
    units: list[UnitRef]
    past: list[UnitRef]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitViolations:
    """Which units break which rules at one moment, in the order of the rules."""

    at: int
    rules: list[RuleUnits]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTimeline:
    """How many GPUs broke each rule: one number per step."""

    start: int
    step_ms: int
    gpus: Mapping[PublicText, list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialAnswer:
    """What a rule would have done. ``times`` counts violations of workloads; the list has the largest ones."""

    text: ScopedText
    start: int
    end: int
    step_ms: int
    lives: int
    judged: int
    times: int
    workloads: int
    gpu_hours: float
    violations: list[ViolationAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingAnswer:
    """One condition on one unit, in canonical units; null: not known."""

    condition: PublicText
    metric: PublicText
    value: float | None
    bound: float | None
    value_words: PublicText | None  # with its unit: 121.5W
    bound_words: PublicText | None
    samples: int
    is_met: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitVerdict:
    """What a rule says of a workload on a unit, and why. ``state``: met, not met, not judged, out of scope."""

    rule: PublicText
    unit: UnitRef
    state: PublicText
    why: ScopedText
    readings: list[ReadingAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadVerdicts:
    """Every rule on every unit of a workload that runs, and its violations, past ones included.

    ``verdicts``: of a workload with many units only of some, those that break rules first; ``units``: of how many there are.
    """

    workload: WorkloadRef
    judged_at: int | None
    units: int
    verdicts: list[UnitVerdict]
    violations: list[ViolationAnswer]
    spans: list["ViolationSpan"]  # each by itself, oldest first


@dataclass(frozen=True, slots=True, kw_only=True)
class MuteAnswer:
    """Nobody is told of these violations until ``expires_at``."""

    key: PublicText
    rule: PublicText
    workload: WorkloadRef | None
    reason: OwnerText
    author: UserName
    created_at: int
    expires_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentAnswer:
    """What somebody wrote about a workload's violations."""

    key: PublicText
    workload: WorkloadRef
    author: UserName
    text: OwnerText
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ViolationSpan:
    """One violation as it was; ``unit`` null: the whole workload is blamed."""

    rule: PublicText
    unit: UnitRef | None
    since: int
    until: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelAnswer:
    """How a channel of alerts does. Counts are of messages unless they say turns (starts and stops of violations)."""

    name: PublicText
    kind: PublicText
    is_configured: bool  # else it is no longer in the settings, and what waits for it waits on
    waiting: int
    waiting_turns: int
    delivered: int
    delivered_at: int | None
    failing_since: int | None
    last_error: OperatorText | None
    is_lasting: bool  # the error will not go away by itself
    attempts: int  # of the message that is next
    next_attempt_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertState:
    """All channels. ``unposted``: turns that wait in memory because the disk takes none."""

    channels: list[ChannelAnswer]
    unposted: int
