"""The latest scrapes in memory: what is not compacted yet, and at least the last minutes, for the live page.

Owns what is kept and for how long. Immutable: a change makes a new ring, so that readers need no lock.
"""

from dataclasses import dataclass, replace

from clusterscape.store.metrics.embedded.blocks import Block


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentBlock:
    """One write in memory, and the number of its file."""

    seq: int
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
            seq=seq,
            block=block,
            start_ms=int(time_ms.min()),
            last_ms=int(time_ms.max()),
            samples=block.count_samples(),
            size_bytes=size_bytes,
        )

    def overlaps(self, start_ms: int, end_ms: int) -> bool:
        """Whether it may hold samples in [start, end)."""
        return self.start_ms < end_ms and self.last_ms >= start_ms


@dataclass(frozen=True, slots=True)
class Ring:
    """Blocks in the order they were written. Every sample of the store since ``complete_from_ms`` is in here."""

    blocks: tuple[RecentBlock, ...] = ()
    complete_from_ms: int = 0

    def add(self, block: RecentBlock) -> "Ring":
        """With one more block at the end."""
        return replace(self, blocks=(*self.blocks, block))

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
