"""Moves samples from one metric store to another, a slice of a day at a time, and reads every slice again at its new place.

Nothing is doubled: a slice is compared with what is at the target, and only the rest is sent.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import polars as pl

from clusterscape.errors import StoreError
from clusterscape.model import UnixMs
from clusterscape.store.metrics.contract import DayContents, ListedMetricStore
from clusterscape.store.metrics.frames import batch_of
from clusterscape.store.metrics.victoria import VictoriaMetricStore
from clusterscape.store.migration.journal import Journal

DAY_MS = 86_400_000
SAMPLES_PER_SLICE = 4_000_000
"""What is held in memory at once: some 300 MB."""
PATIENCE_S = 90.0
"""How long a server may take to show what it has taken."""
LOOK_EVERY_S = 2.0
VISIBLE_AFTER_S = 20.0
"""How long a server may take to show what it took from a move that was killed; what it does not show is sent again."""
TOLERANCE = 1e-9
"""Of the largest value of a series: VictoriaMetrics keeps some twelve decimal digits, all of a series with one exponent."""
KEYS = ["metric", "unit", "time_ms"]

Tell = Callable[[int, int, str], None]
"""Samples done, samples in all, what is being done."""


@dataclass(frozen=True, slots=True)
class MovedSamples:
    """The samples of one metric on one day. ``checksum`` is of (unit, time) in any order; values were compared one by one."""

    day: str
    metric: str
    samples: int
    checksum: str


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a day that is moved in one go."""

    start_ms: int
    end_ms: int
    metrics: tuple[str, ...]
    samples: int

    @property
    def name(self) -> str:
        """In the journal."""
        return f"samples {self.start_ms} {self.end_ms}"


def plan_slices(days: list[DayContents]) -> list[Slice]:
    """The days, large ones cut into equal parts."""
    slices = []
    for each in days:
        parts = -(-max(1, each.samples) // SAMPLES_PER_SLICE)
        length_ms = -(-DAY_MS // parts)
        first_ms = each.day * DAY_MS
        for start_ms in range(first_ms, first_ms + DAY_MS, length_ms):
            end_ms = min(start_ms + length_ms, first_ms + DAY_MS)
            slices.append(Slice(start_ms, end_ms, each.metrics, each.samples // parts))
    return slices


def move_samples(
    source: ListedMetricStore, target: ListedMetricStore, slices: list[Slice], journal: Journal, tell: Tell
) -> list[MovedSamples]:
    """Write all slices, then find each of them at the target. Raises StoreError where one is not there as it was."""
    total = sum(each.samples for each in slices) * 2
    done = 0
    if any(journal.was_begun(each.name) and journal.find(each.name) is None for each in slices):
        tell(0, total, "waiting until the server shows what it took before")
        _settle(target, wait_s=VISIBLE_AFTER_S)
    for each in slices:
        if journal.find(each.name) is None:
            _write(source, target, each, journal)
        done += each.samples
        tell(done, total, f"samples of {_date(each.start_ms)}")
    _settle(target)
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for each in slices:
        for metric, (count, checksum) in _check(source, target, each, journal).items():
            key = (_date(each.start_ms), metric)
            before = found.get(key, (0, 0))
            found[key] = (before[0] + count, (before[1] + checksum) % 2**64)
        done += each.samples
        tell(done, total, f"checking samples of {_date(each.start_ms)}")
    return [MovedSamples(day, metric, n, f"{checksum:016x}") for (day, metric), (n, checksum) in sorted(found.items())]


def _write(source: ListedMetricStore, target: ListedMetricStore, each: Slice, journal: Journal) -> None:
    rows = _read(source, each).join(_read(target, each).select(KEYS), on=KEYS, how="anti")
    journal.begin(each.name)
    if rows.height:
        target.append_history([batch_of(rows)])
    journal.finish(each.name, {"samples": rows.height})


def _check(
    source: ListedMetricStore, target: ListedMetricStore, each: Slice, journal: Journal
) -> dict[str, tuple[int, int]]:
    step = f"checked {each.name}"
    known = journal.find(step)
    if known is None:
        rows = _read(source, each)
        _compare(rows, target, each)
        known = {str(metric): [count, f"{checksum:016x}"] for metric, count, checksum in summarize(rows)}
        journal.finish(step, known)
    return {metric: (int(pair[0]), int(str(pair[1]), 16)) for metric, pair in known.items() if isinstance(pair, list)}


def summarize(rows: pl.DataFrame) -> Iterator[tuple[str, int, int]]:
    """(metric, samples, checksum of their keys): the sum of a hash of each, so that the order does not matter."""
    if not rows.height:
        return
    hashed = rows.select("metric", pl.struct("unit", "time_ms").hash(seed=7).alias("hash"))
    sums = hashed.group_by("metric").agg(pl.len(), pl.col("hash").cast(pl.Int128).sum()).sort("metric")
    for metric, count, checksum in sums.iter_rows():
        yield metric, count, int(checksum) % 2**64


def _compare(rows: pl.DataFrame, target: ListedMetricStore, each: Slice) -> None:
    """Raise StoreError unless every row is at the target; a server is given time to show it."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        wrong = find_difference(rows, _read(target, each))
        if wrong is None:
            return
        if time.monotonic() > deadline:
            raise StoreError(
                f"samples of {_date(each.start_ms)} are not at their new place as they were: {wrong}",
                hint="See the log and the retention of the server; then move again: it goes on from there.",
            )
        time.sleep(LOOK_EVERY_S)


def find_difference(rows: pl.DataFrame, arrived: pl.DataFrame) -> str | None:
    """What of ``rows`` is missing or another in ``arrived``, in words; None: nothing."""
    joined = rows.join(arrived.unique(KEYS, keep="last"), on=KEYS, how="left", suffix="_there")
    missing = joined["value_there"].null_count()
    if missing:
        return f"{missing:,} of {rows.height:,} are missing"
    largest = pl.col("value").abs().max().over("metric", "unit")
    is_off = (pl.col("value") - pl.col("value_there")).abs() > TOLERANCE * largest
    off = joined.filter(is_off)
    if off.height:
        first = off.row(0, named=True)
        return f"{off.height:,} have another value, the first {first['value']!r} and {first['value_there']!r} there"
    return None


def _read(store: ListedMetricStore, each: Slice) -> pl.DataFrame:
    rows = store.read_all(each.metrics, start_ms=UnixMs(each.start_ms), end_ms=UnixMs(each.end_ms))
    return rows.filter(pl.col("value").is_finite())


def _settle(target: ListedMetricStore, *, wait_s: float = 0.0) -> None:
    """Have a server show what it took, or give it the time to do so by itself."""
    if isinstance(target, VictoriaMetricStore) and not target.flush():
        time.sleep(wait_s)


def _date(time_ms: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(time_ms // 1000))
