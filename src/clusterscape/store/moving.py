"""Moves a site to other stores: samples in slices of a day, records in one transaction, artifacts file by file. Every part is
read back and verified. A journal records finished steps, so that an interrupted move continues.

Nothing is duplicated: a slice is compared with the target, and only missing samples are sent.
"""

import hashlib
import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import msgspec
import polars as pl
from sqlalchemy import Engine

from clusterscape.errors import NotFoundError, StoreError
from clusterscape.model import UnixMs
from clusterscape.model.durations import DAY_MS
from clusterscape.store.artifacts.contract import ArtifactInfo, ArtifactStore
from clusterscape.store.metrics.contract import DayContents, ListedMetricStore
from clusterscape.store.metrics.spool import batch_of
from clusterscape.store.metrics.victoria import VictoriaMetricStore
from clusterscape.store.records.dump import count_rows, dump_rows, load_rows
from clusterscape.store.records.engines import database_errors
from clusterscape.store.records.migrations import upgrade_schema


class MoveJournal:
    """Steps by name, each started, or finished with a result."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._steps: dict[str, Mapping[str, object] | None] = {}
        for line in path.read_bytes().splitlines() if path.exists() else ():
            try:
                step, result = msgspec.json.decode(line, type=tuple[str, dict[str, object] | None])
            except msgspec.DecodeError:
                continue  # truncated by a crash: the step was not recorded
            self._steps[step] = result

    def was_begun(self, step: str) -> bool:
        """Whether an earlier run started a step; it may be partly done."""
        return step in self._steps

    def find(self, step: str) -> Mapping[str, object] | None:
        """The result of a finished step; None if it is not finished."""
        return self._steps.get(step)

    def begin(self, step: str) -> None:
        """Record that a step has started."""
        if step not in self._steps:
            self._note(step, None)

    def finish(self, step: str, result: Mapping[str, object]) -> None:
        """Record the result of a finished step."""
        self._note(step, dict(result))

    def remove(self) -> None:
        """Remove the journal of a finished move."""
        self._path.unlink(missing_ok=True)

    def _note(self, step: str, result: dict[str, object] | None) -> None:
        self._steps[step] = result
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                # Starts on a new line, in case a crash truncated the previous one.
                file.write((b"\n" if file.tell() else b"") + msgspec.json.encode((step, result)))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(
                f"cannot write {self._path}: {error.strerror}", hint="Free space, then run the move again."
            ) from error


SAMPLES_PER_SLICE = 4_000_000
"""Samples in memory at a time: about 300 MB."""
VISIBLE_TIMEOUT_S = 90.0
"""How long a server may take until written samples are readable."""
CHECK_INTERVAL_S = 2.0
VISIBLE_AFTER_S = 20.0
"""How long to wait for samples of an interrupted move; those that are not readable then are sent again."""
TOLERANCE = 1e-9
"""Relative to the largest value of a series: VictoriaMetrics stores about twelve digits, with one exponent per series."""
KEYS = ["metric", "unit", "time_ms"]

Tell = Callable[[int, int, str], None]
"""Called with finished samples, total samples, and the current step."""


@dataclass(frozen=True, slots=True)
class MovedSamples:
    """The samples of one metric on one day. ``checksum``: order-independent, of (unit, time); values are compared, too."""

    day: str
    metric: str
    samples: int
    checksum: str


@dataclass(frozen=True, slots=True)
class SampleSlice:
    """A part of a day that is moved in one step."""

    start_ms: int
    end_ms: int
    metrics: tuple[str, ...]
    samples: int

    @property
    def name(self) -> str:
        """Name of the step in the journal."""
        return f"samples {self.start_ms} {self.end_ms}"


def plan_slices(days: list[DayContents]) -> list[SampleSlice]:
    """One slice per day; large days are split into equal parts."""
    slices = []
    for day in days:
        parts = -(-max(1, day.samples) // SAMPLES_PER_SLICE)
        length_ms = -(-DAY_MS // parts)
        first_ms = day.day * DAY_MS
        for start_ms in range(first_ms, first_ms + DAY_MS, length_ms):
            end_ms = min(start_ms + length_ms, first_ms + DAY_MS)
            slices.append(SampleSlice(start_ms, end_ms, day.metrics, day.samples // parts))
    return slices


def move_samples(
    source: ListedMetricStore, target: ListedMetricStore, slices: list[SampleSlice], journal: MoveJournal, tell: Tell
) -> list[MovedSamples]:
    """Write all slices, then verify part at the target. Raises StoreError if one differs."""
    total = sum(part.samples for part in slices) * 2
    done = 0
    if any(journal.was_begun(part.name) and journal.find(part.name) is None for part in slices):
        tell(0, total, "waiting for samples of the interrupted move")
        _flush(target, wait_s=VISIBLE_AFTER_S)
    for part in slices:
        if journal.find(part.name) is None:
            _write(source, target, part, journal)
        done += part.samples
        tell(done, total, f"samples of {_date(part.start_ms)}")
    _flush(target)
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for part in slices:
        for metric, (count, checksum) in _check(source, target, part, journal).items():
            key = (_date(part.start_ms), metric)
            before = sums.get(key, (0, 0))
            sums[key] = (before[0] + count, (before[1] + checksum) % 2**64)
        done += part.samples
        tell(done, total, f"checking samples of {_date(part.start_ms)}")
    return [MovedSamples(day, metric, n, f"{checksum:016x}") for (day, metric), (n, checksum) in sorted(sums.items())]


def _write(source: ListedMetricStore, target: ListedMetricStore, part: SampleSlice, journal: MoveJournal) -> None:
    rows = _read(source, part).join(_read(target, part).select(KEYS), on=KEYS, how="anti")
    journal.begin(part.name)
    if rows.height:
        target.append_history([batch_of(rows)])
    journal.finish(part.name, {"samples": rows.height})


def _check(
    source: ListedMetricStore, target: ListedMetricStore, part: SampleSlice, journal: MoveJournal
) -> dict[str, tuple[int, int]]:
    step = f"checked {part.name}"
    result = journal.find(step)
    if result is None:
        rows = _read(source, part)
        _compare(rows, target, part)
        result = {str(metric): [count, f"{checksum:016x}"] for metric, count, checksum in summarize_samples(rows)}
        journal.finish(step, result)
    return {metric: (int(pair[0]), int(str(pair[1]), 16)) for metric, pair in result.items() if isinstance(pair, list)}


def summarize_samples(rows: pl.DataFrame) -> Iterator[tuple[str, int, int]]:
    """(metric, number of samples, checksum of their keys). The checksum is a sum of hashes, independent of the order."""
    if not rows.height:
        return
    hashed = rows.select("metric", pl.struct("unit", "time_ms").hash(seed=7).alias("hash"))
    sums = hashed.group_by("metric").agg(pl.len(), pl.col("hash").cast(pl.Int128).sum()).sort("metric")
    for metric, count, checksum in sums.iter_rows():
        yield metric, count, int(checksum) % 2**64


def _compare(rows: pl.DataFrame, target: ListedMetricStore, part: SampleSlice) -> None:
    """Raise StoreError unless every row is at the target; waits until a server makes them readable."""
    deadline = time.monotonic() + VISIBLE_TIMEOUT_S
    while True:
        difference = find_difference(rows, _read(target, part))
        if difference is None:
            return
        if time.monotonic() > deadline:
            raise StoreError(
                f"samples of {_date(part.start_ms)} differ at the target: {difference}",
                hint="Check the log and the retention of the server, then run the move again: it continues from here.",
            )
        time.sleep(CHECK_INTERVAL_S)


def find_difference(rows: pl.DataFrame, arrived: pl.DataFrame) -> str | None:
    """Describes rows that are missing or different in ``arrived``; None if there are none."""
    joined = rows.join(arrived.unique(KEYS, keep="last"), on=KEYS, how="left", suffix="_there")
    missing = joined["value_there"].null_count()
    if missing:
        return f"{missing:,} of {rows.height:,} are missing"
    largest = pl.col("value").abs().max().over("metric", "unit")
    is_off = (pl.col("value") - pl.col("value_there")).abs() > TOLERANCE * largest
    off = joined.filter(is_off)
    if off.height:
        first = off.row(0, named=True)
        return f"{off.height:,} have different values, the first {first['value']!r} and {first['value_there']!r} at the target"
    return None


def _read(store: ListedMetricStore, part: SampleSlice) -> pl.DataFrame:
    rows = store.read_all(part.metrics, start_ms=UnixMs(part.start_ms), end_ms=UnixMs(part.end_ms))
    return rows.filter(pl.col("value").is_finite())


def _flush(target: ListedMetricStore, *, wait_s: float = 0.0) -> None:
    """Flush a server so that written samples are readable, or wait if it cannot."""
    if isinstance(target, VictoriaMetricStore) and not target.flush():
        time.sleep(wait_s)


def _date(time_ms: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(time_ms // 1000))


@dataclass(frozen=True, slots=True)
class MovedRows:
    """The rows of one table; ``checksum``: of all columns, independent of the order of rows."""

    table: str
    rows: int
    checksum: str


def count_records(source: Engine) -> dict[str, int]:
    """How many rows each table has."""
    with source.connect() as connection:
        return count_rows(connection)


def move_records(source: Engine, target: Engine, tell: Tell) -> list[MovedRows]:
    """Copy in one transaction, then verify. A target that is not empty (from an earlier run) is only verified."""
    where = str(target.url.render_as_string(hide_password=True))
    with database_errors(where):
        upgrade_schema(target, where)
        total = sum(count_records(source).values())
        with target.connect() as connection:
            is_empty = not any(count_rows(connection).values())
        if is_empty:
            done = 0

            def reported_rows() -> Iterator[tuple[str, bytes]]:
                nonlocal done
                for table, lines in dump_rows(source):
                    done += lines.count(b"\n")
                    tell(done, total * 2, f"records: {table}")
                    yield table, lines

            load_rows(target, reported_rows(), where=where)
        tell(total, total * 2, "checking records")
        here, there = summarize_records(source), summarize_records(target)
        if here != there:
            raise _difference(here, there, where, was_empty=is_empty)
        tell(total * 2, total * 2, "records")
    return here


def summarize_records(engine: Engine) -> list[MovedRows]:
    """Every table that has rows, with their number and checksum."""
    sums: dict[str, tuple[int, int]] = {}
    for table, lines in dump_rows(engine):
        count, checksum = sums.get(table, (0, 0))
        for line in lines.splitlines():
            checksum += int.from_bytes(hashlib.blake2b(line, digest_size=8).digest(), "big")
            count += 1
        sums[table] = (count, checksum % 2**64)
    return [MovedRows(table, count, f"{checksum:016x}") for table, (count, checksum) in sums.items() if count]


def _difference(here: list[MovedRows], there: list[MovedRows], where: str, *, was_empty: bool) -> StoreError:
    other = {moved.table: moved for moved in there}
    own = {moved.table: moved for moved in here}
    tables = [name for name in own | other if own.get(name) != other.get(name)]
    if was_empty:
        return StoreError(
            f"the records in {where} differ from the source: {', '.join(tables)}",
            hint="Report this as a bug; the source is unchanged.",
        )
    return StoreError(
        f"{where} already has other records ({', '.join(tables)})",
        hint="Move into an empty database or folder; nothing was changed.",
    )


PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class MovedArtifact:
    """One file."""

    key: str
    size: int
    sha256: str


def move_artifacts(
    source: ArtifactStore, target: ArtifactStore, artifacts: list[ArtifactInfo], journal: MoveJournal, tell: Tell
) -> list[MovedArtifact]:
    """Copy artifacts that are missing at the target, and verify. Raises StoreError if one differs."""
    total, done, moved = sum(artifact.size for artifact in artifacts), 0, []
    for artifact in artifacts:
        step = f"artifact {artifact.key} {artifact.size} {artifact.modified_at}"
        result = journal.find(step)
        if result is None:
            result = {"sha256": _move(source, target, artifact)}
            journal.finish(step, result)
        moved.append(MovedArtifact(artifact.key, artifact.size, str(result["sha256"])))
        done += artifact.size
        tell(done, total, f"artifact {artifact.key}")
    return moved


def _move(source: ArtifactStore, target: ArtifactStore, artifact: ArtifactInfo) -> str:
    wanted = _digest(source, artifact.key)
    try:
        if _digest(target, artifact.key) == wanted:
            return wanted
    except NotFoundError:
        pass
    with closing(_pieces(source, artifact.key)) as pieces:
        target.put(artifact.key, pieces)
    if _digest(target, artifact.key) != wanted:
        raise StoreError(
            f"{artifact.key} differs at the target", hint="Run the move again; check the log of the target store."
        )
    return wanted


def _digest(store: ArtifactStore, key: str) -> str:
    digest = hashlib.sha256()
    for piece in _pieces(store, key):
        digest.update(piece)
    return digest.hexdigest()


def _pieces(store: ArtifactStore, key: str) -> Generator[bytes, None, None]:
    with store.open(key) as file:
        while piece := file.read(PIECE_BYTES):
            yield piece
