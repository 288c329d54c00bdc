"""The latest writes in memory: what is not compacted yet, and at least the last minutes, for the live page.

Owns what is kept and for how long. Immutable: a change makes a new ring, so that readers need no lock.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clusterscape.model.samples import Int32s
from clusterscape.store.metrics.embedded.blocks import Block, count_merged_cells, take_rows
from clusterscape.store.metrics.embedded.merging import merge_blocks

_FAN_IN = 8
SPARSE_CELLS = 1_000_000
"""Tables up to this size are put together whatever their names."""


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
    is_of_runs: bool = False  # samples that tracked runs sent: names of their own, so that they are kept apart

    @classmethod
    def of(cls, block: Block, *, seq: int, size_bytes: int, is_of_runs: bool = False) -> "RecentBlock":
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
            is_of_runs=is_of_runs,
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
        and (not blocks[0].is_of_runs or _fit_together(blocks))
    )


def _fit_together(blocks: Sequence[RecentBlock]) -> bool:
    """Whether one table of these is not much larger than they are: runs with other names share no columns."""
    merged = count_merged_cells((len(block.block), block.block.columns) for block in blocks)
    return merged <= max(SPARSE_CELLS, 2 * sum(block.block.cells for block in blocks))


def _join(blocks: Sequence[RecentBlock]) -> RecentBlock:
    size = 1 + max(int(block.block.keys.units.max()) for block in blocks)
    joined = merge_blocks([block.block for block in blocks], np.arange(size))
    size_bytes, of_runs = sum(block.size_bytes for block in blocks), blocks[0].is_of_runs
    whole = RecentBlock.of(joined, seq=blocks[-1].seq, size_bytes=size_bytes, is_of_runs=of_runs)
    return replace(whole, first_seq=blocks[0].first_seq, writes=sum(block.writes for block in blocks))


def _take_out(recent: RecentBlock, units: Int32s) -> RecentBlock | None:
    keys = recent.block.keys
    is_gone = np.isin(keys.units, units)
    if not is_gone.any():
        return recent
    kept = take_rows(recent.block, np.repeat(~is_gone, keys.lengths))
    if not len(kept):
        return None
    left = RecentBlock.of(kept, seq=recent.seq, size_bytes=recent.size_bytes, is_of_runs=recent.is_of_runs)
    return replace(left, first_seq=recent.first_seq, writes=recent.writes)


@dataclass(frozen=True, slots=True)
class Ring:
    """Blocks in the order they were written. Every sample since ``complete_from_ms`` is in here, but for those of runs."""

    blocks: tuple[RecentBlock, ...] = ()
    complete_from_ms: int = 0

    def add(self, block: RecentBlock, *, sealed_seq: int) -> "Ring":
        """With one more block at the end.

        Every eight writes become one block, and eight of those again, so that a reader meets few blocks; but those up to
        ``sealed_seq``, which are compacted or about to be, stay apart from those after, and those of runs from the others.
        """
        # A joined block stands where its last write does; what lies between its writes has none of its units.
        others = [each for each in self.blocks if each.is_of_runs != block.is_of_runs]
        alike = [each for each in self.blocks if each.is_of_runs == block.is_of_runs]
        alike.append(block)
        while _is_full(alike[-_FAN_IN:], sealed_seq):
            alike[-_FAN_IN:] = [_join(alike[-_FAN_IN:])]
        blocks = sorted([*others, *alike], key=lambda each: each.seq) if others else alike
        return replace(self, blocks=tuple(blocks))

    def without(self, units: Int32s) -> "Ring":
        """Without the rows of these units; blocks that hold nothing else go."""
        blocks = [_take_out(block, units) for block in self.blocks]
        return replace(self, blocks=tuple(block for block in blocks if block is not None))

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
        """Without compacted blocks that end ``keep_ms`` or more before the newest sample, and all compacted ones of runs.

        Those are large for what they hold, and nobody asks for the latest values of runs.
        """
        newest_ms = self.newest_ms()
        if newest_ms is None:
            return self
        border = newest_ms - keep_ms
        waiting = [b for b in self.blocks if b.seq > compacted_seq]
        compacted = [b for b in self.blocks if b.seq <= compacted_seq and not b.is_of_runs]
        stays = tuple(sorted([*(b for b in compacted if b.last_ms >= border), *waiting], key=lambda b: b.seq))
        dropped = [b.last_ms for b in compacted if b.last_ms < border]
        return Ring(
            stays, max(self.complete_from_ms, *(last + 1 for last in dropped)) if dropped else self.complete_from_ms
        )
