"""Rules and violations. A rule is conditions joined by and/or; a condition is metric × statistic × operator × value.
Rules apply to workloads, GPUs, nodes, sources, or the jobs of users and projects over days.

Records only. ``analyze/rules`` parses, formats and evaluates them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from clusterscape.model.identity_fields import OwnerText, PersonName, ProjectName, PublicText, UserName
from clusterscape.model.ids import NodeId, UnitId, UnixMs, WorkloadId
from clusterscape.model.observations import SourceStatus
from clusterscape.model.statistics import StatisticKind as StatisticKind


class Severity(StrEnum):
    """How much a violation matters, least first."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Basis(StrEnum):
    """What a number refers to."""

    UNIT = "unit"  # the metric's canonical unit: ratio 0–1, watts, bytes …
    LIMIT = "limit"  # a ratio of the GPU's limit: of its power limit, of its memory


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number to compare with. ``70%`` of a ratio is 0.7 in its unit; ``70%`` of watts is 0.7 of the limit."""

    number: float
    basis: Basis = Basis.UNIT


@dataclass(frozen=True, slots=True)
class Statistic:
    """A statistic of a series over time. ``percentile`` (0–100) and ``threshold`` are set only for kinds that need them."""

    kind: StatisticKind
    percentile: float | None = None
    threshold: Quantity | None = None


class Operator(StrEnum):
    """How the statistic compares with the value."""

    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="
    EQUAL = "="
    UNEQUAL = "!="


class Across(StrEnum):
    """How the statistics of a workload's units are combined into one."""

    SPREAD = "spread"  # largest minus smallest
    LEAST = "least"
    MOST = "most"
    AVERAGE = "average"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """``window_ms`` None: over the whole life of the workload on the unit. ``across`` None: every unit separately."""

    metric: PublicText
    statistic: Statistic
    operator: Operator
    value: Quantity
    window_ms: int | None = None
    across: Across | None = None


class Junction(StrEnum):
    """How terms are combined."""

    AND = "and"
    OR = "or"


@dataclass(frozen=True, slots=True)
class Joined:
    """Two or more terms joined by the same operator."""

    junction: Junction
    terms: tuple["Expression", ...]


Expression = Condition | Joined


class Subject(StrEnum):
    """What a rule applies to."""

    WORKLOADS = "workloads"  # every workload on every unit it holds, over its life there
    GPUS = "gpus"  # whether allocated or free
    NODES = "nodes"
    SOURCES = "sources"  # schedulers and servers that collectors read
    USERS = "users"  # sums of a user's ended jobs over days
    PROJECTS = "projects"

    @property
    def is_lifeless(self) -> bool:
        """Whether it has no life; such rules use time windows and the last value."""
        return self is not Subject.WORKLOADS


class Quantifier(StrEnum):
    """Which units must meet the conditions, and whether the violation is of a unit or of the workload."""

    EACH = "each"  # every unit that meets the conditions, separately
    ANY = "any"  # the whole workload, if at least one of its units does
    ALL = "all"
    SHARE = "share"  # the whole workload, if at least this share of its units does


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleScope:
    """Which subjects a rule applies to, and from which age. An empty tuple matches all; names are exact or globs.

    For GPUs and nodes, ``names`` are names of nodes; users, projects and age do not apply.
    """

    users: tuple[UserName, ...] = ()
    projects: tuple[ProjectName, ...] = ()
    partitions: tuple[PublicText, ...] = ()
    machine_types: tuple[PublicText, ...] = ()
    names: tuple[OwnerText, ...] = ()
    min_age_ms: int = 600_000
    min_samples: int = 10
    min_gpus: int = 1
    quantifier: Quantifier = Quantifier.EACH
    share: float | None = None
    subject: Subject = Subject.WORKLOADS


WORKLOAD_SCOPE = RuleScope()
LIFELESS_SCOPE = RuleScope(min_age_ms=0, min_samples=1)


