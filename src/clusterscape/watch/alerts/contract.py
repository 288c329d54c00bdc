"""What a channel is, what it is handed and what it answers. Nothing here sends or stores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Protocol

from clusterscape.model.ids import UnixMs
from clusterscape.model.rules import Severity
from clusterscape.watch.alerts.turns import AlertTurn

Group = tuple[tuple[str, str | None], ...]
"""What the turns of a message have in common: names of AlertTurn's attributes with their values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a channel is told, and how often. Times are milliseconds."""

    severities: frozenset[Severity] = frozenset(Severity)
    rules: tuple[str, ...] = ("*",)
    is_stop_told: bool = True
    group_by: tuple[str, ...] = ("rule",)  # attributes of AlertTurn
    lane_by: tuple[str, ...] = ()  # of these, the ones that choose the addressee; order and rate are kept for each
    array_interval_ms: int = 0  # between two messages of one array, where it is longer than ``group_interval_ms``
    group_wait_ms: int = 0
    group_interval_ms: int = 0
    hold_ms: int = 0
    max_per_hour: int | None = None
    max_waiting: int = 10_000  # turns

    def wants(self, turn: AlertTurn) -> bool:
        """Whether the channel is told of a start by this rule."""
        return turn.severity in self.severities and any(fnmatchcase(turn.rule, glob) for glob in self.rules)

    def group_of(self, turn: AlertTurn) -> Group:
        """What the turn is told together with."""
        return tuple((name, getattr(turn, name)) for name in dict.fromkeys((*self.lane_by, *self.group_by)))

    def interval_of(self, group: Group) -> int:
        """Milliseconds between two messages of the group."""
        is_array = any(name == "array" and value is not None for name, value in group)
        return max(self.group_interval_ms, self.array_interval_ms if is_array else 0)

    def lane_of(self, group: Group) -> str:
        """The addressee within the channel; most have only one, the empty name."""
        return "/".join(value or "" for name, value in group if name in self.lane_by)


class MessageKind(StrEnum):
    """Why a message is sent."""

    ALERT = "alert"
    SUMMARY = "summary"  # several messages in one, because of the rate limit or the size of the spool
    TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Turns of one rule of which only the number is left."""

    rule: str
    rule_name: str
    severity: Severity
    started: int
    stopped: int
    first_at: UnixMs
    last_at: UnixMs


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A (rule, workload) that a channel was told is breaking it; ``first`` is the turn that began it."""

    first: AlertTurn
    parts: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One delivery. ``key`` stays the same however often it is tried. ``firing``: the subjects of ``turns`` afterwards.

    ``tallies`` are the turns of which only the number was kept; they came before ``turns``.
    """

    key: str
    kind: MessageKind
    created_at: UnixMs
    lane: str = ""
    group: Group = ()
    turns: Sequence[AlertTurn] = ()
    tallies: Sequence[Tally] = ()
    firing: Mapping[tuple[str, str], Firing] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the other side said. ``is_lasting``: it will say so again until somebody changes something.

    An accepted message may have a lasting flaw, too: one of its recipients does not exist.
    """

    is_accepted: bool
    text: str
    is_lasting: bool = False
    retry_after_s: float | None = None


class Channel(Protocol):
    """Where messages go. ``send`` and ``refresh`` never raise for what the other side does."""

    @property
    def name(self) -> str:
        """The name in the settings."""

    @property
    def kind(self) -> str:
        """``webhook``, ``slack``, ``email``, ``alertmanager``."""

    @property
    def policy(self) -> Policy:
        """What it is told."""

    @property
    def refresh_every_ms(self) -> int | None:
        """How often what fires must be repeated; None: the channel remembers by itself."""

    def can_reach(self, turn: AlertTurn) -> bool:
        """Whether there is anybody to tell of this turn."""

    async def send(self, message: Message) -> Answer:
        """Deliver one message."""

    async def refresh(self, firing: Sequence[Firing]) -> Answer:
        """Repeat what fires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelState:
    """How a channel does, for the page, the command line and ``doctor``. Counts are of messages unless they say turns."""

    name: str
    kind: str
    waiting: int
    waiting_turns: int
    delivered: int
    delivered_at: UnixMs | None
    failing_since: UnixMs | None
    last_error: str | None
    is_lasting: bool  # the error will not go away by itself: somebody must change the settings or the other side
    attempts: int  # of the message that is next
    next_attempt_at: UnixMs | None
    flaps: int  # turns that were dropped because they were over within the hold
    tallied_turns: int  # turns of which only the number was kept, because too many waited
