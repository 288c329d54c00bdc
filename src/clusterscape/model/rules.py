"""Rules and what breaks them: a rule is conditions joined by and/or; a condition is metric × statistic × operator × value.

Only the records. Reading and writing them as text and JSON, and judging by them, is ``analyze/rules``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from clusterscape.model.identity_fields import OwnerText, PersonName, ProjectName, PublicText, UserName
from clusterscape.model.ids import UnitId, UnixMs, WorkloadId
from clusterscape.model.statistics import StatisticKind as StatisticKind


class Severity(StrEnum):
    """How much a violation matters, least first."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Basis(StrEnum):
    """What a number is a number of."""

    UNIT = "unit"  # the metric's canonical unit: ratio 0–1, watts, bytes …
    LIMIT = "limit"  # a ratio of the GPU's own limit: of its power limit, of its memory


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number to compare with. ``70%`` of a ratio is 0.7 in its unit; ``70%`` of watts is 0.7 of the limit."""

    number: float
    basis: Basis = Basis.UNIT


@dataclass(frozen=True, slots=True)
class Statistic:
    """A number over a time. ``percentile`` 0–100 and ``threshold`` stand only where the kind needs them."""

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
    """A statistic of the whole workload, from those of its units."""

    SPREAD = "spread"  # largest minus smallest
    LEAST = "least"
    MOST = "most"
    AVERAGE = "average"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """``window_ms`` None: over the whole life of the workload on the unit. ``across`` None: each unit by itself."""

    metric: PublicText
    statistic: Statistic
    operator: Operator
    value: Quantity
    window_ms: int | None = None
    across: Across | None = None


class Junction(StrEnum):
    """How terms are joined."""

    AND = "and"
    OR = "or"


@dataclass(frozen=True, slots=True)
class Joined:
    """Two or more terms joined by the same word."""

    junction: Junction
    terms: tuple["Expression", ...]


Expression = Condition | Joined


class Subject(StrEnum):
    """What a rule judges."""

    WORKLOADS = "workloads"  # each on each unit it holds, over its life there
    GPUS = "gpus"  # whoever holds them, or nobody
    NODES = "nodes"
    SOURCES = "sources"  # schedulers and servers that are read

    @property
    def is_hardware(self) -> bool:
        """Whether it has no life: such rules look at windows of time and at the last value."""
        return self is not Subject.WORKLOADS


class Quantifier(StrEnum):
    """Whom a rule blames."""

    EACH = "each"  # every unit that meets the conditions, by itself
    ANY = "any"  # the whole workload, if one of its units does
    ALL = "all"
    SHARE = "share"  # the whole workload, if at least this share of its units does


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whom a rule judges, and from when on. An empty tuple leaves all through; names are exact or globs.

    Of GPUs and nodes ``names`` are nodes' names; they have no users, no projects and no age.
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


WORKLOAD_SCOPE = Scope()
HARDWARE_SCOPE = Scope(min_age_ms=0, min_samples=1)


def standard_scope(subject: Subject) -> Scope:
    """What a rule that says nothing of its scope means: a broken GPU needs no time to warm up."""
    return HARDWARE_SCOPE if subject.is_hardware else WORKLOAD_SCOPE


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """``key`` never changes and is what violations refer to; everything else may be edited."""

    key: PublicText
    name: PublicText
    severity: Severity
    expression: Expression
    scope: Scope = field(default_factory=Scope)
    reason: PublicText = ""  # why it matters and what to do, in words, for operators
    advice: PublicText = (
        ""  # what it means for the workload's user, and what they can do; empty: nothing is advised to them
    )
    owner: PersonName | None = None  # None: everyone's
    color: PublicText | None = None  # "#rrggbb"; None: by severity
    is_enabled: bool = True
    is_shipped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A rule was broken by a workload on a unit from ``since`` until ``until`` (None: still).

    ``workload`` names a node or a source where the rule judges these (``model/hardware.py``). ``unit`` is None where the rule
    blames the whole workload or node; ``gpus`` says how many units it stands for. ``values`` are
    the statistics when it was last judged broken, by the text of their condition, in canonical units.
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
    """Nobody is told of these violations until ``expires_at``; they are still kept and shown as muted."""

    rule: str
    workload: WorkloadId | None  # None: of every workload
    reason: str
    author: str
    created_at: UnixMs
    expires_at: UnixMs


class Turn(StrEnum):
    """What happened to a violation."""

    STARTED = "started"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViolationTurn:
    """Violations of one rule by one workload that started or stopped at the same time; what alerts are made of."""

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
