"""Source and target of ``clusterscape migrate``: parses their addresses, opens both, plans and runs the move."""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from clusterscape.errors import ConfigError, StoreBusyError
from clusterscape.model import UnixMs
from clusterscape.model.durations import DAY_MS
from clusterscape.runtime.site import system_clock
from clusterscape.settings import Settings, StorageSettings
from clusterscape.store.artifacts import ArtifactStore, open_artifact_store
from clusterscape.store.data_folder import hold_data_folder
from clusterscape.store.metrics import EmbeddedMetricStore
from clusterscape.store.metrics.contract import ListedMetricStore
from clusterscape.store.metrics.embedded.manifest import locked
from clusterscape.store.metrics.victoria import open_server_store
from clusterscape.store.moving import (
    MoveJournal,
    SampleSlice,
    count_records,
    move_artifacts,
    move_records,
    move_samples,
    plan_slices,
)
from clusterscape.store.records.advisory_locks import ALL, Fence, Leadership
from clusterscape.store.records.engines import record_engine
from clusterscape.store.records.migrations import upgrade_schema

FORMS = (
    "`embedded` (this site's data_dir), a folder, http(s)://… (metrics), postgresql://… or sqlite:///… (records), "
    "s3://BUCKET/PREFIX (artifacts)"
)
EMBEDDED = {"metrics": "embedded", "records": "sqlite", "artifacts": "folder"}


def parse_stores(storage: StorageSettings, words: Sequence[str]) -> StorageSettings:
    """``storage`` with the stores that ``words`` name."""
    update: dict[str, str | Path] = {}
    for word in words:
        scheme = word.partition("://")[0] if "://" in word else word.partition(":")[0]
        if word == "embedded":
            update |= EMBEDDED
        elif scheme in ("http", "https"):
            update["metrics"] = word
        elif scheme in ("postgresql", "postgresql+psycopg", "sqlite"):
            update["records"] = word
        elif scheme == "s3":
            update["artifacts"] = word
        elif "://" not in word and ("/" in word or word.startswith((".", "~"))):
            update |= {**EMBEDDED, "data_dir": Path(word).expanduser().absolute()}
        else:
            raise ConfigError(f"`{word}` is not a store", hint=f"Use {FORMS}.")
    return StorageSettings.model_validate({**storage.model_dump(), **update})


def different_parts(source: StorageSettings, target: StorageSettings) -> list[str]:
    """Which of ``metrics``, ``records``, ``artifacts`` have different addresses."""
    return [part for part in EMBEDDED if _address(source, part) != _address(target, part)]


def _address(storage: StorageSettings, part: str) -> str:
    value = str(getattr(storage, part))
    return f"{value} in {storage.data_dir}" if value == EMBEDDED[part] else value


Progress = Callable[[int, int, str], None]
Report = dict[str, Any]


