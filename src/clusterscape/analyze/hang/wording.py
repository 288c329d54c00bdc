"""Sentences of verdicts on hangs: titles, groups, lists of ranks, and what to do."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clusterscape.analyze.hang.stacks import Occupation
from clusterscape.model.hangs import HangKind

if TYPE_CHECKING:
    from clusterscape.analyze.hang.stalls import Stall

MOST_NAMED = 6
"""The most ranks that a sentence lists."""
ADVICE = {
    HangKind.ABSENT: "Look at the named line: either it must not block, or all ranks must wait for it before the collective.",
    HangKind.MISMATCH: "Make all ranks of the group call the same collectives in the same order with equal sizes: look for a "
    "branch on rank or data at the named line.",
    HangKind.DEAD: "Look for why the process ended (exit code, kernel log, Xid), then restart from the last checkpoint.",
    HangKind.DEADLOCK: "Look at who holds the lock or the thread at the named line; forking after threads have started is a "
    "frequent cause.",
    HangKind.KERNEL: "Look at the GPU kernels queued before the collective on that rank: run it with CUDA_LAUNCH_BLOCKING=1 or "
    "attach cuda-gdb.",
    HangKind.LINK: "Compare the port and Xid counters of the group's nodes, and run nccl-tests between them.",
    HangKind.STORAGE: "Check the file system that the named line uses on that node; kernel log and mount state tell.",
    HangKind.SLOW: "Do not end the run: it makes progress. Profile the named ranks with `clusterscape.trace`.",
    HangKind.UNKNOWN: "Take Flight Recorder dumps and stacks of all ranks, twice, two steps apart.",
}


def name_ranks(ranks: Sequence[int]) -> str:
    """``rank 3``, ``ranks 0-2, 5``; many are counted."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    spans: list[list[int]] = []
    for rank in ranks:
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    words = [str(low) if low == high else f"{low}-{high}" for low, high in spans]
    more = "" if len(words) <= MOST_NAMED else f" and more, {len(ranks):,} in all"
    return f"ranks {', '.join(words[:MOST_NAMED])}{more}"


def agree(phrase: str, count: int) -> str:
    """A phrase about one rank, about several: ``wait for a lock``."""
    if count == 1:
        return phrase
    phrase = phrase.replace("waits for its", "waits for their").replace("that it started", "that they started")
    first, _, rest = phrase.partition(" ")
    first = {"is": "are", "has": "have", "was": "were", "does": "do"}.get(first, first.removesuffix("s"))
    return f"{first} {rest}".replace("or writes", "or write").rstrip()


def write_group(stall: "Stall") -> str:
    """``all_reduce number 7 of group 0 (default_pg)``."""
    number = "" if stall.sequence is None else f" number {stall.sequence}"
    if stall.source == "RAS":
        return f"communicator {stall.group}" + (f" after {stall.sequence:,} operations" if stall.sequence else "")
    about = f" ({stall.description})" if stall.description else ""
    return f"{stall.operation or 'a collective'}{number} of group {stall.group}{about}"


def write_title(kind: HangKind, ranks: Sequence[int], occupation: Occupation | None, stall: "Stall | None") -> str:
    """The verdict in one line."""
    named = name_ranks(ranks) if ranks else "The run"
    named = named[0].upper() + named[1:]
    collective = (stall.operation if stall else None) or "their collective"
    match kind:
        case HangKind.MISMATCH:
            return (
                f"{named} called another collective than the other ranks" if len(ranks) else "Collectives do not match"
            )
        case HangKind.DEAD:
            return f"{named} {'is' if len(ranks) == 1 else 'are'} gone, and the others wait"
        case HangKind.KERNEL:
            return f"{named}: a GPU kernel does not end"
        case HangKind.LINK:
            return f"All ranks are in {collective}, and no data moves"
        case HangKind.SLOW:
            doing = agree(occupation.phrase, len(ranks)) if occupation else "late"
            return f"Only slow: {name_ranks(ranks)} {doing}" if ranks else "Only slow: the numbers advance"
        case HangKind.UNKNOWN:
            if occupation and ranks:
                return f"No rank waits for another: {name_ranks(ranks)} {agree(occupation.phrase, len(ranks))}"
            return "No rank waits in a collective, as far as the files tell"
        case _:
            return f"{named} {agree(occupation.phrase, len(ranks)) if occupation else f'did not call {collective}'}"
