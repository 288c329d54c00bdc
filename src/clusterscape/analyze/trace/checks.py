"""What is odd about a trace before anything is concluded from it: missing ranks, uneven steps, jumping clocks, no device."""

import numpy as np
import polars as pl

from clusterscape.model.spans import SpanClass, Trace

JUMP_STEPS = 10.0  # a pause of so many steps between two steps is no pause of training


def check_trace(trace: Trace) -> list[str]:
    """Notes in words, for people."""
    return [*_missing_ranks(trace), *_uneven_steps(trace), *_clock_jumps(trace), *_without_device(trace)]


def list_ranks(ranks: list[int]) -> str:
    """``0, 1, 2``; long lists are cut."""
    shown = ", ".join(str(rank) for rank in ranks[:8])
    return f"{shown} … ({len(ranks)} in all)" if len(ranks) > 8 else shown


def _missing_ranks(trace: Trace) -> list[str]:
    sizes = {facts.world_size for facts in trace.ranks if facts.world_size is not None}
    if len(sizes) > 1:
        return [f"The traces state different world sizes: {', '.join(map(str, sorted(sizes)))}."]
    if not sizes or trace.format == "StragglerAnalysis":
        return []
    missing = sorted(set(range(sizes.pop())) - {facts.rank for facts in trace.ranks})
    if not missing:
        return []
    subject = f"Rank {missing[0]} is" if len(missing) == 1 else f"Ranks {list_ranks(missing)} are"
    return [f"{subject} missing: who was last is only known among the others."]


def _uneven_steps(trace: Trace) -> list[str]:
    marked = trace.spans.filter(pl.col("span_class") == SpanClass.STEP.value)
    if not marked.height:
        return [] if trace.spans["step"].drop_nulls().len() else ["No steps are marked: the whole trace counts as one."]
    counts = dict(marked.group_by("rank").agg(pl.col("step").n_unique()).sort("rank").iter_rows())
    counts = {facts.rank: counts.get(facts.rank, 0) for facts in trace.ranks}
    if len(set(counts.values())) <= 1:
        return []
    usual = max(set(counts.values()), key=list(counts.values()).count)
    odd = ", ".join(f"rank {rank} has {count}" for rank, count in list(counts.items()) if count != usual)
    return [f"Ranks recorded different numbers of steps: most have {usual}, {odd}."]


def _clock_jumps(trace: Trace) -> list[str]:
    marked = trace.spans.filter(pl.col("span_class") == SpanClass.STEP.value).sort("rank", "step")
    notes = []
    for (rank,), part in marked.group_by("rank", maintain_order=True):
        start, end = part["start_ns"].to_numpy(), part["end_ns"].to_numpy()
        if start.size < 2:
            continue
        gaps = start[1:] - end[:-1]
        usual = float(np.median(end - start))
        for at in np.flatnonzero((gaps < -usual) | (gaps > JUMP_STEPS * usual)):
            word = "back" if gaps[at] < 0 else "forward"
            notes.append(
                f"The clock of rank {rank} jumps {word} by {abs(gaps[at]) / 1e9:,.3f} s "
                f"between steps {part['step'][int(at)]} and {part['step'][int(at) + 1]} (or nothing was recorded there)."
            )
    return notes


def _without_device(trace: Trace) -> list[str]:
    with_device = set(trace.spans.filter(pl.col("is_device"))["rank"].unique())
    without = [facts.rank for facts in trace.ranks if facts.rank not in with_device]
    if not without:
        return []
    if len(without) == len(trace.ranks):
        return ["No rank has spans of a device: host operators count as compute."]
    return [f"Rank {list_ranks(without)} has no spans of a device: host operators count as compute there."]
