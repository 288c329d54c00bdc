"""Reduces turns to counts per rule when too many wait. Pure."""

from collections.abc import Iterable, Sequence

from clusterscape.model.ids import UnixMs
from clusterscape.watch.alerts.contract import SendingPolicy, Tally
from clusterscape.watch.alerts.plan import DeliveryPlan, SpooledTurn, drop_flaps
from clusterscape.watch.alerts.turns import AlertTurn

_FOREVER_MS = 2**62


def tally(turns: Iterable[AlertTurn]) -> list[Tally]:
    """Count started and stopped turns, one entry per rule, in the order of first appearance."""
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
    merged: dict[str, Tally] = {}
    for new in tallies:
        old = merged.get(new.rule, new)
        has_old = old is not new
        merged[new.rule] = Tally(
            rule=new.rule,
            rule_name=new.rule_name,
            severity=new.severity,
            started=new.started + old.started * has_old,
            stopped=new.stopped + old.stopped * has_old,
            first_at=UnixMs(min(old.first_at, new.first_at)),
            last_at=UnixMs(max(old.last_at, new.last_at)),
        )
    return list(merged.values())


def supersede(waiting: Sequence[SpooledTurn]) -> DeliveryPlan:
    """For a channel that receives states: drop a start and its stop if both are unsent, because the state is unchanged."""
    plan = DeliveryPlan()
    drop_flaps(waiting, SendingPolicy(hold_ms=_FOREVER_MS), plan)
    return plan
