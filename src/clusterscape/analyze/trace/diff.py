"""Compares two runs of the same model: what takes significantly longer or shorter per step, in numbers and sentences, and why.

Both runs are divided into the same causes (``attribution.py``). Compared are only ranks that both recorded, without the warm-up.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from clusterscape.analyze.trace.match import BOOTSTRAP_DRAWS, MIN_STEPS
from clusterscape.model.arrays import Float64s
from clusterscape.model.spans import SpanClass
from clusterscape.model.trace_report import TimeKind, TraceReportDocument

DiffKind = Literal["step", "cause", "breakdown", "phase", "operator", "rank"]
MIN_SHARE = 0.01
"""Share of the first run's step; smaller differences are not reported."""
MAX_CHANGES = 200
PARTS = {
    "compute_ns": "compute",
    "waiting_ns": "waiting for others",
    "transferring_ns": "transfers that nothing hides",
    "idle_ns": "idle",
}
CAUSES = {
    TimeKind.SLOWER_COMPUTE: "slower compute",
    TimeKind.DATA_LOADING: "data loading",
    TimeKind.GARBAGE_COLLECTION: "Python's garbage collection",
    TimeKind.CHECKPOINT: "saving a checkpoint",
    TimeKind.ALLOCATION: "allocating device memory",
    TimeKind.START_UP: "starting the device",
    TimeKind.SCALAR_READ: "reading scalars (aten::item)",
    TimeKind.COPY_TO_HOST: "copying to the host",
    TimeKind.SYNCHRONIZATION: "waiting for the device",
    TimeKind.RUNTIME_CALL: "long calls of the device's runtime",
    TimeKind.LAUNCHING: "preparing launches",
    TimeKind.HOST_CODE: "Python code",
    TimeKind.CORE_WAIT: "waiting for a core",
    TimeKind.PAUSE: "pauses of the host",
    TimeKind.IDLE: "idle devices, host not recorded",
}
"""Kinds of time that are causes, as they are named; work, transfers and waits are in ``PARTS``."""
OWN_SHARE = 0.5
"""A change of a cause belongs to one rank if its peers changed less than this share of it."""
WORK = (SpanClass.COMPUTE.value, SpanClass.MEMORY.value, SpanClass.COMMUNICATION.value)


@dataclass(frozen=True, slots=True)
class RunTables:
    """One run: ``spans`` with the columns of ``relations.py``; ``steps`` of every rank with their parts, as ``pack_trace``
    returns; ``report``: its report, which has the causes. Reports of older versions lack them.
    """

    spans: pl.DataFrame
    steps: pl.DataFrame
    report: TraceReportDocument | None = None

    @property
    def world_size(self) -> int | None:
        """The number of ranks of the run, also of those that were not recorded; None if unknown."""
        sizes = {rank.world_size for rank in self.report.ranks} if self.report is not None else set()
        return sizes.pop() if len(sizes) == 1 else None

    def select(self, ranks: Collection[int]) -> "RunTables":
        """Only these ranks, without the warm-up."""
        warm_up = self.report.warm_up_steps if self.report is not None else []
        chosen = pl.col("rank").is_in(list(ranks)) & ~pl.col("step").is_in(warm_up).fill_null(False)
        return RunTables(self.spans.filter(chosen), self.steps.filter(chosen), self.report)


