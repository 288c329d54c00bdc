"""Stores with ingested runs, for tests of queries."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import orjson
from clusters.opened import open_queries
from sqlalchemy import select, update

from clusterscape.ingest.pipeline import Ingest
from clusterscape.ingest.runs import RunIntake
from clusterscape.model import UnixMs
from clusterscape.model.run_frames import NO_STEP, encode_event, encode_samples
from clusterscape.query import Queries, QueryContext
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records import open_record_store
from clusterscape.store.records.contract import RecordStore
from clusterscape.store.records.mirror import MirroredRecordStore
from clusterscape.store.records.sql import SqlRecordStore
from clusterscape.store.records.tables import runs
from clusterscape.track.spooled import read_run, spool_files

RECORDED = Path(__file__).parents[1] / "data/h200/runs"
NOW = UnixMs(1_794_800_000_000)


@dataclass
class RunStores:
    """``intake`` takes runs in, ``queries`` answers."""

    intake: RunIntake
    queries: Queries
    records: RecordStore
    metrics: MetricStore

    def take(self, run: str, data: bytes, file: str = "tracker.spool") -> None:
        self.intake.take(run, file, 0, data)

    def take_recorded(self, name: str) -> str:
        """A run recorded on an H200; its id."""
        run = str(read_run(RECORDED / name).about["run"])
        for file in sorted(spool_files(RECORDED / name), key=lambda file: file.name != "tracker.spool"):
            self.take(run, file.read_bytes(), file.name)
        return run


@contextmanager
def run_stores(folder: Path, *, is_mirrored: bool = False) -> Iterator[RunStores]:
    """Real stores in a folder. ``is_mirrored``: with the present in memory, as a server has it."""
    storage = StorageSettings(data_dir=folder)
    metrics = open_metric_store(storage, RetentionSettings(), cluster="c")
    opened = open_record_store(storage)
    records = MirroredRecordStore(opened) if is_mirrored else opened
    changes = Changes()
    ingest = Ingest(metrics, records, changes, clock=lambda: NOW)
    context = QueryContext(metrics=metrics, records=records, changes=changes, clock=lambda: NOW, cluster="c")
    try:
        intake = RunIntake(ingest, records, clock=lambda: NOW)
        yield RunStores(intake, open_queries(context, ingest), records, metrics)
    finally:
        metrics.close()
        records.close()


def overwrite_stored(records: RecordStore, run: str, column: str, fields: Mapping[str, object]) -> None:
    """Put these fields into the JSON of a stored run, whatever they are: ``column`` is ``summary`` or ``detail``."""
    with cast(SqlRecordStore, records)._engine.begin() as connection:
        body = orjson.loads(connection.execute(select(runs.c[column]).where(runs.c.run == run)).scalar_one())
        text = orjson.dumps({**body, **fields}).decode()
        connection.execute(update(runs).where(runs.c.run == run).values({column: text}))


def spooled(
    run: str,
    *,
    start_s: float = 0.0,
    seconds: float = 10.0,
    series: Mapping[tuple[str, str | None, str], Sequence[float]] = {},
    steps: bool = False,
    marks: Sequence[tuple[str, str, float]] = (),
    state: str = "completed",
    params: Mapping[str, str] | None = None,
    about: Mapping[str, object] = {},
) -> bytes:
    """A tracker's file: series by (name, unit, scope) with evenly spaced samples from the start to the end."""
    begin = NOW - 1_000_000 + int(start_s * 1000)
    end = begin + int(seconds * 1000)
    description = {
        "name": "train.py",
        "host": "n1",
        "user": "me",
        "command": ["python", "train.py"],
        "devices": ["0"],
        **about,
    }
    parts = [
        encode_event({"event": "run", "run": run, "queued_at": begin - 5, "params": dict(params or {}), **description}),
        encode_event({"event": "moment", "moment": "barrier", "at": begin - 2}),
        encode_event({"event": "moment", "moment": "running", "at": begin}),
    ]
    for kind, name, after_s in marks:
        parts.append(encode_event({"event": "mark", "kind": kind, "name": name, "at": begin + int(after_s * 1000)}))
    for code, ((name, unit, scope), values) in enumerate(series.items()):
        method = "estimated" if scope == "process" and "mps" in str(about.get("collocation")) else "measured"
        parts.append(
            encode_event(
                {"event": "series", "code": code, "name": name, "unit": unit, "scope": scope, "method": method}
            )
        )
        gap_us = int(seconds * 1e6 / max(1, len(values) - 1))
        times = [begin * 1000 + number * gap_us for number in range(len(values))]
        numbers = list(range(len(values))) if steps and scope == "run" else [NO_STEP] * len(values)
        parts.append(encode_samples([code] * len(values), times, numbers, list(values)))
    parts.append(encode_event({"event": "end", "state": state, "cause": None, "exit_code": 0, "at": end}))
    return b"".join(parts)
