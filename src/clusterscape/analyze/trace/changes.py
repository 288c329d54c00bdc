"""What-if questions on re-simulated steps: a rank as fast as its peers, balanced stages, faster links, perfect overlap, another
number of micro-batches or another schedule. Each answer is the resulting step time with its confidence interval over steps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from clusterscape.analyze.trace.match import BOOTSTRAP_DRAWS, MIN_STEPS
from clusterscape.analyze.trace.pipeline import find_passes, name_schedule, simulate_schedule
from clusterscape.analyze.trace.resimulate import StepGraph, build_step_graphs
from clusterscape.model.arrays import Float64s

Schedule = Literal["gpipe", "1f1b"]


_ORDERS: dict[Schedule | None, str] = {
    None: "",
    "gpipe": "in GPipe's order (all forwards, then all backwards)",
    "1f1b": "in 1F1B order (one forward, one backward)",
}


class ChangeError(ValueError):
    """The trace lacks what the question is about; the message says what."""


@dataclass(frozen=True, slots=True)
class Change:
    """One question. ``kind``: straggler (``rank`` as fast as its peers), balance (all stages do equal work), link (one
    ``process_group`` or all ``factor`` times as fast), overlap (transfers cost nothing), compute (one ``rank``, ``stage`` or all
    ``factor`` times as fast), schedule (other ``micro_batches`` and/or ``schedule`` of a pipeline).
    """

    kind: Literal["straggler", "balance", "link", "overlap", "compute", "schedule"]
    rank: int | None = None
    stage: int | None = None
    factor: float = 2.0
    process_group: str | None = None
    micro_batches: int | None = None
    schedule: Schedule | None = None


@dataclass(frozen=True, slots=True)
class ChangeAnswer:
    """Mean seconds of a step before (``now_s``) and after the change (``then_s``). ``error_s``: difference between the simulated
    and the measured unchanged step; ``low``/``high``: 95 % interval of the speed-up over steps, None with too few steps.
    """

    kind: str
    question: str
    now_s: float
    then_s: float
    error_s: float
    low: float | None
    high: float | None

    @property
    def speed_up(self) -> float | None:
        """``now_s`` / ``then_s``; None if ``then_s`` is 0."""
        return self.now_s / self.then_s if self.then_s > 0 else None


class ChangedRun:
    """Answers what-if questions about a trace. ``spans`` as ``match.py`` needs them; ``steps``: rank, step, start_ns, end_ns."""

    def __init__(self, spans: pl.DataFrame, steps: pl.DataFrame, generator: np.random.Generator) -> None:
        self._passes = find_passes(spans)
        self._graphs = build_step_graphs(spans, steps, self._passes)
        self._generator = generator
        self._stages = dict(
            spans.select("rank", "stage").unique().filter(pl.col("stage").is_not_null()).sort("rank").iter_rows()
        )

    def ask(self, change: Change) -> ChangeAnswer:
        """The answer to one question. Raises ``ChangeError``."""
        if not self._graphs:
            raise ChangeError("the trace has no steps")
        if change.kind == "schedule":
            return self._ask_schedule(change)
        question, adjust = self._parse(change)
        both = np.array([_run_both(graph, *adjust(graph)) for graph in self._graphs]) / 1e9
        now, then = both[:, 0], both[:, 1]
        measured = np.array([graph.measured_ns for graph in self._graphs]) / 1e9
        low, high = self._interval(now, then)
        error_s = float(np.abs(now - measured).mean())
        return ChangeAnswer(change.kind, question, float(now.mean()), float(then.mean()), error_s, low, high)

    def _parse(self, change: Change) -> tuple[str, Callable[[StepGraph], tuple[Float64s, Float64s]]]:
        """The question in words, and the function that changes lags and transfers accordingly."""
        if change.kind == "straggler":
            rank = change.rank
            if rank is None or rank not in {event.rank for graph in self._graphs for event in graph.events}:
                raise ChangeError(f"the trace has no rank {rank}")
            if not any(event.is_collective and event.rank == rank for graph in self._graphs for event in graph.events):
                raise ChangeError(f"rank {rank} shares no collective with other ranks, so it has no peers")
            return f"rank {rank} as fast as its peers", lambda graph: (_match_peers(graph, rank), graph.transfers)
        if change.kind == "balance":
            ratio = self._compute_balance()
            return "stages balanced", lambda graph: (_scale_work(graph, ratio), graph.transfers)
        if change.kind == "compute":
            chosen = self._select_ranks(change)
            scale = dict.fromkeys(chosen, 1 / change.factor)
            target = _describe_target(change)
            return (
                f"compute{target} {change.factor:g}× as fast",
                lambda graph: (_scale_work(graph, scale), graph.transfers),
            )
        factor = np.inf if change.kind == "overlap" else change.factor
        group = change.process_group if change.kind == "link" else None
        words = "transfers cost nothing (perfect overlap)"
        if change.kind == "link":
            words = f"links{f' of process group {group}' if group else ''} {change.factor:g}× as fast"
        return words, lambda graph: (graph.lags, _scale_transfers(graph, factor, group))

    def _select_ranks(self, change: Change) -> list[int]:
        ranks = sorted({event.rank for graph in self._graphs for event in graph.events})
        if change.rank is not None:
            ranks = [rank for rank in ranks if rank == change.rank]
        if change.stage is not None:
            ranks = [rank for rank in ranks if self._stages.get(rank) == change.stage]
        if not ranks:
            raise ChangeError(f"the trace has no such rank or stage{_describe_target(change)}")
        return ranks

    def _compute_balance(self) -> dict[int, float]:
        """Factor by rank: multiplied with it, all stages do the mean work of all stages."""
        if len(set(self._stages.values())) < 2:
            raise ChangeError("the trace has no pipeline stages to balance")
        work_by_stage: dict[int, list[float]] = {}
        for graph in self._graphs:
            per_rank: dict[int, float] = {}
            for event in graph.events:
                per_rank[event.rank] = per_rank.get(event.rank, 0.0) + event.work_ns
            for rank, total in per_rank.items():
                work_by_stage.setdefault(self._stages[rank], []).append(total)
        means = {stage: float(np.mean(totals)) for stage, totals in work_by_stage.items()}
        target = float(np.mean(list(means.values())))
        return {rank: target / means[stage] if means[stage] else 1.0 for rank, stage in self._stages.items()}

    def _ask_schedule(self, change: Change) -> ChangeAnswer:
        simulated = simulate_schedule(self._passes, change.micro_batches, change.schedule)
        if simulated is None:
            raise ChangeError("the trace has no pipeline with known micro-batch passes")
        words = [f"with {change.micro_batches} micro-batches" if change.micro_batches else "", _ORDERS[change.schedule]]
        question = " ".join(["the pipeline's passes", *(word for word in words if word)])
        return ChangeAnswer(change.kind, question, simulated.now_s, simulated.then_s, simulated.error_s, None, None)

    @property
    def graphs(self) -> Sequence[StepGraph]:
        """The re-simulated steps."""
        return self._graphs

    @property
    def schedule(self) -> Schedule:
        """The order in which the pipeline ran its passes."""
        return name_schedule(self._passes)

    def _interval(self, now: Float64s, then: Float64s) -> tuple[float | None, float | None]:
        if now.size < MIN_STEPS or not (then > 0).all():
            return None, None
        draws = self._generator.integers(0, now.size, (BOOTSTRAP_DRAWS, now.size))
        low, high = np.quantile(now[draws].mean(axis=1) / then[draws].mean(axis=1), (0.025, 0.975))
        return float(low), float(high)


def answer_standard_questions(run: ChangedRun, ranks: Sequence[int]) -> list[ChangeAnswer]:
    """Answers to the standard questions of a report, without those that the trace cannot answer; ``ranks``: ranks that others
    wait for.
    """
    questions = [Change("straggler", rank=rank) for rank in ranks]
    questions += [Change("balance"), Change("link", factor=2.0), Change("overlap")]
    questions += [Change("schedule", schedule="1f1b" if run.schedule == "gpipe" else "gpipe")]
    answers = []
    for change in questions:
        try:
            answers.append(run.ask(change))
        except ChangeError:
            continue
    return answers


def _run_both(graph: StepGraph, lag_ns: Float64s, transfer_ns: Float64s) -> Float64s:
    """The step as measured, and with other lags and transfers."""
    return graph.run(np.stack([graph.lags, lag_ns], axis=1), np.stack([graph.transfers, transfer_ns], axis=1))


def _describe_target(change: Change) -> str:
    if change.rank is not None:
        return f" of rank {change.rank}"
    return f" of stage {change.stage}" if change.stage is not None else ""


def _match_peers(graph: StepGraph, rank: int) -> Float64s:
    """Lags in which ``rank`` lags at most as much as the median of the other members of its collectives; the same at the step's
    end.
    """
    lags = graph.lags
    groups: dict[object, list[int]] = {}
    for at, event in enumerate(graph.events):
        key = "end" if event.kind == "end" else event.group
        if event.kind == "end" or event.is_collective:
            groups.setdefault(key, []).append(at)
    for members in groups.values():
        mine = [at for at in members if graph.events[at].rank == rank]
        others = [lags[at] for at in members if graph.events[at].rank != rank]
        if mine and others:
            lags[mine] = np.minimum(lags[mine], np.median(others))
    return lags


def _scale_work(graph: StepGraph, ratio: dict[int, float]) -> Float64s:
    work = np.array([event.work_ns * (1 - ratio.get(event.rank, 1.0)) for event in graph.events])
    scaled: Float64s = graph.lags - work
    return scaled


def _scale_transfers(graph: StepGraph, factor: float, group: str | None) -> Float64s:
    chosen = np.array([group is None or event.process_group == group for event in graph.events])
    return np.where(chosen, graph.transfers / factor, graph.transfers)