@dataclass(frozen=True, slots=True)
class TraceDifference:
    """Mean seconds per step in the first and the second run, averaged over ranks unless ``kind`` is ``rank``; None if a run lacks
    it.

    ``low_s``/``high_s``: 95 % interval of the difference, None with too few steps.
    """

    kind: DiffKind
    name: str
    rank: int | None
    before_s: float | None
    after_s: float | None
    difference_s: float
    low_s: float | None
    high_s: float | None
    is_significant: bool

    @property
    def sentence(self) -> str:
        """The change in words."""
        subject = {"step": "A step", "rank": f"Rank {self.rank} in “{self.name}”", "operator": f"“{self.name}”"}.get(
            self.kind, self.name[:1].upper() + self.name[1:]
        )
        if self.kind == "cause" and self.rank is not None:
            subject = f"{subject} of rank {self.rank}"
        if self.before_s is None or self.after_s is None:
            word, length_s = ("new", self.after_s or 0.0) if self.before_s is None else ("gone", self.before_s)
            return f"{subject} is {word}: {length_s * 1e3:,.1f} ms per step."
        if not self.is_significant and abs(self.difference_s) < MIN_SHARE * self.before_s:
            return f"{subject} takes as long as before: {self.after_s * 1e3:,.1f} ms per step."
        chance = ""
        if not self.is_significant:
            chance = (
                " (too few steps for a significance test)"
                if self.low_s is None
                else " (within the variation between steps)"
            )
        word = "longer" if self.difference_s > 0 else "shorter"
        return (
            f"{subject} takes {abs(self.difference_s) * 1e3:,.1f} ms, "
            f"{abs(self.difference_s) / self.before_s:.0%} {word} per step: "
            f"{self.before_s * 1e3:,.1f} → {self.after_s * 1e3:,.1f} ms{chance}."
        )


@dataclass(frozen=True, slots=True)
class TraceDiff:
    """Changes, the step first, then largest first; ``notes`` say what cannot be compared."""

    changes: tuple[TraceDifference, ...]
    sentences: tuple[str, ...]
    notes: tuple[str, ...]


def compare_runs(before: RunTables, after: RunTables, generator: np.random.Generator) -> TraceDiff:
    """What changed from one run to the other."""
    notes = _notes(before, after)
    ranks = [set(run.steps["rank"].unique()) for run in (before, after)]
    common = sorted(ranks[0] & ranks[1])
    before, after = (run.select(common or own) for run, own in zip((before, after), ranks, strict=True))
    threshold_s = MIN_SHARE * float(_step_seconds(before)["step"].mean()) if before.steps.height else 0.0
    comparison = _Comparison(generator, threshold_s)
    step = comparison.compare("step", "a step", None, _step_seconds(before)["step"], _step_seconds(after)["step"])
    others = _compare_causes(comparison, before, after, common) if common else []
    for column, name in PARTS.items():
        others.append(
            comparison.compare("breakdown", name, None, _step_seconds(before)[column], _step_seconds(after)[column])
        )
    tables = (("phase", ("phase",)), ("operator", ("name",)), *([("rank", ("phase", "rank"))] if common else []))
    for kind, keys in tables:
        others += _compare_tables(comparison, kind, _operator_seconds(before, keys), _operator_seconds(after, keys))
    others = [change for change in others if change.difference_s]
    others.sort(key=lambda change: (not change.is_significant, -abs(change.difference_s)))
    changes = (step, *others[:MAX_CHANGES])
    significant = [change for change in others if change.is_significant]
    sentences = (
        [step.sentence, *_write_sentences(significant)]
        if significant or step.is_significant
        else [step.sentence, _NO_OTHER_CHANGES]
    )
    return TraceDiff(changes, tuple(sentences), tuple(notes))


_NO_OTHER_CHANGES = "Nothing else differs significantly by more than 1% of the step."
_MAX_SENTENCES = {"cause": 3, "breakdown": 2, "phase": 2, "operator": 3, "rank": 2}


def _write_sentences(changes: Sequence[TraceDifference]) -> list[str]:
    """Sentences about the largest changes of each kind, causes first: one cause often shows in several of them."""
    counts = dict.fromkeys(_MAX_SENTENCES, 0)
    sentences = []
    has_causes = any(change.kind == "cause" for change in changes)
    for change in sorted(changes, key=lambda change: change.kind != "cause"):
        if has_causes and change.name == PARTS["idle_ns"]:
            continue  # the causes say what it consists of
        if counts[change.kind] < _MAX_SENTENCES[change.kind]:
            counts[change.kind] += 1
            sentences.append(change.sentence)
    return sentences


