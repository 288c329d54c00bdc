"""The interface of a channel: policies, messages and delivery results. Nothing here sends or stores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Protocol

from clusterscape.model.ids import UnixMs
from clusterscape.model.rules import Severity
from clusterscape.watch.alerts.turns import AlertTurn

Group = tuple[tuple[str, str | None], ...]
"""The attributes of AlertTurn that all turns of a message share, with their values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendingPolicy:
    """Which turns a channel receives, and how often. Times are in milliseconds."""

    severities: frozenset[Severity] = frozenset(Severity)
    rules: tuple[str, ...] = ("*",)
    sends_stops: bool = True
    group_by: tuple[str, ...] = ("rule",)  # attributes of AlertTurn
    lane_by: tuple[str, ...] = ()  # attributes that choose the recipient; order and rate limit apply per recipient
    array_interval_ms: int = 0  # between two messages of one array, if longer than ``group_interval_ms``
    group_wait_ms: int = 0
    group_interval_ms: int = 0
    hold_ms: int = 0
    max_per_hour: int | None = None
    max_waiting: int = 10_000  # turns

    def wants(self, turn: AlertTurn) -> bool:
        """Whether the channel receives a start of this rule."""
        return turn.severity in self.severities and any(fnmatchcase(turn.rule, glob) for glob in self.rules)

    def group_of(self, turn: AlertTurn) -> Group:
        """The group of turns that share a message with this turn."""
        return tuple((name, getattr(turn, name)) for name in dict.fromkeys((*self.lane_by, *self.group_by)))

    def interval_of(self, group: Group) -> int:
        """Milliseconds between two messages of the group."""
        is_array = any(name == "array" and value is not None for name, value in group)
        return max(self.group_interval_ms, self.array_interval_ms if is_array else 0)

    def lane_of(self, group: Group) -> str:
        """The recipient within the channel; most channels have only one, the empty name."""
        return "/".join(value or "" for name, value in group if name in self.lane_by)


class MessageKind(StrEnum):
    """Why a message is sent."""

    ALERT = "alert"
    SUMMARY = "summary"  # several messages in one, because of the rate limit or the size of the spool
    TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The number of turns of one rule, without their details."""

    rule: str
    rule_name: str
    severity: Severity
    started: int
    stopped: int
    first_at: UnixMs
    last_at: UnixMs


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """An open violation that a channel was notified of; ``first`` is the turn that started it."""

    first: AlertTurn
    parts: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One delivery. ``key`` is the same at every attempt. ``firing``: the state of the subjects of ``turns`` after them.

    ``tallies``: counts of earlier turns whose details were dropped.
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
class DeliveryResult:
    """The result of sending a message. ``is_lasting``: a permanent error, which a retry does not fix.

    An accepted message may have a permanent error, too: one of its recipients does not exist.
    """

    is_accepted: bool
    text: str
    is_lasting: bool = False
    retry_after_s: float | None = None


class Channel(Protocol):
    """A destination of messages. ``send`` and ``refresh`` never raise for errors of the destination."""

    @property
    def name(self) -> str:
        """The name in the settings."""

    @property
    def kind(self) -> str:
        """``webhook``, ``slack``, ``email``, ``alertmanager``, ``apprise``."""

    @property
    def policy(self) -> SendingPolicy:
        """Which turns it receives."""

    @property
    def refresh_every_ms(self) -> int | None:
        """How often firing alerts must be repeated; None: the destination keeps its own state."""

    def can_reach(self, turn: AlertTurn) -> bool:
        """Whether this turn has a recipient."""

    async def send(self, message: Message) -> DeliveryResult:
        """Deliver one message."""

    async def refresh(self, firing: Sequence[Firing]) -> DeliveryResult:
        """Repeat the firing alerts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelState:
    """The state of a channel, for the page, the command line and ``doctor``. Counts are messages unless named turns."""

    name: str
    kind: str
    waiting: int
    waiting_turns: int
    delivered: int
    delivered_at: UnixMs | None
    failing_since: UnixMs | None
    last_error: str | None
    is_lasting: bool  # the error is permanent: the settings or the destination must change
    attempts: int  # of the next message
    next_attempt_at: UnixMs | None
    flaps: int  # turns that were dropped because they stopped within the hold
    tallied_turns: int  # turns that were reduced to counts, because too many waited
