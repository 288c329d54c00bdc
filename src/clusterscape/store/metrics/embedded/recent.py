"""The latest writes in memory: what is not compacted yet, and at least the last minutes, for the live page.

Owns what is kept and for how long. Immutable: a change makes a new ring, so that readers need no lock.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clusterscape.store.metrics.embedded.blocks import Block
from clusterscape.store.metrics.embedded.merging import merge_blocks

_FAN_IN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentBlock:
    """One write in memory, or several that follow one another, and the numbers of their files."""

    first_seq: int
    seq: int  # of the last write
    writes: int
    block: Block
    start_ms: int
    last_ms: int
    samples: int
    size_bytes: int

    @classmethod
    def of(cls, block: Block, *, seq: int, size_bytes: int) -> "RecentBlock":
        """``block`` with its time range and its number of samples."""
        time_ms = block.keys.time_ms
        return cls(
            first_seq=seq,
            seq=seq,
            writes=1,
            block=block,
            start_ms=int(time_ms.min()),
            last_ms=int(time_ms.max()),
            samples=block.count_samples(),
            size_bytes=size_bytes,
        )

    def overlaps(self, start_ms: int, end_ms: int) -> bool:
        """Whether it may hold samples in [start, end)."""
        return self.start_ms < end_ms and self.last_ms >= start_ms


def _is_full(blocks: Sequence[RecentBlock], sealed_seq: int) -> bool:
    """Whether these are enough blocks of the same size, none of them sealed."""
    return (
        len(blocks) == _FAN_IN
        and blocks[0].seq > sealed_seq
        and all(block.writes == blocks[0].writes for block in blocks)
    )


def _join(blocks: Sequence[RecentBlock]) -> RecentBlock:
    size = 1 + max(int(block.block.keys.units.max()) for block in blocks)
    joined = merge_blocks([block.block for block in blocks], np.arange(size))
    whole = RecentBlock.of(joined, seq=blocks[-1].seq, size_bytes=sum(block.size_bytes for block in blocks))
    return replace(whole, first_seq=blocks[0].first_seq, writes=sum(block.writes for block in blocks))


@dataclass(frozen=True, slots=True)
class Ring:
    """Blocks in the order they were written. Every sample of the store since ``complete_from_ms`` is in here."""

    blocks: tuple[RecentBlock, ...] = ()
    complete_from_ms: int = 0

    def add(self, block: RecentBlock, *, sealed_seq: int) -> "Ring":
        """With one more block at the end.

        Every eight writes become one block, and eight of those again, so that a reader meets few blocks; but those up to
        ``sealed_seq``, which are compacted or about to be, stay apart from those after.
        """
        blocks = [*self.blocks, block]
        while _is_full(blocks[-_FAN_IN:], sealed_seq):
            blocks[-_FAN_IN:] = [_join(blocks[-_FAN_IN:])]
        return replace(self, blocks=tuple(blocks))

    def complete_from(self, time_ms: int) -> "Ring":
        """Without the promise for samples before ``time_ms``."""
        return replace(self, complete_from_ms=max(self.complete_from_ms, time_ms))

    def newest_ms(self) -> int | None:
        """Time of the newest sample."""
        return max((block.last_ms for block in self.blocks), default=None)

    def waiting(self, compacted_seq: int) -> tuple[RecentBlock, ...]:
        """The blocks that no segment holds yet."""
        return tuple(block for block in self.blocks if block.seq > compacted_seq)

    def trim(self, *, compacted_seq: int, keep_ms: int) -> "Ring":
        """Without compacted blocks that end ``keep_ms`` or more before the newest sample."""
        newest_ms = self.newest_ms()
        if newest_ms is None:
            return self
        border = newest_ms - keep_ms
        stays = tuple(b for b in self.blocks if b.seq > compacted_seq or b.last_ms >= border)
        dropped = [b.last_ms for b in self.blocks if b.seq <= compacted_seq and b.last_ms < border]
        return Ring(
            stays, max(self.complete_from_ms, *(last + 1 for last in dropped)) if dropped else self.complete_from_ms
        )
