"""Repeated layers of an execution flow as one: a pattern of nodes that follows itself at least five times, or twice where it is
known to be a layer, with equal types inside and equal edges between them, is drawn once with its number.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

MIN_REPEATS = 5
MIN_LAYERS = 2
"""Repeats of what is known to be a layer, and not only looks like one."""
MAX_PATTERN = 12


@dataclass(frozen=True, slots=True)
class Stretch:
    """Operators drawn as one node, see ``flow.FlowPart``."""

    operators: tuple[int, ...]
    namespace: int | None
    parent: int | None
    count: int = 1


def stack_stretches(
    stretches: Sequence[Stretch],
    types: Sequence[str],
    followers: Mapping[int, Sequence[int]],
    unstacked: Collection[int],
    layers: Collection[int] = (),
) -> Iterator[Stretch]:
    """The same in the same order, repeats joined; not in the namespaces of ``unstacked`` (−1: the top).
    ``layers``: namespaces known to be some.
    """
    looks = [_look(each, types) for each in stretches]
    reaches = _reaches(stretches, followers)
    at = 0
    while at < len(stretches):
        pattern, repeats = 1, 1
        parent = stretches[at].parent
        least = MIN_LAYERS if stretches[at].namespace in layers else MIN_REPEATS
        if (-1 if parent is None else parent) not in unstacked:
            pattern, repeats = _longest(at, stretches, looks, reaches, least)
        if repeats < least:
            yield stretches[at]
            at += 1
            continue
        for offset in range(pattern):
            alike = [stretches[at + offset + pattern * one] for one in range(repeats)]
            rows = tuple(row for each in alike for row in each.operators)
            yield Stretch(rows, alike[0].namespace, alike[0].parent, repeats)
        at += pattern * repeats


Look = tuple[bool, int | None, tuple[tuple[str, int], ...]]


def _look(stretch: Stretch, types: Sequence[str]) -> Look:
    inside = tuple(sorted(Counter(types[row] for row in stretch.operators).items()))
    return stretch.namespace is None, stretch.parent, inside


def _reaches(stretches: Sequence[Stretch], followers: Mapping[int, Sequence[int]]) -> list[frozenset[int]]:
    """How many nodes before each lie those it takes from, as far as a pattern can reach."""
    owner = {row: place for place, each in enumerate(stretches) for row in each.operators}
    found: list[set[int]] = [set() for _ in stretches]
    for row, place in owner.items():
        for one in followers.get(row, ()):
            distance = owner.get(one, place) - place
            if 0 < distance < MAX_PATTERN:
                found[owner[one]].add(distance)
    return [frozenset(each) for each in found]


def _longest(
    at: int, stretches: Sequence[Stretch], looks: Sequence[Look], reaches: Sequence[frozenset[int]], least: int
) -> tuple[int, int]:
    """The pattern beginning here that covers most nodes: its length and how often it is there."""
    best = (1, 1)
    for pattern in range(1, MAX_PATTERN + 1):
        if at + pattern * least > len(stretches) or len({look[1] for look in looks[at : at + pattern]}) > 1:
            break
        first = _shape(at, pattern, looks, reaches)
        repeats = 1
        while (
            at + pattern * (repeats + 1) <= len(stretches)
            and _shape(at + pattern * repeats, pattern, looks, reaches) == first
        ):
            repeats += 1
        if repeats >= least and pattern * repeats > best[0] * best[1]:
            best = (pattern, repeats)
    return best


def _shape(
    at: int, pattern: int, looks: Sequence[Look], reaches: Sequence[frozenset[int]]
) -> list[tuple[Look, frozenset[int]]]:
    """Looks, and edges within the pattern."""
    return [
        (looks[at + offset], frozenset(one for one in reaches[at + offset] if one <= offset))
        for offset in range(pattern)
    ]
