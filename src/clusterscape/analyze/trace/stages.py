"""The pipeline stage of each rank: as the trace says it, else read off who sends forward to whom. Never guessed."""

from dataclasses import replace

import polars as pl

from clusterscape.model.spans import Trace


def assign_stages(trace: Trace) -> Trace:
    """The trace with the stages of its ranks, in facts and spans; a note where they cannot be told."""
    known = {facts.rank: facts.stage for facts in trace.ranks if facts.stage is not None}
    notes: tuple[str, ...] = ()
    if len(known) < len(trace.ranks):
        found, note = _infer(trace)
        known = found or known
        notes = (note,) if note else ()
    if not known:
        return replace(trace, notes=trace.notes + notes)
    spans = trace.spans.with_columns(
        pl.col("rank").replace_strict(known, default=None, return_dtype=pl.Int32).alias("stage")
    )
    facts = tuple(replace(each, stage=known.get(each.rank)) for each in trace.ranks)
    return replace(trace, spans=spans, ranks=facts, notes=trace.notes + notes)


def _infer(trace: Trace) -> tuple[dict[int, int], str | None]:
    messages = trace.spans.filter(pl.col("collective").cast(pl.String).is_in(["send", "recv"]))
    forward = messages.filter(pl.col("phase") == "forward")
    if not forward.height:
        return {}, None
    kinds = forward.group_by("rank").agg(pl.col("collective").cast(pl.String).unique())
    by_rank = {rank: set(found) for rank, found in kinds.iter_rows()}
    first = [rank for rank, found in by_rank.items() if found == {"send"}]
    last = [rank for rank, found in by_rank.items() if found == {"recv"}]
    ranks = sorted(by_rank)
    if len(first) != 1 or len(last) != 1:
        return {}, "The pipeline stages of the ranks cannot be told from their sends and receives."
    targets = forward.filter((pl.col("collective") == "send") & pl.col("peer").is_not_null())
    following = dict(targets.select("rank", "peer").unique().iter_rows())
    if len(following) == len(ranks) - 1:
        return _follow(first[0], following), None
    if first[0] == ranks[0] and last[0] == ranks[-1]:
        note = "Sends do not name their peers: pipeline stages are taken in the order of ranks."
        return {rank: stage for stage, rank in enumerate(ranks)}, note
    return {}, "Sends do not name their peers, and ranks are not in pipeline order: stages are not known."


def _follow(first: int, following: dict[int, int]) -> dict[int, int]:
    stages, rank = {first: 0}, first
    while rank in following and following[rank] not in stages:
        stages[following[rank]] = stages[rank] + 1
        rank = following[rank]
    return stages
