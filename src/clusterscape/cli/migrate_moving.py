"""Opens both sides of a move, plans it, runs it and sums it up."""

import hashlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

from sqlalchemy import Engine

from clusterscape.cli.migrate_places import different_parts
from clusterscape.errors import ConfigError, StoreBusyError
from clusterscape.model import UnixMs
from clusterscape.runtime.site import system_clock
from clusterscape.settings import Settings, StorageSettings
from clusterscape.store.artifacts import ArtifactStore, open_artifact_store
from clusterscape.store.data_folder import hold_data_folder
from clusterscape.store.metrics import EmbeddedMetricStore
from clusterscape.store.metrics.contract import ListedMetricStore
from clusterscape.store.metrics.embedded.manifest import locked
from clusterscape.store.metrics.servers import open_server_store
from clusterscape.store.migration import Journal, move_artifacts, move_records, move_samples
from clusterscape.store.migration.records import count_records
from clusterscape.store.migration.samples import Slice, plan_slices
from clusterscape.store.records.engines import record_engine
from clusterscape.store.records.leadership import ALL, Fence, Leadership
from clusterscape.store.records.migrations import bring_up_to_date

DAY_MS = 86_400_000
Tell = Callable[[int, int, str], None]
Report = dict[str, Any]


class Move:
    """One move. A context manager: the stores are open, and the embedded ones locked, within it."""

    def __init__(self, settings: Settings, source: StorageSettings, target: StorageSettings) -> None:
        self._settings = settings
        self._source = source
        self._target = target
        self._parts = different_parts(source, target)
        self._open = ExitStack()
        if not self._parts:
            raise ConfigError(
                "both sides of the move are the same", hint="Give another store with --to, or one with --from."
            )

    def __enter__(self) -> "Move":
        with ExitStack() as opening:
            for data_dir in {self._source.data_dir, self._target.data_dir}:
                if data_dir.is_dir():
                    opening.enter_context(hold_data_folder(data_dir))
            # Servers of older versions hold only this lock.
            folders = {storage.data_dir / "metrics" for storage in (self._source, self._target) if _is_kept(storage)}
            for folder in folders if "metrics" not in self._parts else ():  # else the stores themselves hold them
                opening.enter_context(locked(folder))
            for storage in {side.records: side for side in (self._source, self._target)}.values():
                self._keep_collectors_out(storage, opening)
            self._open = opening.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def plan(self) -> Report:
        """What would be moved."""
        return {"parts": {part: self._about(part) | _PLANS[part](self) for part in self._parts}, "moved": False}

    def run(self, tell: Tell) -> Report:
        """Move every part and compare it. Raises StoreError where something is not there as it was."""
        journal = Journal(self._source.data_dir / f".migration-{self._fingerprint()}.jsonl")
        # Records last: they are what a site is known by, and a target with records counts as filled.
        order = [part for part in ("metrics", "artifacts", "records") if part in self._parts]
        parts = {part: self._about(part) | _MOVES[part](self, journal, tell) for part in order}
        journal.remove()
        return {"parts": parts, "moved": True}

    # samples

    def plan_samples(self) -> Report:
        slices = self._slices(self._metrics(self._source))
        days = {each.start_ms // DAY_MS for each in slices}
        samples = sum(each.samples for each in slices)
        return {
            "days": len(days),
            "samples": samples,
            "summary": f"about {samples:,} samples of {len(days):,} days",
        }

    def move_samples(self, journal: Journal, tell: Tell) -> Report:
        source, target = self._metrics(self._source), self._metrics(self._target)
        moved = move_samples(source, target, self._slices(source), journal, tell)
        samples = sum(each.samples for each in moved)
        days = len({each.day for each in moved})
        return {
            "samples": samples,
            "by_day_and_metric": [asdict(each) for each in moved],
            "summary": f"{samples:,} samples of {days:,} days",
        }

    def _slices(self, source: ListedMetricStore) -> list[Slice]:
        now = system_clock()
        start_ms = UnixMs(0)
        if not isinstance(source, EmbeddedMetricStore):  # a server is asked day by day, as far back as we keep anything
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

    def move_records(self, journal: Journal, tell: Tell) -> Report:
        del journal  # one transaction: there is nothing to go on from
        moved = move_records(self._records(self._source), self._records(self._target), tell)
        return {
            "tables": [asdict(each) for each in moved],
            "summary": f"{sum(each.rows for each in moved):,} rows of {len(moved)} tables",
        }

    def _records(self, storage: StorageSettings) -> Engine:
        engine = record_engine(storage)
        self._open.callback(engine.dispose)
        if storage is self._source:
            bring_up_to_date(engine, "the old records")
        return engine

    # artifacts

    def plan_artifacts(self) -> Report:
        found = self._artifacts(self._source).list()
        size = sum(each.size for each in found)
        return {"files": len(found), "bytes": size, "summary": f"{len(found):,} files, {size:,} bytes"}

    def move_artifacts(self, journal: Journal, tell: Tell) -> Report:
        source, target = self._artifacts(self._source), self._artifacts(self._target)
        moved = move_artifacts(source, target, source.list(), journal, tell)
        size = sum(each.size for each in moved)
        return {
            "files": [asdict(each) for each in moved],
            "bytes": size,
            "summary": f"{len(moved):,} files, {size:,} bytes",
        }

    def _artifacts(self, storage: StorageSettings) -> ArtifactStore:
        return open_artifact_store(storage)

    # both sides

    def _keep_collectors_out(self, storage: StorageSettings, opening: ExitStack) -> None:
        """Hold the lock that servers over that PostgreSQL, of any shard, would share; raises StoreBusyError where one has it."""
        if not storage.records.startswith("postgresql"):
            return
        engine = record_engine(storage)
        opening.callback(engine.dispose)
        collectors = Leadership(engine, ALL, Fence())
        if collectors.try_take_all():
            opening.callback(collectors.release)
        elif collectors.trouble is None:
            raise StoreBusyError(
                f"a server collects into {_shown(storage, 'records')}", hint="Stop every ClusterScape over it first."
            )

    def _about(self, part: str) -> Report:
        return {"from": _shown(self._source, part), "to": _shown(self._target, part)}

    def _fingerprint(self) -> str:
        """Of the target: another move has another journal."""
        told = [_shown(side, part) for side in (self._source, self._target) for part in self._parts]
        return hashlib.sha256("\n".join(told).encode()).hexdigest()[:12]


def _is_kept(storage: StorageSettings) -> bool:
    """Whether a server with these settings would hold the embedded store."""
    return storage.metrics == "embedded" and (storage.data_dir / "metrics").is_dir()


_PLANS: dict[str, Callable[[Move], Report]] = {
    "metrics": Move.plan_samples,
    "records": Move.plan_records,
    "artifacts": Move.plan_artifacts,
}
_MOVES: dict[str, Callable[[Move, Journal, Tell], Report]] = {
    "metrics": Move.move_samples,
    "records": Move.move_records,
    "artifacts": Move.move_artifacts,
}


def _shown(storage: StorageSettings, part: str) -> str:
    """The address of a part, without a password."""
    value = str(getattr(storage, part))
    if value in ("embedded", "sqlite", "folder"):
        return f"{value} in {storage.data_dir}"
    scheme, _, rest = value.partition("://")
    head, slash, path = rest.partition("/")
    return f"{scheme}://{head.rpartition('@')[2]}{slash}{path}"