class Move:
    """One move. A context manager that opens the stores and locks the embedded ones."""

    def __init__(self, settings: Settings, source: StorageSettings, target: StorageSettings) -> None:
        self._settings = settings
        self._source = source
        self._target = target
        self._parts = different_parts(source, target)
        self._open = ExitStack()
        if not self._parts:
            raise ConfigError("source and target are the same", hint="Choose another store with --to or --from.")

    def __enter__(self) -> "Move":
        with ExitStack() as opening:
            for data_dir in {self._source.data_dir, self._target.data_dir}:
                if data_dir.is_dir():
                    opening.enter_context(hold_data_folder(data_dir))
            # Older versions hold only this lock.
            folders = {
                storage.data_dir / "metrics"
                for storage in (self._source, self._target)
                if _has_embedded_metrics(storage)
            }
            for folder in folders if "metrics" not in self._parts else ():  # otherwise the stores hold them
                opening.enter_context(locked(folder))
            for storage in {side.records: side for side in (self._source, self._target)}.values():
                self._lock_out_collectors(storage, opening)
            self._open = opening.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def plan(self) -> Report:
        """What would be moved."""
        return {"parts": {part: self._about(part) | _PLANS[part](self) for part in self._parts}, "moved": False}

    def run(self, progress: Progress) -> Report:
        """Move every part and verify it. Raises StoreError if the target differs from the source."""
        journal = MoveJournal(self._source.data_dir / f".migration-{self._fingerprint()}.jsonl")
        # Records last: a target with records counts as non-empty.
        order = [part for part in ("metrics", "artifacts", "records") if part in self._parts]
        parts = {part: self._about(part) | _MOVES[part](self, journal, progress) for part in order}
        journal.remove()
        return {"parts": parts, "moved": True}

    # samples

    def plan_samples(self) -> Report:
        slices = self._slices(self._metrics(self._source))
        days = {sample_slice.start_ms // DAY_MS for sample_slice in slices}
        samples = sum(sample_slice.samples for sample_slice in slices)
        return {
            "days": len(days),
            "samples": samples,
            "summary": f"about {samples:,} samples of {len(days):,} days",
        }

    def move_samples(self, journal: MoveJournal, progress: Progress) -> Report:
        source, target = self._metrics(self._source), self._metrics(self._target)
        moved = move_samples(source, target, self._slices(source), journal, progress)
        samples = sum(day.samples for day in moved)
        days = len({day.day for day in moved})
        return {
            "samples": samples,
            "by_day_and_metric": [asdict(day) for day in moved],
            "summary": f"{samples:,} samples of {days:,} days",
        }

    def _slices(self, source: ListedMetricStore) -> list[SampleSlice]:
        now = system_clock()
        start_ms = UnixMs(0)
        if not isinstance(source, EmbeddedMetricStore):  # a server is queried day by day, as far back as the retention
            start_ms = UnixMs(int(now - self._settings.retention.coarse_days * DAY_MS))
        return plan_slices(source.days(start_ms=start_ms, end_ms=UnixMs(now + DAY_MS)))

    def _metrics(self, storage: StorageSettings) -> ListedMetricStore:
        store: ListedMetricStore
        if storage.metrics == "embedded":
            store = EmbeddedMetricStore(storage.data_dir / "metrics", self._settings.retention)
        else:
            store = open_server_store(storage.metrics, storage.metrics_server, cluster=self._settings.cluster)
        self._open.callback(store.close)
        return store

    # records

    def plan_records(self) -> Report:
        rows = count_records(self._records(self._source))
        return {"rows": rows, "summary": f"{sum(rows.values()):,} rows"}

    def move_records(self, journal: MoveJournal, progress: Progress) -> Report:
        del journal  # one transaction: nothing to resume
        moved = move_records(self._records(self._source), self._records(self._target), progress)
        return {
            "tables": [asdict(table) for table in moved],
            "summary": f"{sum(table.rows for table in moved):,} rows of {len(moved)} tables",
        }

    def _records(self, storage: StorageSettings) -> Engine:
        engine = record_engine(storage)
        self._open.callback(engine.dispose)
        if storage is self._source:
            upgrade_schema(engine, "the old records")
        return engine

    # artifacts

    def plan_artifacts(self) -> Report:
        files = self._artifacts(self._source).list()
        size = sum(file.size for file in files)
        return {"files": len(files), "bytes": size, "summary": f"{len(files):,} files, {size:,} bytes"}

    def move_artifacts(self, journal: MoveJournal, progress: Progress) -> Report:
        source, target = self._artifacts(self._source), self._artifacts(self._target)
        moved = move_artifacts(source, target, source.list(), journal, progress)
        size = sum(file.size for file in moved)
        return {
            "files": [asdict(file) for file in moved],
            "bytes": size,
            "summary": f"{len(moved):,} files, {size:,} bytes",
        }

    def _artifacts(self, storage: StorageSettings) -> ArtifactStore:
        return open_artifact_store(storage)

    # both sides

    def _lock_out_collectors(self, storage: StorageSettings, opening: ExitStack) -> None:
        """Lock out all collectors of that PostgreSQL; raises StoreBusyError if one is running."""
        if not storage.records.startswith("postgresql"):
            return
        engine = record_engine(storage)
        opening.callback(engine.dispose)
        leadership = Leadership(engine, ALL, Fence())
        if leadership.try_acquire_all():
            opening.callback(leadership.release)
        elif leadership.trouble is None:
            raise StoreBusyError(
                f"a server collects into {_format_address(storage, 'records')}",
                hint="Stop all ClusterScape servers that use it.",
            )

    def _about(self, part: str) -> Report:
        return {"from": _format_address(self._source, part), "to": _format_address(self._target, part)}

    def _fingerprint(self) -> str:
        """Identifies source and target, so that each move has its own journal."""
        addresses = [_format_address(side, part) for side in (self._source, self._target) for part in self._parts]
        return hashlib.sha256("\n".join(addresses).encode()).hexdigest()[:12]


def _has_embedded_metrics(storage: StorageSettings) -> bool:
    """Whether the embedded metric store of these settings exists."""
    return storage.metrics == "embedded" and (storage.data_dir / "metrics").is_dir()


_PLANS: dict[str, Callable[[Move], Report]] = {
    "metrics": Move.plan_samples,
    "records": Move.plan_records,
    "artifacts": Move.plan_artifacts,
}
_MOVES: dict[str, Callable[[Move, MoveJournal, Progress], Report]] = {
    "metrics": Move.move_samples,
    "records": Move.move_records,
    "artifacts": Move.move_artifacts,
}


def _format_address(storage: StorageSettings, part: str) -> str:
    """The address of a part, without a password."""
    value = str(getattr(storage, part))
    if value in ("embedded", "sqlite", "folder"):
        return f"{value} in {storage.data_dir}"
    scheme, _, rest = value.partition("://")
    head, slash, path = rest.partition("/")
    return f"{scheme}://{head.rpartition('@')[2]}{slash}{path}"