def standard_scope(subject: Subject) -> RuleScope:
    """The default scope of a rule. Hardware rules have no minimum age: a broken GPU needs no time to warm up."""
    return LIFELESS_SCOPE if subject.is_lifeless else WORKLOAD_SCOPE


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """``key`` never changes, and violations refer to it; everything else may be edited."""

    key: PublicText
    name: PublicText
    severity: Severity
    expression: Expression
    scope: RuleScope = field(default_factory=RuleScope)
    reason: PublicText = ""  # why it matters and what to do, for operators
    advice: PublicText = ""  # what it means for the workload's user and what they can do; empty: no advice
    owner: PersonName | None = None  # None: shared
    color: PublicText | None = None  # "#rrggbb"; None: by severity
    is_enabled: bool = True
    is_shipped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A workload violated a rule on a unit from ``since`` to ``until`` (None: ongoing).

    ``workload`` names a node, a source, a user or a project if the rule applies to these (``node_subject`` …). ``unit`` is None
    if the violation is of the whole workload or node; ``gpus`` is the number of units it covers. ``values`` are the statistics
    of the last evaluation that found it violated, by the text of their condition, in canonical units.
    """

    rule: str
    workload: WorkloadId
    unit: UnitId | None
    since: UnixMs
    until: UnixMs | None = None
    gpus: int = 1
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mute:
    """No messages are sent about these violations until ``expires_at``; they are still stored and shown as muted."""

    rule: str
    workload: WorkloadId | None  # None: every workload
    reason: str
    author: str
    created_at: UnixMs
    expires_at: UnixMs


class Turn(StrEnum):
    """Whether a violation started or stopped."""

    STARTED = "started"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViolationTurn:
    """Violations of one rule by one workload that started or stopped at the same time; alerts are built from these."""

    turn: Turn
    at: UnixMs
    rule: Rule
    workload: WorkloadId
    user: str | None
    project: str | None
    partition: str | None
    units: Sequence[UnitId]
    since: UnixMs
    values: Mapping[str, float] = field(default_factory=dict)
    name: str | None = None  # of the workload
    array: str | None = None  # the array that the workload is a task of


_NODE = "node:"
_SOURCE = "source:"
_USER = "user:"
_PROJECT = "project:"


def node_subject(node: NodeId) -> WorkloadId:
    """The ``workload`` of violations by a node or one of its GPUs."""
    return WorkloadId(f"{_NODE}{node}")


def source_subject(kind: str) -> WorkloadId:
    """The ``workload`` of violations by a source."""
    return WorkloadId(f"{_SOURCE}{kind}")


def source_unit(kind: str) -> UnitId:
    """The unit id of a source's metrics. Metrics of a node have the node's name."""
    return UnitId(f"{_SOURCE}{kind}")


def user_subject(user: str) -> WorkloadId:
    """The ``workload`` of violations by a user's jobs over days."""
    return WorkloadId(f"{_USER}{user}")


def project_subject(project: str) -> WorkloadId:
    """The ``workload`` of violations by a project's jobs over days."""
    return WorkloadId(f"{_PROJECT}{project}")


def find_owner(subject: str) -> tuple[str | None, str | None]:
    """The user or the project whose jobs a violation names."""
    if subject.startswith(_USER):
        return subject.removeprefix(_USER), None
    return None, subject.removeprefix(_PROJECT) if subject.startswith(_PROJECT) else None


def find_node(subject: str) -> NodeId | None:
    """The node that a violation names; None if it names a workload or a source."""
    return NodeId(subject.removeprefix(_NODE)) if subject.startswith(_NODE) else None


def is_no_workload(subject: str) -> bool:
    """Whether a violation names a node, a source, a user or a project instead of a workload."""
    return subject.startswith((_NODE, _SOURCE, _USER, _PROJECT))


def find_exporters_up(statuses: Iterable[SourceStatus]) -> dict[NodeId, bool]:
    """Nodes that have exporters, and whether any of these responds."""
    is_up: dict[NodeId, bool] = {}
    for status in statuses:
        if status.node is not None:
            is_up[status.node] = is_up.get(status.node, False) or status.is_ok
    return is_up