@dataclass(frozen=True, slots=True)
class _Comparison:
    generator: np.random.Generator
    min_difference_s: float

    def compare(
        self, kind: DiffKind, name: str, rank: int | None, before: Float64s, after: Float64s
    ) -> TraceDifference:
        """Compare the seconds of every step of both runs."""
        low, high = self._interval(before, after)
        difference = (float(after.mean()) if after.size else 0.0) - (float(before.mean()) if before.size else 0.0)
        beyond_chance = low is not None and high is not None and (low > 0 or high < 0)
        return TraceDifference(
            kind,
            name,
            rank,
            float(before.mean()) if before.any() else None,
            float(after.mean()) if after.any() else None,
            difference,
            low,
            high,
            beyond_chance and abs(difference) >= self.min_difference_s,
        )

    def _interval(self, before: Float64s, after: Float64s) -> tuple[float | None, float | None]:
        if before.size < MIN_STEPS or after.size < MIN_STEPS:
            return None, None
        draws = [
            self.generator.choice(values, (BOOTSTRAP_DRAWS, values.size)).mean(axis=1) for values in (before, after)
        ]
        low, high = np.quantile(draws[1] - draws[0], (0.025, 0.975))
        return float(low), float(high)


def _step_seconds(run: RunTables) -> dict[str, Float64s]:
    """Seconds of every step: its length, and its parts as means over ranks."""
    table = run.steps.group_by("step").agg(pl.col("step_ns", *PARTS).mean() / 1e9).sort("step")
    return {"step" if name == "step_ns" else name: table[name].to_numpy() for name in ("step_ns", *PARTS)}


def _cause_seconds(run: RunTables, ranks: Sequence[int]) -> dict[TimeKind, Float64s] | None:
    """Seconds of each cause (rank, step) without the warm-up; None if the report does not have them, or not of all ranks."""
    if run.report is None or run.report.attribution is None:
        return None
    table = run.report.attribution
    if not set(ranks) <= set(table.ranks):
        return None
    rows = [table.ranks.index(rank) for rank in ranks]
    return {
        kind: np.nan_to_num(np.array(seconds, float)[rows])
        for kind, seconds in zip(table.kinds, table.seconds, strict=True)
        if kind in CAUSES
    }


def _compare_causes(
    comparison: "_Comparison", before: RunTables, after: RunTables, ranks: Sequence[int]
) -> list[TraceDifference]:
    """Each cause, of one rank if it changed on it alone, else as the mean over ranks."""
    seconds_before, seconds_after = (_cause_seconds(run, ranks) for run in (before, after))
    if seconds_before is None or seconds_after is None:
        return []
    sides = (seconds_before, seconds_after)
    changes = []
    for kind, name in CAUSES.items():
        first, second = (
            side.get(kind, np.zeros((len(ranks), max(1, run.steps["step"].n_unique()))))
            for side, run in zip(sides, (before, after), strict=True)
        )
        by_rank = second.mean(axis=1) - first.mean(axis=1)
        at = int(np.argmax(np.abs(by_rank)))
        peers = np.delete(by_rank, at)
        is_own = peers.size > 0 and abs(float(np.median(peers))) < OWN_SHARE * abs(by_rank[at])
        if is_own:
            changes.append(comparison.compare("cause", name, ranks[at], first[at], second[at]))
        else:
            changes.append(comparison.compare("cause", name, None, first.mean(axis=0), second.mean(axis=0)))
    return [change for change in changes if abs(change.difference_s) >= comparison.min_difference_s / 10]


