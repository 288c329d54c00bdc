"""A pipeline's bubble: measured, and split into what its schedule cannot avoid, what unequal stages add, and the rest."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from clusterscape.model.spans import SpanClass

Key = tuple[int, str, int, int]
"""(stage, phase, micro-batch, model chunk)."""


@dataclass(frozen=True, slots=True)
class Bubble:
    """Shares of the pipeline's time in which a stage does not compute: ``measured`` = ideal + imbalance + jitter.

    ideal: (p − 1) / (v·m + p − 1) of a balanced schedule with p stages, m micro-batches, v model chunks a stage; imbalance:
    what the stages' own mean durations add when re-simulated; jitter: the rest (variation, transfers, delays).
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
    """The same with all stages alike."""
    stage_compute_s: tuple[float, ...]
    """Forward and backward of all micro-batches, per step."""
    stage_bubble: tuple[float, ...]


def find_passes(spans: pl.DataFrame) -> pl.DataFrame:
    """Forward and backward passes: rank, stage, step, phase, micro_batch, chunk, start_ns, end_ns.

    Annotations where there are, each until the device has done what it launched; else spans that are whole passes themselves.
    """
    keys = ["rank", "stage", "step", "phase", "micro_batch"]
    known = spans.filter(
        pl.col("phase").cast(pl.String).is_in(["forward", "backward"])
        & pl.all_horizontal(pl.col(name).is_not_null() for name in ("stage", "step", "micro_batch"))
    ).with_columns(find_chunk())
    compute = known.filter(pl.col("span_class") == SpanClass.COMPUTE.value)
    is_message = pl.col("name").cast(pl.String).str.contains("(?i)send|recv")
    marks = known.filter((pl.col("span_class") == SpanClass.ANNOTATION.value) & ~pl.col("is_device") & ~is_message)
    marks = marks.sort(pl.col("end_ns") - pl.col("start_ns"), descending=True).unique(keys, keep="first")
    if not marks.height:
        whole = compute.select(*keys, "chunk", "start_ns", "end_ns")
        return whole if whole.select(*keys, "chunk").is_unique().all() else whole.head(0)
    in_message = pl.col("namespace").cast(pl.String).str.contains("(?i)send|recv").fill_null(False)
    done = compute.filter(~in_message).group_by(keys).agg(pl.col("end_ns").max().alias("device_ns"))
    marks = marks.join(done, on=keys, how="left")
    end = pl.max_horizontal("end_ns", pl.col("device_ns").fill_null(pl.col("end_ns")))
    return marks.with_columns(end.alias("end_ns"), pl.lit(0, pl.Int32).alias("chunk")).select(
        *keys, "chunk", "start_ns", "end_ns"
    )


def find_chunk() -> pl.Expr:
    """The model chunk, where the namespace names one."""
    found = pl.col("namespace").cast(pl.String).str.extract(r"^chunk (\d+)$")
    return found.cast(pl.Int32).fill_null(0).alias("chunk")


def measure_bubble(passes: pl.DataFrame) -> Bubble | None:
    """The bubble, mean over steps and stages; None where there is no pipeline or passes are missing."""
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
    order, means = _schedule(passes)
    whole_s = simulate_passes(order, means, stages, chunks)
    if whole_s is None:
        return None
    used_s = sum(means[key] for key in order) / stages
    balanced = _balance(means)
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


def _schedule(passes: pl.DataFrame) -> tuple[list[Key], Mapping[Key, float]]:
    """Passes in the order of one step of one pipeline, and the mean duration of each (stage, phase, chunk)."""
    first = passes.filter(pl.col("step") == pl.col("step").min())
    one = first.filter(pl.col("rank") == pl.col("rank").min().over("stage")).sort("start_ns")
    order: list[Key] = [tuple(row) for row in one.select("stage", "phase", "micro_batch", "chunk").iter_rows()]
    table = passes.group_by("stage", "phase", "chunk").agg(pl.col("length_s").mean())
    mean = {tuple(row[:3]): row[3] for row in table.iter_rows()}
    return order, {key: mean[key[0], key[1], key[3]] for key in order}


def _balance(means: Mapping[Key, float]) -> dict[Key, float]:
    """All stages alike: the mean over stages of each phase and chunk."""
    by_kind: dict[tuple[str, int], list[float]] = defaultdict(list)
    for (_, phase, _, chunk), length_s in means.items():
        by_kind[phase, chunk].append(length_s)
    return {key: sum(found := by_kind[key[1], key[3]]) / len(found) for key in means}


