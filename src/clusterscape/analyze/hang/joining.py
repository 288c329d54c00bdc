"""The looks of several machines at one run as one: each tracker sees only the ranks of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterscape.model.hangs import CommunicatorLook, HangLook, ProcessLook, RankLook

MOST_COMMUNICATORS = 16_384
"""Of one job; the first ones are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineLooks:
    """What one tracker reported. ``ended``: how the processes of its ranks ended; empty while they run."""

    looks: Sequence[HangLook]
    ended: Mapping[int, ProcessLook]


def join_looks(machines: Sequence[MachineLooks]) -> list[HangLook]:
    """The first looks of all machines together, then the second ones. A rank whose tracker has ended has ended in both."""
    count = max((len(machine.looks) for machine in machines), default=0)
    ended = {rank: process for machine in machines for rank, process in machine.ended.items()}
    return [
        _join([machine.looks[min(place, len(machine.looks) - 1)] for machine in machines if machine.looks], ended)
        for place in range(count)
    ]


def _join(looks: Sequence[HangLook], ended: Mapping[int, ProcessLook]) -> HangLook:
    ranks: dict[int, RankLook] = {}
    for look in looks:
        for rank, about in look.ranks.items():
            ranks[rank] = ranks[rank].merge(about) if rank in ranks else about
    for rank, process in ended.items():
        ranks[rank] = RankLook(rank, process=process)
    world_size = max((look.world_size for look in looks if look.world_size), default=None)
    # Every node lists those of the whole job.
    listed = (communicator for look in looks for communicator in look.communicators)
    communicators: dict[str, CommunicatorLook] = {}
    for communicator in listed:
        if len(communicators) < MOST_COMMUNICATORS or communicator.name in communicators:
            communicators[communicator.name] = communicator
    return HangLook(
        dict(sorted(ranks.items())),
        tuple(communicators.values()),
        world_size,
        looks[0].taken_ms,
        tuple(dict.fromkeys(note for look in looks for note in look.notes)),
        is_partial=world_size is not None and len(ranks) < world_size,
    )
