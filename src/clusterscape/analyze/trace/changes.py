"""What-if questions on re-simulated steps: a rank as fast as its peers, stages alike, another link, perfect overlap, another
number of micro-batches or schedule. Each gives the step it would lead to, with its interval over steps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.trace.collectives import BOOTSTRAP_DRAWS, MIN_STEPS
from clusterscape.analyze.trace.pipeline import find_passes, name_schedule, simulate_schedule
from clusterscape.analyze.trace.resimulate import StepGraph, build_step_graphs

Floats = NDArray[np.float64]
Schedule = Literal["gpipe", "1f1b"]


_ORDERS: dict[Schedule | None, str] = {
    None: "",
    "gpipe": "in GPipe's order (all forwards, then all backwards)",
    "1f1b": "in 1F1B order (one forward, one backward)",
}


class ChangeError(ValueError):
    """The trace does not hold what the question is about; says so in words."""


@dataclass(frozen=True, slots=True)
class Change:
    """One question. ``kind``: straggler (``rank`` as its peers), balance (stages alike), link (``factor`` times as fast, of one
    ``process_group`` or all), overlap (transfers cost nothing), compute (``factor`` times as fast, of one ``rank``, ``stage`` or
    all), schedule (``micro_batches`` and/or ``schedule`` of a pipeline).
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
    """Mean seconds of a step now and then. ``error_s``: how far the simulation of the unchanged step is from the measured one;
    ``low``/``high``: 95 % interval of the speed-up over steps, None with too few.
    """

    question: str
    now_s: float
    then_s: float
    error_s: float
    low: float | None
    high: float | None

    @property
    def speed_up(self) -> float | None:
        """Now over then."""
        return self.now_s / self.then_s if self.then_s > 0 else None


class ChangedRun:
    """A trace to ask about. ``spans`` with the columns of ``counterparts.py``; ``steps``: rank, step, start_ns, end_ns."""

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
        question, adjust = self._read(change)
        now = np.array([graph.run(graph.lags, graph.transfers) for graph in self._graphs]) / 1e9
        then = np.array([graph.run(*adjust(graph)) for graph in self._graphs]) / 1e9
        measured = np.array([graph.measured_ns for graph in self._graphs]) / 1e9
        low, high = self._interval(now, then)
        error_s = float(np.abs(now - measured).mean())
        return ChangeAnswer(question, float(now.mean()), float(then.mean()), error_s, low, high)

    def _read(self, change: Change) -> tuple[str, Callable[[StepGraph], tuple[Floats, Floats]]]:
        """The question in words, and what it does to lags and transfers."""
        if change.kind == "straggler":
            rank = change.rank
            if rank is None or rank not in {event.rank for graph in self._graphs for event in graph.events}:
                raise ChangeError(f"there is no rank {rank} in the trace")
            if not any(event.is_collective and event.rank == rank for graph in self._graphs for event in graph.events):
                raise ChangeError(f"rank {rank} shares no collective with others: it has no peers to be as fast as")
            return f"rank {rank} as fast as its peers", lambda graph: (_as_peers(graph, rank), graph.transfers)
        if change.kind == "balance":
            ratio = self._balance()
            return "stages balanced", lambda graph: (_scale_work(graph, ratio), graph.transfers)
        if change.kind == "compute":
            chosen = self._chosen(change)
            slower = dict.fromkeys(chosen, 1 / change.factor)
            where = _where(change)
            return (
                f"compute{where} {change.factor:g}× as fast",
                lambda graph: (_scale_work(graph, slower), graph.transfers),
            )
        factor = np.inf if change.kind == "overlap" else change.factor
        group = change.process_group if change.kind == "link" else None
        words = "transfers cost nothing (perfect overlap)"
        if change.kind == "link":
            words = f"links{f' of process group {group}' if group else ''} {change.factor:g}× as fast"
        return words, lambda graph: (graph.lags, _scale_transfers(graph, factor, group))

    def _chosen(self, change: Change) -> list[int]:
        ranks = sorted({event.rank for graph in self._graphs for event in graph.events})
        if change.rank is not None:
            ranks = [rank for rank in ranks if rank == change.rank]
        if change.stage is not None:
            ranks = [rank for rank in ranks if self._stages.get(rank) == change.stage]
        if not ranks:
            raise ChangeError(f"there is no such rank or stage{_where(change)} in the trace")
        return ranks

    def _balance(self) -> dict[int, float]:
        """By what each rank's work is to be multiplied so that all stages work as long as their mean."""
        if len(set(self._stages.values())) < 2:
            raise ChangeError("the trace has no pipeline stages to balance")
        work: dict[int, list[float]] = {}
        for graph in self._graphs:
            per_rank: dict[int, float] = {}
            for event in graph.events:
                per_rank[event.rank] = per_rank.get(event.rank, 0.0) + event.work_ns
            for rank, total in per_rank.items():
                work.setdefault(self._stages[rank], []).append(total)
        means = {stage: float(np.mean(found)) for stage, found in work.items()}
        target = float(np.mean(list(means.values())))
        return {rank: target / means[stage] if means[stage] else 1.0 for rank, stage in self._stages.items()}

    def _ask_schedule(self, change: Change) -> ChangeAnswer:
        found = simulate_schedule(self._passes, change.micro_batches, change.schedule)
        if found is None:
            raise ChangeError("the trace has no pipeline whose passes of micro-batches are known")
        words = [f"with {change.micro_batches} micro-batches" if change.micro_batches else "", _ORDERS[change.schedule]]
        question = " ".join(["the pipeline's passes", *(word for word in words if word)])
        return ChangeAnswer(question, found.now_s, found.then_s, found.error_s, None, None)

    @property
    def schedule(self) -> Schedule:
        """In what order the pipeline ran its passes."""
        return name_schedule(self._passes)

    def _interval(self, now: Floats, then: Floats) -> tuple[float | None, float | None]:
        if now.size < MIN_STEPS or not (then > 0).all():
            return None, None
        draws = self._generator.integers(0, now.size, (BOOTSTRAP_DRAWS, now.size))
        low, high = np.quantile(now[draws].mean(axis=1) / then[draws].mean(axis=1), (0.025, 0.975))
        return float(low), float(high)


def ask_usual(run: ChangedRun, ranks: Sequence[int]) -> list[ChangeAnswer]:
    """The questions every report answers, where the trace allows them; ``ranks`` are those that others wait for."""
    usual = [Change("straggler", rank=rank) for rank in ranks]
    usual += [Change("balance"), Change("link", factor=2.0), Change("overlap")]
    usual += [Change("schedule", schedule="1f1b" if run.schedule == "gpipe" else "gpipe")]
    found = []
    for change in usual:
        try:
            found.append(run.ask(change))
        except ChangeError:
            continue
    return found


def _where(change: Change) -> str:
    if change.rank is not None:
        return f" of rank {change.rank}"
    return f" of stage {change.stage}" if change.stage is not None else ""


def _as_peers(graph: StepGraph, rank: int) -> Floats:
    """Lags where those of ``rank`` are at most the median of its collectives' other members; the step's end likewise."""
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


def _scale_work(graph: StepGraph, ratio: dict[int, float]) -> Floats:
    work = np.array([event.work_ns * (1 - ratio.get(event.rank, 1.0)) for event in graph.events])
    scaled: Floats = graph.lags - work
    return scaled


def _scale_transfers(graph: StepGraph, factor: float, group: str | None) -> Floats:
    chosen = np.array([group is None or event.process_group == group for event in graph.events])
    return np.where(chosen, graph.transfers / factor, graph.transfers)
