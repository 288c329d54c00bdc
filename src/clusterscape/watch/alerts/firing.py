"""What still fires at a channel that does not remember by itself. Pure: what fired and the turns told, in; what fires, out."""

from collections.abc import Iterable, Mapping

from clusterscape.watch.alerts.contract import Firing
from clusterscape.watch.alerts.turns import AlertTurn

Subject = tuple[str, str]


def advance(before: Mapping[Subject, Firing], turns: Iterable[AlertTurn]) -> dict[Subject, Firing]:
    """Every subject of ``turns`` after them; one whose ``parts`` are empty has stopped."""
    after: dict[Subject, Firing] = {}
    for turn in turns:
        known = after.get(turn.subject) or before.get(turn.subject)
        if turn.is_start:
            goes_on = known is not None and bool(known.parts)
            first = known.first if known is not None and goes_on else turn
            parts = (known.parts if known is not None else frozenset()) | turn.parts
        else:
            first = known.first if known is not None else turn
            # A stop of the whole workload ends every part of it.
            parts = frozenset() if known is None or not turn.units else known.parts - turn.parts
        after[turn.subject] = Firing(first=first, parts=parts)
    return after
