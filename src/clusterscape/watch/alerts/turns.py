"""A violation's turn as alerts keep and tell it: flat, with an identity of its own, and its JSON form in the spool."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import orjson

from clusterscape.analyze.rules.explaining import format_values
from clusterscape.analyze.rules.writing import format_rule
from clusterscape.model.ids import UnixMs
from clusterscape.model.rules import Severity, Turn, ViolationTurn


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertTurn:
    """``id`` follows from what happened. No ``units``: the whole workload."""

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
    readings: str = ""  # ``values`` in words
    name: str | None = None  # of the workload
    array: str | None = None
    advice: str = ""  # for the workload's user

    @property
    def is_start(self) -> bool:
        """Whether violations started."""
        return self.turn is Turn.STARTED

    @property
    def subject(self) -> tuple[str, str]:
        """Who broke what: (rule, workload)."""
        return (self.rule, self.workload)

    @property
    def parts(self) -> frozenset[str]:
        """The units, or one nameless part where the whole workload is meant."""
        return frozenset(self.units) or frozenset({""})

    def trace(self, part: str) -> str:
        """What is remembered of a part's turn: the same however it is grouped when it is posted again after a restart."""
        moment = self.since if self.is_start else self.at
        facts = (self.turn.value, self.rule, self.workload, part, str(moment))
        return hashlib.blake2b("\0".join(facts).encode(), digest_size=12).hexdigest()

    def without(self, parts: frozenset[str]) -> "AlertTurn | None":
        """This turn for its other units; None where none is left."""
        if self.parts <= parts:
            return None
        return replace(self, units=tuple(unit for unit in self.units if unit not in parts))

    def to_json(self) -> str:
        """One line for the spool."""
        return orjson.dumps(self).decode()


def parse_turn(text: str) -> AlertTurn:
    """What ``to_json`` wrote."""
    plain = orjson.loads(text)
    plain["turn"] = Turn(plain["turn"])
    plain["severity"] = Severity(plain["severity"])
    plain["units"] = tuple(plain["units"])
    return AlertTurn(**plain)


def flatten(turn: ViolationTurn) -> AlertTurn:
    """The turn with only what is told of its rule."""
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
