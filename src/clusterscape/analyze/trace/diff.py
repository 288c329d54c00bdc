"""Two runs of the same model compared: what takes longer or shorter per step, beyond chance, and in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.trace.collectives import BOOTSTRAP_DRAWS, MIN_STEPS
from clusterscape.model.spans import SpanClass

DiffKind = Literal["step", "breakdown", "phase", "operator", "rank"]
MIN_SHARE = 0.01
"""Of the step before: smaller differences are not worth a word."""
MAX_CHANGES = 200
PARTS = {
    "compute_ns": "compute",
    "waiting_ns": "waiting for others",
    "transferring_ns": "transfers that nothing hides",
    "idle_ns": "idle",
}
WORK = (SpanClass.COMPUTE.value, SpanClass.MEMORY.value, SpanClass.COMMUNICATION.value)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RunTables:
    """One run: spans with the columns of ``relations.py``; ``steps`` of every rank with their parts, as ``packing.py`` gives."""

    spans: pl.DataFrame
    steps: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Changed:
    """Mean seconds of a step (of a rank's step, but for ``rank``) before and after; None where one run has it not.

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
        what = {"step": "A step", "rank": f"Rank {self.rank} in “{self.name}”", "operator": f"“{self.name}”"}.get(
            self.kind, self.name[:1].upper() + self.name[1:]
        )
        if self.before_s is None or self.after_s is None:
            word, length_s = ("new", self.after_s or 0.0) if self.before_s is None else ("gone", self.before_s)
            return f"{what} is {word}: {length_s * 1e3:,.1f} ms per step."
        if not self.is_significant and abs(self.difference_s) < MIN_SHARE * self.before_s:
            return f"{what} takes as long as before: {self.after_s * 1e3:,.1f} ms per step."
        chance = ""
        if not self.is_significant:
            chance = " (too few steps to tell it from chance)" if self.low_s is None else " (within what steps vary)"
        word = "longer" if self.difference_s > 0 else "shorter"
        return (
            f"{what} takes {abs(self.difference_s) * 1e3:,.1f} ms, {abs(self.difference_s) / self.before_s:.0%} {word} per step: "
            f"{self.before_s * 1e3:,.1f} → {self.after_s * 1e3:,.1f} ms{chance}."
        )


@dataclass(frozen=True, slots=True)
class TraceDiff:
    """Changes, the step first, then largest first; what cannot be compared is said."""

    changes: tuple[Changed, ...]
    sentences: tuple[str, ...]
    notes: tuple[str, ...]


def compare_runs(before: RunTables, after: RunTables, generator: np.random.Generator) -> TraceDiff:
    """What changed from one run to the other."""
    least_s = MIN_SHARE * float(_lengths(before)["step"].mean()) if before.steps.height else 0.0
    judge = _Judge(generator, least_s)
    step = judge.compare("step", "a step", None, _lengths(before)["step"], _lengths(after)["step"])
    found = []
    for column, name in PARTS.items():
        found.append(judge.compare("breakdown", name, None, _lengths(before)[column], _lengths(after)[column]))
    for kind, keys in (("phase", ("phase",)), ("operator", ("name",)), ("rank", ("phase", "rank"))):
        found += _compare_tables(judge, kind, _per_step(before, keys), _per_step(after, keys))
    found = [each for each in found if each.difference_s]
    found.sort(key=lambda each: (not each.is_significant, -abs(each.difference_s)))
    changes = (step, *found[:MAX_CHANGES])
    told = [each for each in found if each.is_significant]
    sentences = [step.sentence, *_tell(told)] if told or step.is_significant else [step.sentence, _NOTHING]
    return TraceDiff(changes, tuple(sentences), tuple(_notes(before, after)))


_NOTHING = "Nothing else differs beyond chance and a hundredth of the step."
_MOST_WORDS = {"breakdown": 2, "phase": 2, "operator": 3, "rank": 2}


def _tell(changes: Sequence[Changed]) -> list[str]:
    """The largest of each kind; a cause need not be told in all its forms."""
    counts = dict.fromkeys(_MOST_WORDS, 0)
    told = []
    for each in changes:
        if counts[each.kind] < _MOST_WORDS[each.kind]:
            counts[each.kind] += 1
            told.append(each.sentence)
    return told


@dataclass(frozen=True, slots=True)
class _Judge:
    generator: np.random.Generator
    least_s: float

    def compare(self, kind: DiffKind, name: str, rank: int | None, before: Floats, after: Floats) -> Changed:
        """Seconds of every step of both runs."""
        low, high = self._interval(before, after)
        difference = (float(after.mean()) if after.size else 0.0) - (float(before.mean()) if before.size else 0.0)
        beyond_chance = low is not None and high is not None and (low > 0 or high < 0)
        return Changed(
            kind,
            name,
            rank,
            float(before.mean()) if before.any() else None,
            float(after.mean()) if after.any() else None,
            difference,
            low,
            high,
            beyond_chance and abs(difference) >= self.least_s,
        )

    def _interval(self, before: Floats, after: Floats) -> tuple[float | None, float | None]:
        if before.size < MIN_STEPS or after.size < MIN_STEPS:
            return None, None
        draws = [
            self.generator.choice(values, (BOOTSTRAP_DRAWS, values.size)).mean(axis=1) for values in (before, after)
        ]
        low, high = np.quantile(draws[1] - draws[0], (0.025, 0.975))
        return float(low), float(high)


def _lengths(run: RunTables) -> dict[str, Floats]:
    """Seconds of every step: its length, and its parts as means over ranks."""
    table = run.steps.group_by("step").agg(pl.col("step_ns", *PARTS).mean() / 1e9).sort("step")
    return {"step" if name == "step_ns" else name: table[name].to_numpy() for name in ("step_ns", *PARTS)}


def _per_step(run: RunTables, keys: Sequence[str]) -> pl.DataFrame:
    """``keys``, step, seconds: device time and communication of each, the mean over the ranks of the run (but for ranks)."""
    ranks = 1 if "rank" in keys else max(1, run.steps["rank"].n_unique())
    chosen = run.spans.filter(
        pl.col("span_class").cast(pl.String).is_in(WORK) & pl.col("step").is_not_null() & pl.col("is_outer")
    )
    length = (pl.col("end_ns") - pl.col("drawn_ns") - pl.col("wait_ns").fill_null(0)).clip(lower_bound=0)
    named = chosen.select("step", "rank", pl.col("name", "phase").cast(pl.String), length.alias("length"))
    return named.drop_nulls(list(keys)).group_by(*keys, "step").agg((pl.col("length").sum() / 1e9 / ranks).alias("s"))


def _compare_tables(judge: _Judge, kind: str, before: pl.DataFrame, after: pl.DataFrame) -> list[Changed]:
    keys = [name for name in before.columns if name not in ("step", "s")]
    sides = [_rows(table, keys) for table in (before, after)]
    steps = [table["step"].n_unique() for table in (before, after)]
    found = []
    for key in sorted(set(sides[0]) | set(sides[1]), key=str):
        values = [_padded(side.get(key, []), count) for side, count in zip(sides, steps, strict=True)]
        if abs(values[1].mean() - values[0].mean()) < judge.least_s / 10:
            continue  # too small ever to be told; most operators are
        rank = int(str(key[keys.index("rank")])) if "rank" in keys else None
        name = str(key[0])
        typed: DiffKind = "phase" if kind == "phase" else "operator" if kind == "operator" else "rank"
        found.append(judge.compare(typed, name, rank, *values))
    return found


def _rows(table: pl.DataFrame, keys: Sequence[str]) -> dict[tuple[object, ...], list[float]]:
    grouped = table.group_by(*keys).agg(pl.col("s"))
    return {tuple(row[:-1]): row[-1] for row in grouped.iter_rows()}


def _padded(values: Sequence[float], count: int) -> Floats:
    """A step in which it did not occur took 0."""
    return np.array([*values, *[0.0] * (count - len(values))])


def _notes(before: RunTables, after: RunTables) -> list[str]:
    notes = []
    ranks = [run.steps["rank"].n_unique() for run in (before, after)]
    if ranks[0] != ranks[1]:
        notes.append(
            f"The runs have different numbers of ranks, {ranks[0]} and {ranks[1]}: means of a rank are compared."
        )
    for run, word in ((before, "first"), (after, "second")):
        if run.steps["step"].n_unique() < MIN_STEPS:
            notes.append(f"The {word} run has fewer than {MIN_STEPS} steps: chance cannot be told from change.")
    names = [
        set(run.spans.filter(pl.col("span_class") == "compute")["name"].cast(pl.String)) for run in (before, after)
    ]
    both = len(names[0] & names[1]) / max(1, len(names[0] | names[1]))
    if both < 0.5:
        notes.append(f"Only {both:.0%} of the operators are in both runs: are they of the same model and machine?")
    return notes
