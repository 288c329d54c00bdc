"""The shapes of answers about rules and violations. Times are Unix ms, ratios 0–1, missing is null."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from clusterscape.analyze.rules.completion import Completion as Completion
from clusterscape.analyze.rules.documents import FormRow as FormRow
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
    """What a rule matches now. ``unjudged``: units that are too young, have too few samples, or lack a metric.

    ``workloads`` counts nodes or sources if the rule is about these or GPUs; ``units`` counts the affected GPUs.
    """

    workloads: int
    units: int
    unjudged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleAnswer:
    """A rule as text, sentences, form and document. ``form`` is null if it fits none; ``counts`` until it was evaluated."""

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
    is_changed: bool  # a shipped rule that was edited
    blames_units: bool  # else the whole workload or node is blamed
    subject: Subject
    document: Annotated[Mapping[str, Any], Reveals.SCOPED_TEXT]
    form: list[FormRow] | None
    counts: RuleCounts | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleList:
    """All rules in display order; ``unreadable``: stored rules that this version cannot read, and why."""

    rules: list[RuleAnswer]
    judged_at: int | None
    unreadable: Annotated[Mapping[str, str], Reveals.OPERATOR_ONLY]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFault:
    """An error in a rule. ``column`` counts from 1 in its text; ``path`` points to a field of its form or document."""

    message: ScopedText
    hint: ScopedText | None
    column: int | None = None
    length: int | None = None
    suggestion: ScopedText | None = None
    path: PublicText | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleReading:
    """A rule converted from one representation to all; ``fault`` if it cannot be read."""

    text: ScopedText
    words: list[ScopedText]
    document: Annotated[Mapping[str, Any], Reveals.SCOPED_TEXT] | None
    form: list[FormRow] | None
    fault: RuleFault | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ViolationAnswer:
    """All violations of one rule by one workload; ``until`` is null while any of them lasts."""

    rule: PublicText
    rule_name: PublicText
    severity: Severity
    workload: WorkloadRef  # for hardware `node:NAME` or `source:KIND`
    workload_name: OwnerText | None
    node: PublicText | None  # if the rule is about nodes or GPUs
    user: UserName | None
    project: ProjectName | None
    partition: PublicText | None
    units: list[UnitRef]  # empty: the whole workload, node or source is blamed
    gpus: int
    since: int
    until: int | None
    gpu_hours: float  # held while the rule was violated; 0 for hardware, for which no user is responsible
    values: Mapping[PublicText, float]
    readings: PublicText  # ``values``, formatted; empty if the rule has changed or was deleted since
    mute: "MuteAnswer | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The violations of one user or project; a null name: unknown."""

    name: ScopedText | None
    workloads: int
    gpu_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ViolationList:
    """Violations in a time range, most GPU-hours first. A GPU that violates two rules at once counts once in the sums."""

    start: int
    end: int
    violations: list[ViolationAnswer]
    gpu_hours: float
    users: list[Share]
    projects: list[Share]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleUnits:
    """Units that violate a rule now, and those on which the same workload violated it earlier."""

    rule: PublicText
    units: list[UnitRef]
    past: list[UnitRef]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitViolations:
    """Which units violate which rules at one moment, in the order of the rules."""

    at: int
    rules: list[RuleUnits]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTimeline:
    """How many GPUs violated each rule: one number per step."""

    start: int
    step_ms: int
    gpus: Mapping[PublicText, list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialAnswer:
    """What a rule would have matched in the past. ``times`` counts violations by workloads; the list has the largest ones."""

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
    """The value of one condition on one unit, in canonical units; null: unknown."""

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
    """The result of a rule for a workload on a unit, and why. ``state``: met, not met, not judged, out of scope."""

    rule: PublicText
    unit: UnitRef
    state: PublicText
    why: ScopedText
    readings: list[ReadingAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadVerdicts:
    """The result of every rule on every unit of a running workload, and its violations, including past ones.

    ``verdicts`` of a large workload cover only some units, those that violate most rules first; ``units`` is the number of all.
    """

    workload: WorkloadRef
    judged_at: int | None
    units: int
    verdicts: list[UnitVerdict]
    violations: list[ViolationAnswer]
    spans: list["ViolationSpan"]  # single violations, oldest first


@dataclass(frozen=True, slots=True, kw_only=True)
class MuteAnswer:
    """No alerts are sent for these violations until ``expires_at``."""

    key: PublicText
    rule: PublicText
    workload: WorkloadRef | None
    reason: OwnerText
    author: UserName
    created_at: int
    expires_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentAnswer:
    """A user's comment on a workload's violations."""

    key: PublicText
    workload: WorkloadRef
    author: UserName
    text: OwnerText
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ViolationSpan:
    """A single violation; ``unit`` null: the whole workload is blamed."""

    rule: PublicText
    unit: UnitRef | None
    since: int
    until: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelAnswer:
    """The state of an alert channel. Counts are of messages, or where named so of turns (starts and ends of violations)."""

    name: PublicText
    kind: PublicText
    is_configured: bool  # else it was removed from the settings, and its messages stay queued
    waiting: int
    waiting_turns: int
    delivered: int
    delivered_at: int | None
    failing_since: int | None
    last_error: OperatorText | None
    is_lasting: bool  # the error is permanent: retries will not help
    attempts: int  # for the next message
    next_attempt_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertState:
    """All channels. ``unposted``: turns in memory that could not be written to the database."""

    channels: list[ChannelAnswer]
    unposted: int
