"""Which alerts still fire at a channel that has no state of its own. Pure: old state and turns in, new state out."""

from collections.abc import Iterable, Mapping

from clusterscape.watch.alerts.contract import Firing
from clusterscape.watch.alerts.turns import AlertTurn

Subject = tuple[str, str]


def advance(before: Mapping[Subject, Firing], turns: Iterable[AlertTurn]) -> dict[Subject, Firing]:
    """The state of every subject of ``turns`` after them; a subject with empty ``parts`` has stopped."""
    after: dict[Subject, Firing] = {}
    for turn in turns:
        previous = after.get(turn.subject) or before.get(turn.subject)
        if turn.is_start:
            is_open = previous is not None and bool(previous.parts)
            first = previous.first if previous is not None and is_open else turn
            parts = (previous.parts if previous is not None else frozenset()) | turn.parts
        else:
            first = previous.first if previous is not None else turn
            # A stop of the whole workload stops all its parts.
            parts = frozenset() if previous is None or not turn.units else previous.parts - turn.parts
        after[turn.subject] = Firing(first=first, parts=parts)
    return after