def _operator_seconds(run: RunTables, keys: Sequence[str]) -> pl.DataFrame:
    """``keys``, step, s: seconds of device time and communication, averaged over ranks unless ``rank`` is a key."""
    ranks = 1 if "rank" in keys else max(1, run.steps["rank"].n_unique())
    chosen = run.spans.filter(
        pl.col("span_class").cast(pl.String).is_in(WORK) & pl.col("step").is_not_null() & pl.col("is_outer")
    )
    length = (pl.col("end_ns") - pl.col("drawn_ns") - pl.col("wait_ns").fill_null(0)).clip(lower_bound=0)
    named = chosen.select("step", "rank", pl.col("name", "phase").cast(pl.String), length.alias("length"))
    return named.drop_nulls(list(keys)).group_by(*keys, "step").agg((pl.col("length").sum() / 1e9 / ranks).alias("s"))


def _compare_tables(
    comparison: _Comparison, kind: str, before: pl.DataFrame, after: pl.DataFrame
) -> list[TraceDifference]:
    keys = [name for name in before.columns if name not in ("step", "s")]
    sides = [_group_seconds(table, keys) for table in (before, after)]
    steps = [table["step"].n_unique() for table in (before, after)]
    changes = []
    for key in sorted(set(sides[0]) | set(sides[1]), key=str):
        values = [_pad_steps(side.get(key, []), count) for side, count in zip(sides, steps, strict=True)]
        if abs(values[1].mean() - values[0].mean()) < comparison.min_difference_s / 10:
            continue  # far too small to be reported; most operators are
        rank = int(str(key[keys.index("rank")])) if "rank" in keys else None
        name = str(key[0])
        diff_kind: DiffKind = "phase" if kind == "phase" else "operator" if kind == "operator" else "rank"
        changes.append(comparison.compare(diff_kind, name, rank, *values))
    return changes


def _group_seconds(table: pl.DataFrame, keys: Sequence[str]) -> dict[tuple[object, ...], list[float]]:
    grouped = table.group_by(*keys).agg(pl.col("s"))
    return {tuple(row[:-1]): row[-1] for row in grouped.iter_rows()}


def _pad_steps(values: Sequence[float], count: int) -> Float64s:
    """The values with 0 for each step in which the operator did not run."""
    return np.array([*values, *[0.0] * (count - len(values))])


def _notes(before: RunTables, after: RunTables) -> list[str]:
    notes = []
    sizes = [run.world_size for run in (before, after)]
    if None not in sizes and sizes[0] != sizes[1]:
        notes.append(
            f"The runs have {sizes[0]} and {sizes[1]} ranks: the work of a rank and the length of transfers differ for that."
        )
    ranks = [set(run.steps["rank"].unique()) for run in (before, after)]
    common = ranks[0] & ranks[1]
    if ranks[0] != ranks[1] and common:
        notes.append(
            f"Compared are only the ranks that both runs recorded: {_list_ranks(common)} (the first recorded "
            f"{_list_ranks(ranks[0])}; the second {_list_ranks(ranks[1])})."
        )
    elif ranks[0] != ranks[1]:
        notes.append(
            "No rank was recorded in both runs: means over the ranks of each are compared, and no single rank."
        )
    for run, word in ((before, "first"), (after, "second")):
        if run.report is not None and run.report.warm_up_steps:
            notes.append(f"The {word} run's warm-up is left out: {len(run.report.warm_up_steps)} steps.")
        if run.report is None or run.report.attribution is None:
            notes.append(f"The {word} run's report has no causes: import it again to compare them.")
    for run, word in ((before, "first"), (after, "second")):
        if run.steps["step"].n_unique() < MIN_STEPS:
            notes.append(f"The {word} run has fewer than {MIN_STEPS} steps, too few for a significance test.")
    names = [
        set(run.spans.filter(pl.col("span_class") == "compute")["name"].cast(pl.String)) for run in (before, after)
    ]
    both = len(names[0] & names[1]) / max(1, len(names[0] | names[1]))
    if both < 0.5:
        notes.append(
            f"Only {both:.0%} of the operators are in both runs: are they runs of the same model on the same hardware?"
        )
    return notes


def _list_ranks(ranks: Collection[int]) -> str:
    shown = sorted(ranks)
    return ", ".join(map(str, shown[:8])) + (f" … ({len(shown):,} in all)" if len(shown) > 8 else "")
