"""Turns to numbers, where too many wait: what is left of them is how many of which rule, from when to when. Pure."""

from collections.abc import Iterable, Sequence

from clusterscape.model.ids import UnixMs
from clusterscape.watch.alerts.contract import Policy, Tally
from clusterscape.watch.alerts.plan import Plan, Waiting, drop_flaps
from clusterscape.watch.alerts.turns import AlertTurn

_FOREVER_MS = 2**62


def tally(turns: Iterable[AlertTurn]) -> list[Tally]:
    """How many started and stopped, one entry per rule, in the order of first appearance."""
    return merge(
        Tally(
            rule=turn.rule,
            rule_name=turn.rule_name,
            severity=turn.severity,
            started=int(turn.is_start),
            stopped=int(not turn.is_start),
            first_at=turn.at,
            last_at=turn.at,
        )
        for turn in turns
    )


def merge(tallies: Iterable[Tally]) -> list[Tally]:
    """One entry per rule; name and severity are the latest."""
    found: dict[str, Tally] = {}
    for each in tallies:
        known = found.get(each.rule, each)
        is_known = known is not each
        found[each.rule] = Tally(
            rule=each.rule,
            rule_name=each.rule_name,
            severity=each.severity,
            started=each.started + known.started * is_known,
            stopped=each.stopped + known.stopped * is_known,
            first_at=UnixMs(min(known.first_at, each.first_at)),
            last_at=UnixMs(max(known.last_at, each.last_at)),
        )
    return list(found.values())


def supersede(waiting: Sequence[Waiting]) -> Plan:
    """For a channel that is told states: a start and its stop, both unsent, leave no trace in the state."""
    plan = Plan()
    drop_flaps(waiting, Policy(hold_ms=_FOREVER_MS), plan)
    return plan
