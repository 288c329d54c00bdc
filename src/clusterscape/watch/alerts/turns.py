"""A turn of violations as alerts store and send it: flat, with its own id, and its JSON form in the spool."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import orjson

from clusterscape.analyze.rules.writing import format_rule, format_values
from clusterscape.model.ids import UnixMs
from clusterscape.model.rules import Severity, Turn, ViolationTurn


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertTurn:
    """A turn. ``id`` is a hash of its content. Empty ``units``: the whole workload."""

    id: str
    turn: Turn
    at: UnixMs
    since: UnixMs
    rule: str
    rule_name: str
    severity: Severity
    reason: str
    workload: str
    user: str | None
    project: str | None
    partition: str | None
    units: tuple[str, ...]
    values: Mapping[str, float] = field(default_factory=dict)
    rule_text: str = ""
    readings: str = ""  # ``values`` as text
    name: str | None = None  # of the workload
    array: str | None = None
    advice: str = ""  # for the workload's user

    @property
    def is_start(self) -> bool:
        """Whether violations started."""
        return self.turn is Turn.STARTED

    @property
    def subject(self) -> tuple[str, str]:
        """The rule and the workload that violates it."""
        return (self.rule, self.workload)

    @property
    def parts(self) -> frozenset[str]:
        """The units, or one part with an empty name for the whole workload."""
        return frozenset(self.units) or frozenset({""})

    def fingerprint(self, part: str) -> str:
        """A hash that identifies the turn of one part, independent of grouping, to detect duplicates after a restart."""
        moment = self.since if self.is_start else self.at
        facts = (self.turn.value, self.rule, self.workload, part, str(moment))
        return hashlib.blake2b("\0".join(facts).encode(), digest_size=12).hexdigest()

    def without(self, parts: frozenset[str]) -> "AlertTurn | None":
        """This turn without these units; None if none is left."""
        if self.parts <= parts:
            return None
        return replace(self, units=tuple(unit for unit in self.units if unit not in parts))

    def to_json(self) -> str:
        """The turn as JSON for the spool."""
        return orjson.dumps(self).decode()


def parse_turn(text: str) -> AlertTurn:
    """Parse the output of ``to_json``."""
    plain = orjson.loads(text)
    plain["turn"] = Turn(plain["turn"])
    plain["severity"] = Severity(plain["severity"])
    plain["units"] = tuple(plain["units"])
    return AlertTurn(**plain)


def flatten(turn: ViolationTurn) -> AlertTurn:
    """Convert a turn, with the fields of its rule that messages contain."""
    rule = turn.rule
    return AlertTurn(
        id=_identity(turn),
        turn=turn.turn,
        at=turn.at,
        since=turn.since,
        rule=rule.key,
        rule_name=rule.name,
        severity=rule.severity,
        reason=rule.reason,
        workload=turn.workload,
        user=turn.user,
        project=turn.project,
        partition=turn.partition,
        units=tuple(turn.units),
        values=dict(turn.values),
        rule_text=format_rule(rule),
        readings=format_values(rule, turn.values),
        name=turn.name,
        array=turn.array,
        advice=rule.advice,
    )


def _identity(turn: ViolationTurn) -> str:
    facts = [turn.turn.value, turn.rule.key, turn.workload, turn.since, turn.at, sorted(turn.units)]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]
