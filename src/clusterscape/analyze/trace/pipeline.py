"""Pipelines: the stage of each rank (recorded in the trace, else inferred from sends and receives), load imbalance λ, and the
bubble, split into the unavoidable part of the schedule, the part due to unequal stages, and the rest.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from clusterscape.model.spans import SpanClass, Trace


def assign_stages(trace: Trace) -> Trace:
    """The trace with the stage of every rank in its facts and spans; a note if stages cannot be inferred."""
    stages = {facts.rank: facts.stage for facts in trace.ranks if facts.stage is not None}
    notes: tuple[str, ...] = ()
    if len(stages) < len(trace.ranks):
        inferred, note = _infer_stages(trace)
        stages = inferred or stages
        notes = (note,) if note else ()
    if not stages:
        return replace(trace, notes=trace.notes + notes)
    spans = trace.spans.with_columns(
        pl.col("rank").replace_strict(stages, default=None, return_dtype=pl.Int32).alias("stage")
    )
    facts = tuple(replace(rank_facts, stage=stages.get(rank_facts.rank)) for rank_facts in trace.ranks)
    return replace(trace, spans=spans, ranks=facts, notes=trace.notes + notes)


def _infer_stages(trace: Trace) -> tuple[dict[int, int], str | None]:
    messages = trace.spans.filter(pl.col("collective").cast(pl.String).is_in(["send", "recv"]))
    forward = messages.filter(pl.col("phase") == "forward")
    if not forward.height:
        return {}, None
    kinds = forward.group_by("rank").agg(pl.col("collective").cast(pl.String).unique())
    by_rank = {rank: set(directions) for rank, directions in kinds.iter_rows()}
    first = [rank for rank, directions in by_rank.items() if directions == {"send"}]
    last = [rank for rank, directions in by_rank.items() if directions == {"recv"}]
    ranks = sorted(by_rank)
    if len(first) != 1 or len(last) != 1:
        return {}, "The pipeline stages cannot be inferred from sends and receives."
    targets = forward.filter((pl.col("collective") == "send") & pl.col("peer").is_not_null())
    following = dict(targets.select("rank", "peer").unique().iter_rows())
    if len(following) == len(ranks) - 1:
        return _follow_sends(first[0], following), None
    if first[0] == ranks[0] and last[0] == ranks[-1]:
        note = "Sends do not record their peers: pipeline stages are assumed to be in rank order."
        return {rank: stage for stage, rank in enumerate(ranks)}, note
    return {}, "Sends do not record their peers, and ranks are not in pipeline order: stages are unknown."


def _follow_sends(first: int, following: dict[int, int]) -> dict[int, int]:
    stages, rank = {first: 0}, first
    while rank in following and following[rank] not in stages:
        stages[following[rank]] = stages[rank] + 1
        rank = following[rank]
    return stages


@dataclass(frozen=True, slots=True)
class LoadImbalance:
    """λ = max/mean − 1, mean over steps; None if there is nothing to compare.

    ranks: device time of the ranks of a stage (of all ranks without stages), of the worst stage; stages: pass time per stage;
    micro_batches: passes of one rank, step and phase, averaged over these.
    """

    ranks: float | None
    stages: float | None
    micro_batches: float | None


def measure_imbalance(breakdown: pl.DataFrame, passes: pl.DataFrame, stages: dict[int, int | None]) -> LoadImbalance:
    """λ of ranks, stages and micro-batches, from the breakdown of ranks and the passes of a pipeline."""
    spread = pl.col("compute").max() / pl.col("compute").mean() - 1
    ranks = breakdown.with_columns(
        pl.col("rank").replace_strict(stages, default=None, return_dtype=pl.Int32).alias("stage"),
        pl.col("compute_ns").alias("compute"),
    )
    peers = ranks.group_by("step", "stage").agg(spread.alias("beyond"), pl.len()).filter(pl.col("len") > 1)
    worst = peers.group_by("stage").agg(pl.col("beyond").mean())["beyond"].drop_nans()
    length = passes.with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("compute"))
    by_stage = length.group_by("step", "stage").agg(pl.col("compute").sum())
    over_stages = by_stage.group_by("step").agg(spread.alias("beyond"), pl.len()).filter(pl.col("len") > 1)
    keys = ("step", "rank", "phase", "chunk")
    over_batches = length.group_by(keys).agg(spread.alias("beyond"), pl.len()).filter(pl.col("len") > 1)
    return LoadImbalance(
        float(worst.to_numpy().max()) if worst.len() else None,
        float(over_stages["beyond"].to_numpy().mean()) if over_stages.height else None,
        float(over_batches["beyond"].to_numpy().mean()) if over_batches.height else None,
    )


Key = tuple[int, str, int, int]
"""(stage, phase, micro-batch, model chunk)."""


@dataclass(frozen=True, slots=True)
class Bubble:
    """Shares of the pipeline's time in which a stage does not compute: ``measured`` = ideal + imbalance + jitter.

    ideal: (p − 1) / (v·m + p − 1) of a balanced schedule with p stages, m micro-batches and v model chunks per stage; imbalance:
    added when re-simulated with the stages' own mean durations; jitter: the rest (variation, transfers, delays).
    """

    stages: int
    micro_batches: int
    chunks: int
    measured: float
    ideal: float
    imbalance: float
    jitter: float
    step_s: float
    """Mean time from the first forward to the last backward."""
    resimulated_s: float
    balanced_s: float
    """Re-simulated with all stages equal."""
    stage_compute_s: tuple[float, ...]
    """Forward and backward of all micro-batches, per step."""
    stage_bubble: tuple[float, ...]


def find_passes(spans: pl.DataFrame) -> pl.DataFrame:
    """Forward and backward passes: rank, stage, step, phase, micro_batch, chunk, start_ns, end_ns.

    From annotations if there are any, each extended to the end of its device work; else as long as its compute spans together:
    without annotations, a pass may be recorded operator by operator, and others run in between.
    """
    keys = ["rank", "stage", "step", "phase", "micro_batch"]
    in_pass = spans.filter(
        pl.col("phase").cast(pl.String).is_in(["forward", "backward"])
        & pl.all_horizontal(pl.col(name).is_not_null() for name in ("stage", "step", "micro_batch"))
    ).with_columns(find_chunk())
    compute = in_pass.filter(pl.col("span_class") == SpanClass.COMPUTE.value)
    is_message = pl.col("name").cast(pl.String).str.contains("(?i)send|recv")
    marks = in_pass.filter((pl.col("span_class") == SpanClass.ANNOTATION.value) & ~pl.col("is_device") & ~is_message)
    marks = marks.sort(pl.col("end_ns") - pl.col("start_ns"), descending=True).unique(keys, keep="first")
    if not marks.height:
        length = (pl.col("end_ns") - pl.col("start_ns")).sum()
        passes = compute.group_by(*keys, "chunk", maintain_order=True)
        return passes.agg(pl.col("start_ns").min(), (pl.col("start_ns").min() + length).alias("end_ns"))
    in_message = pl.col("namespace").cast(pl.String).str.contains("(?i)send|recv").fill_null(False)
    device_ends = compute.filter(~in_message).group_by(keys).agg(pl.col("end_ns").max().alias("device_ns"))
    marks = marks.join(device_ends, on=keys, how="left")
    end = pl.max_horizontal("end_ns", pl.col("device_ns").fill_null(pl.col("end_ns")))
    return marks.with_columns(end.alias("end_ns"), pl.lit(0, pl.Int32).alias("chunk")).select(
        *keys, "chunk", "start_ns", "end_ns"
    )


def find_chunk() -> pl.Expr:
    """The model chunk from the namespace (``chunk 1``); else 0."""
    number = pl.col("namespace").cast(pl.String).str.extract(r"^chunk (\d+)$")
    return number.cast(pl.Int32).fill_null(0).alias("chunk")


def measure_bubble(passes: pl.DataFrame) -> Bubble | None:
    """The bubble, averaged over steps and stages; None without a pipeline or if passes are missing."""
    if not passes.height or passes["stage"].n_unique() < 2:
        return None
    passes = passes.with_columns(
        ((pl.col("end_ns") - pl.col("start_ns")) / 1e9).alias("length_s"), pl.col("phase").cast(pl.String)
    )
    stages, chunks = passes["stage"].n_unique(), passes["chunk"].n_unique()
    micro_batches = passes["micro_batch"].n_unique()
    per_step = passes.group_by("step").agg(((pl.col("end_ns").max() - pl.col("start_ns").min()) / 1e9).alias("whole_s"))
    busy = passes.group_by("step", "rank", "stage").agg(pl.col("length_s").sum())
    shares = busy.join(per_step, on="step").with_columns((1 - pl.col("length_s") / pl.col("whole_s")).alias("bubble"))
    by_stage = shares.group_by("stage").agg(pl.col("length_s").mean(), pl.col("bubble").mean()).sort("stage")
    order, means = _read_schedule(passes)
    whole_s = simulate_passes(order, means, stages, chunks)
    if whole_s is None:
        return None
    used_s = sum(means[key] for key in order) / stages
    balanced = _balance_stages(means)
    balanced_s = simulate_passes(order, balanced, stages, chunks) or whole_s
    ideal = (stages - 1) / (chunks * micro_batches + stages - 1)
    measured = float(shares["bubble"].to_numpy().mean())
    resimulated = 1 - used_s / whole_s
    return Bubble(
        stages=stages,
        micro_batches=micro_batches,
        chunks=chunks,
        measured=measured,
        ideal=ideal,
        imbalance=resimulated - ideal,
        jitter=measured - resimulated,
        step_s=float(per_step["whole_s"].to_numpy().mean()),
        resimulated_s=whole_s,
        balanced_s=balanced_s,
        stage_compute_s=tuple(by_stage["length_s"]),
        stage_bubble=tuple(by_stage["bubble"]),
    )


def _read_schedule(passes: pl.DataFrame) -> tuple[list[Key], Mapping[Key, float]]:
    """The passes of the first step in execution order, and the mean duration of each (stage, phase, chunk)."""
    first = passes.filter(pl.col("step") == pl.col("step").min())
    first_ranks = first.filter(pl.col("rank") == pl.col("rank").min().over("stage")).sort("start_ns")
    order: list[Key] = [tuple(row) for row in first_ranks.select("stage", "phase", "micro_batch", "chunk").iter_rows()]
    table = passes.group_by("stage", "phase", "chunk").agg(pl.col("length_s").mean())
    mean = {tuple(row[:3]): row[3] for row in table.iter_rows()}
    return order, {key: mean[key[0], key[1], key[3]] for key in order}


def _balance_stages(means: Mapping[Key, float]) -> dict[Key, float]:
    """Equal stages: the mean over stages of each phase and chunk."""
    by_kind: dict[tuple[str, int], list[float]] = defaultdict(list)
    for (_, phase, _, chunk), length_s in means.items():
        by_kind[phase, chunk].append(length_s)
    return {key: sum(lengths := by_kind[key[1], key[3]]) / len(lengths) for key in means}


def simulate_passes(order: Sequence[Key], length_s: Mapping[Key, float], stages: int, chunks: int) -> float | None:
    """Seconds from the first start to the last end with instant transfers; None if passes deadlock.

    Each stage runs its passes in the given order; a forward waits for the previous stage, a backward for the next stage, also
    across model chunks.
    """
    queues: dict[int, list[Key]] = defaultdict(list)
    for key in order:
        queues[key[0]].append(key)
    at = dict.fromkeys(queues, 0)
    free = dict.fromkeys(queues, 0.0)
    end: dict[Key, float] = {}
    present = set(order)
    progressed = True
    while progressed:
        progressed = False
        for stage, queue in queues.items():
            while at[stage] < len(queue):
                key = queue[at[stage]]
                before = _dependency(key, stages, chunks)
                if before is not None and before in present and before not in end:
                    break
                start = max(free[stage], end.get(before, 0.0) if before is not None else 0.0)
                end[key] = free[stage] = start + length_s[key]
                at[stage] += 1
                progressed = True
    return max(end.values()) if len(end) == len(order) else None


def _dependency(key: Key, stages: int, chunks: int) -> Key | None:
    stage, phase, micro_batch, chunk = key
    if phase == "forward":
        if stage:
            return stage - 1, phase, micro_batch, chunk
        return (stages - 1, phase, micro_batch, chunk - 1) if chunk else None
    if stage < stages - 1:
        return stage + 1, phase, micro_batch, chunk
    if chunk < chunks - 1:
        return 0, phase, micro_batch, chunk + 1
    return stage, "forward", micro_batch, chunk


@dataclass(frozen=True, slots=True)
class ScheduleAnswer:
    """Mean seconds from the first forward to the last backward, now and with the change; ``error_s``: difference between the
    recorded schedule and its simulation (transfers and jitter).
    """

    now_s: float
    then_s: float
    error_s: float


def simulate_schedule(
    passes: pl.DataFrame, micro_batches: int | None, schedule: Literal["gpipe", "1f1b"] | None
) -> ScheduleAnswer | None:
    """The pipeline with another number of micro-batches (the batch stays the same, so the length of a micro-batch changes) or
    another order of passes; None without a pipeline, or with several model chunks per stage.
    """
    bubble = measure_bubble(passes)
    if bubble is None or bubble.chunks > 1:
        return None
    typed = passes.with_columns(
        ((pl.col("end_ns") - pl.col("start_ns")) / 1e9).alias("length_s"), pl.col("phase").cast(pl.String)
    )
    _, means = _read_schedule(typed)
    by_kind = {(key[0], key[1]): length_s for key, length_s in means.items()}
    count = micro_batches or bubble.micro_batches
    kind = schedule or name_schedule(passes)
    order = _order_passes(bubble.stages, count, kind)
    scale = bubble.micro_batches / count
    lengths = {key: by_kind.get((key[0], key[1]), 0.0) * scale for key in order}
    then_s = simulate_passes(order, lengths, bubble.stages, 1)
    if then_s is None:
        return None
    return ScheduleAnswer(bubble.resimulated_s, then_s, abs(bubble.step_s - bubble.resimulated_s))


def name_schedule(passes: pl.DataFrame) -> Literal["gpipe", "1f1b"]:
    """``gpipe`` if the first stage runs all forwards of a step before its backwards; else ``1f1b``."""
    first_stage = passes.filter(
        (pl.col("stage") == pl.col("stage").min()) & (pl.col("step") == pl.col("step").min())
    ).filter(pl.col("rank") == pl.col("rank").min())
    phases = first_stage.sort("start_ns")["phase"].cast(pl.String).to_list()
    return "gpipe" if phases == sorted(phases, reverse=True) else "1f1b"


def _order_passes(stages: int, count: int, kind: Literal["gpipe", "1f1b"]) -> list[Key]:
    order: list[Key] = []
    for stage in range(stages):
        ahead = count if kind == "gpipe" else min(count, stages - stage)
        forward = [(stage, "forward", at, 0) for at in range(count)]
        # GPipe runs backwards in reverse order: the activations of the last micro-batch are the newest.
        numbers = reversed(range(count)) if kind == "gpipe" else range(count)
        backward = [(stage, "backward", at, 0) for at in numbers]
        order += forward[:ahead]
        for at in range(count):
            order.append(backward[at])
            order += forward[ahead + at : ahead + at + 1]
    return order


def simulate_recorded(passes: pl.DataFrame) -> tuple[float, float] | None:
    """Mean seconds of a step's pipeline with every pass as recorded, and with the mean of its stage and phase in that step.

    ``passes`` of one rank per stage. Transfers are instant in both. None if a step cannot be simulated.
    """
    stages, chunks = passes["stage"].n_unique(), passes["chunk"].n_unique()
    results = []
    for _, step_passes in passes.group_by("step", maintain_order=True):
        table = step_passes.sort("start_ns").with_columns(
            ((pl.col("end_ns") - pl.col("start_ns")) / 1e9).alias("length_s"), pl.col("phase").cast(pl.String)
        )
        table = table.with_columns(pl.col("length_s").mean().over("stage", "phase", "chunk").alias("mean_s"))
        order: list[Key] = [tuple(row) for row in table.select("stage", "phase", "micro_batch", "chunk").iter_rows()]
        totals = [
            simulate_passes(order, dict(zip(order, table[name], strict=True)), stages, chunks)
            for name in ("length_s", "mean_s")
        ]
        if totals[0] is None or totals[1] is None:
            return None
        results.append((totals[0], totals[1]))
    now, equalized = (sum(values) / len(results) for values in zip(*results, strict=True))
    return now, equalized