def simulate_passes(order: Sequence[Key], length_s: Mapping[Key, float], stages: int, chunks: int) -> float | None:
    """Seconds from the first start to the last end, transfers taking no time. None where passes wait in a circle.

    Each stage runs its passes in the given order; a forward waits for the stage before, a backward for the stage after,
    across model chunks.
    """
    queues: dict[int, list[Key]] = defaultdict(list)
    for key in order:
        queues[key[0]].append(key)
    at = dict.fromkeys(queues, 0)
    free = dict.fromkeys(queues, 0.0)
    end: dict[Key, float] = {}
    present = set(order)
    moved = True
    while moved:
        moved = False
        for stage, queue in queues.items():
            while at[stage] < len(queue):
                key = queue[at[stage]]
                before = _before(key, stages, chunks)
                if before is not None and before in present and before not in end:
                    break
                start = max(free[stage], end.get(before, 0.0) if before is not None else 0.0)
                end[key] = free[stage] = start + length_s[key]
                at[stage] += 1
                moved = True
    return max(end.values()) if len(end) == len(order) else None


def _before(key: Key, stages: int, chunks: int) -> Key | None:
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
    """Mean seconds from the first forward to the last backward; ``error_s``: what the simulation of the recorded schedule lacks
    (transfers and jitter).
    """

    now_s: float
    then_s: float
    error_s: float


def simulate_schedule(
    passes: pl.DataFrame, micro_batches: int | None, schedule: Literal["gpipe", "1f1b"] | None
) -> ScheduleAnswer | None:
    """The pipeline with another number of micro-batches (of the same batch: each takes accordingly longer or shorter) or another
    order of passes; None where there is no pipeline, or it has several model chunks a stage.
    """
    bubble = measure_bubble(passes)
    if bubble is None or bubble.chunks > 1:
        return None
    typed = passes.with_columns(
        ((pl.col("end_ns") - pl.col("start_ns")) / 1e9).alias("length_s"), pl.col("phase").cast(pl.String)
    )
    _, means = _schedule(typed)
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
    """GPipe where the first stage runs all forwards of a step before its backwards."""
    one = passes.filter((pl.col("stage") == pl.col("stage").min()) & (pl.col("step") == pl.col("step").min())).filter(
        pl.col("rank") == pl.col("rank").min()
    )
    phases = one.sort("start_ns")["phase"].cast(pl.String).to_list()
    return "gpipe" if phases == sorted(phases, reverse=True) else "1f1b"


def _order_passes(stages: int, count: int, kind: Literal["gpipe", "1f1b"]) -> list[Key]:
    order: list[Key] = []
    for stage in range(stages):
        ahead = count if kind == "gpipe" else min(count, stages - stage)
        forward = [(stage, "forward", at, 0) for at in range(count)]
        # GPipe's backwards begin with the last micro-batch, whose activations are the newest.
        numbers = reversed(range(count)) if kind == "gpipe" else range(count)
        backward = [(stage, "backward", at, 0) for at in numbers]
        order += forward[:ahead]
        for at in range(count):
            order.append(backward[at])
            order += forward[ahead + at : ahead + at + 1]
    return order


def simulate_recorded(passes: pl.DataFrame) -> tuple[float, float] | None:
    """Mean seconds of a step's pipeline with every pass as long as it was, and with the mean of its stage and phase in that step.

    ``passes`` of one rank a stage. Transfers take no time in either. None where a step cannot be simulated.
    """
    stages, chunks = passes["stage"].n_unique(), passes["chunk"].n_unique()
    found = []
    for _, one in passes.group_by("step", maintain_order=True):
        table = one.sort("start_ns").with_columns(
            ((pl.col("end_ns") - pl.col("start_ns")) / 1e9).alias("length_s"), pl.col("phase").cast(pl.String)
        )
        table = table.with_columns(pl.col("length_s").mean().over("stage", "phase", "chunk").alias("mean_s"))
        order: list[Key] = [tuple(row) for row in table.select("stage", "phase", "micro_batch", "chunk").iter_rows()]
        both = [
            simulate_passes(order, dict(zip(order, table[name], strict=True)), stages, chunks)
            for name in ("length_s", "mean_s")
        ]
        if both[0] is None or both[1] is None:
            return None
        found.append((both[0], both[1]))
    now, alike = (sum(values) / len(found) for values in zip(*found, strict=True))
    return now, alike
