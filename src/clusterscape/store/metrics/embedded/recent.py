"""Ring buffer of the latest writes: those that are not compacted yet, and at least the last minutes for live pages.

Immutable: a change creates a new ring, so that readers need no lock.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clusterscape.model.arrays import Int32s
from clusterscape.store.metrics.embedded.blocks import Block, count_merged_cells, merge_blocks, take_rows

_FAN_IN = 8
SPARSE_CELLS = 1_000_000
"""Tables up to this size are merged regardless of their metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentBlock:
    """One or several consecutive writes in memory, with the numbers of their files."""

    first_seq: int
    seq: int  # of the last write
    writes: int
    block: Block
    start_ms: int
    last_ms: int
    samples: int
    size_bytes: int
    is_of_runs: bool = False  # samples of tracked runs, which have many metric names and are kept separate

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
        """Whether it may contain samples in [start, end)."""
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
    """Whether a merged table is not much larger than its parts: runs with different metric names share no columns."""
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
    """Blocks in the order they were written. Contains every sample since ``complete_from_ms``, except those of runs."""

    blocks: tuple[RecentBlock, ...] = ()
    complete_from_ms: int = 0

    def add(self, block: RecentBlock, *, sealed_seq: int) -> "Ring":
        """Append a block.

        Every eight writes are merged to one block, and eight of those again, so that readers have few blocks. Blocks up to
        ``sealed_seq``, which are being compacted, are not merged with later ones, nor those of runs with others.
        """
        # A merged block is placed at its last write; blocks between its writes have none of its units.
        others = [other for other in self.blocks if other.is_of_runs != block.is_of_runs]
        alike = [other for other in self.blocks if other.is_of_runs == block.is_of_runs]
        alike.append(block)
        while _is_full(alike[-_FAN_IN:], sealed_seq):
            alike[-_FAN_IN:] = [_join(alike[-_FAN_IN:])]
        blocks = sorted([*others, *alike], key=lambda recent: recent.seq) if others else alike
        return replace(self, blocks=tuple(blocks))

    def without(self, units: Int32s) -> "Ring":
        """Without the rows of these units, and without blocks that become empty."""
        blocks = [_take_out(block, units) for block in self.blocks]
        return replace(self, blocks=tuple(block for block in blocks if block is not None))

    def complete_from(self, time_ms: int) -> "Ring":
        """The ring is complete only from ``time_ms`` on."""
        return replace(self, complete_from_ms=max(self.complete_from_ms, time_ms))

    def newest_ms(self) -> int | None:
        """Time of the latest sample."""
        return max((block.last_ms for block in self.blocks), default=None)

    def waiting(self, compacted_seq: int) -> tuple[RecentBlock, ...]:
        """The blocks that are not compacted yet."""
        return tuple(block for block in self.blocks if block.seq > compacted_seq)

    def trim(self, *, compacted_seq: int, keep_ms: int) -> "Ring":
        """Drop compacted blocks that end ``keep_ms`` or more before the latest sample, and all compacted ones of runs.

        Blocks of runs are sparse, and the latest values of runs are not queried.
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
