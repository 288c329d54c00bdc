"""The rank of a trace file: what the file says of itself, else what its name says, else its place. Says what was unclear."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

_NAMED = re.compile(r"(?:rank|worker|device|npu|gpu|proc|process)[-_.=]?(\d+)", re.IGNORECASE)
_SHORT = re.compile(r"(?:^|[-_./])r(\d+)(?=[-_./]|$)", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")


def find_rank_in_name(name: str) -> int | None:
    """The number after "rank", "worker" and the like; the innermost part of the path that has one decides."""
    for part in reversed(PurePath(name).parts):
        for pattern in (_NAMED, _SHORT):
            found = pattern.findall(part)
            if found:
                return int(found[-1])
    return None


def find_varying_number(names: Sequence[str]) -> list[int] | None:
    """For names alike but for one number, different in each: those numbers."""
    titles = [PurePath(name).name for name in names]
    numbers = [[int(each) for each in _NUMBER.findall(title)] for title in titles]
    if len(titles) < 2 or len({_NUMBER.sub("#", title) for title in titles}) > 1:
        return None
    varying = [column for column in zip(*numbers, strict=True) if len(set(column)) == len(titles)]
    small = [column for column in varying if max(column) < 4 * len(titles)]
    return list(small[0]) if small else None


def assign_ranks(names: Sequence[str], stated: Sequence[int | None]) -> tuple[list[int], list[str]]:
    """A rank for each file, and notes.

    Where several files state the same rank but their names tell them apart (copies), the names decide.
    """
    notes: list[str] = []
    named = [find_rank_in_name(name) for name in names]
    if None in named or len(set(named)) < len(named):
        varying = find_varying_number(names)
        named = list(varying) if varying else named
    are_names_distinct = None not in named and len(set(named)) == len(named)
    doubled = [rank for rank, times in Counter(stated).items() if rank is not None and times > 1]
    if doubled and are_names_distinct and set(named) != set(stated):
        notes.append(
            f"{len(names)} files state rank {', '.join(map(str, sorted(doubled)))} more than once; "
            "their names differ in a number, which is taken as the rank."
        )
        stated = [None] * len(names)
    ranks: list[int] = []
    guessed = []
    taken = {rank for rank in stated if rank is not None}
    for place, (own, by_name) in enumerate(zip(stated, named, strict=True)):
        rank = own if own is not None else by_name
        if rank is None:
            rank = next(free for free in range(place, place + len(names) + len(taken) + 1) if free not in taken)
            guessed.append(PurePath(names[place]).name)
            taken.add(rank)
        ranks.append(rank)
    if guessed:
        listed = ", ".join(guessed[:3]) + (" …" if len(guessed) > 3 else "")
        notes.append(f"Neither the trace nor the name tells the rank of {listed}: numbered by name order.")
    elif any(own is None for own in stated) and not doubled:
        notes.append("Some traces do not tell their rank: taken from the file names.")
    return ranks, notes
