"""Runs that earlier versions stored as documents are all there after the upgrade, on SQLite and on a real PostgreSQL.

``data/runs-before-0006`` has what those versions wrote of three runs, and what they answered about them.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from clusters.opened import open_queries
from servers.postgres import PostgresServer, postgres_server
from sqlalchemy import insert
from tracking.site import NOW

from clusterscape.errors import ForbiddenError, QueryError
from clusterscape.ingest.pipeline import Ingest
from clusterscape.ingest.runs import RunIntake
from clusterscape.model import WorkloadId
from clusterscape.model.run_frames import encode_event
from clusterscape.query import QueryContext
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.records import RecordStore, open_record_store
from clusterscape.store.records.engines import record_engine
from clusterscape.store.records.migrations import upgrade
from clusterscape.store.records.tables import documents

BEFORE = Path(__file__).parents[1] / "data/runs-before-0006"
VERSIONS = ["0004", "0005"]
TAGS = encode_event({"event": "tags", "tags": {"a": "b"}})


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.server)])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> StorageSettings:
    is_postgres = request.param == "postgresql"
    records = request.getfixturevalue("postgres").new_database() if is_postgres else "sqlite"
    return StorageSettings(data_dir=tmp_path / "data", records=records, min_free_bytes=0)


def fill(storage: StorageSettings, revision: str, rows: list[dict[str, Any]]) -> None:
    """A database of an earlier version with these documents."""
    engine = record_engine(storage)
    with engine.execution_options(writes=True).begin() as connection:
        upgrade(connection, revision)
        bodies = [row if isinstance(row["body"], str) else {**row, "body": json.dumps(row["body"])} for row in rows]
        connection.execute(insert(documents), bodies)
    engine.dispose()


class Site:
    """Services over the upgraded records."""

    def __init__(self, storage: StorageSettings) -> None:
        self.records: RecordStore = open_record_store(storage)
        self.metrics = open_metric_store(storage, RetentionSettings(), cluster="c")
        changes = Changes()
        ingest = Ingest(self.metrics, self.records, changes, clock=lambda: NOW)
        context = QueryContext(
            metrics=self.metrics, records=self.records, changes=changes, clock=lambda: NOW, cluster="c"
        )
        self.intake = RunIntake(ingest, self.records, clock=lambda: NOW)
        self.runs = open_queries(context, ingest).runs

    def close(self) -> None:
        self.records.close()
        self.metrics.close()


def differences(before: object, now: object, path: str = "") -> list[str]:
    """Differences of the current answer from the former one."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        return [text for key in before for text in differences(before[key], now.get(key), f"{path}.{key}")]
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        return [
            text
            for place, pair in enumerate(zip(before, now, strict=True))
            for text in differences(*pair, f"{path}[{place}]")
        ]
    return [] if before == now else [f"{path}: {before!r} became {now!r}"]


@pytest.mark.parametrize("revision", VERSIONS)
def test_answers_about_runs_are_the_same_when_an_earlier_version_stored_them(
    storage: StorageSettings, revision: str
) -> None:
    stored = json.loads((BEFORE / f"{revision}.json").read_text())
    assert stored["revision"] == revision
    view = {"kind": "view", "key": "mine", "body": {"title": "Mine"}, "written_at": NOW}
    fill(storage, revision, [*stored["documents"], view])
    site = Site(storage)
    answers = {run: asdict(site.runs.one(run)) for run in stored["answers"]}
    assert differences(stored["answers"], answers) == []
    assert differences(stored["tree"], asdict(site.runs.tree())) == []
    assert {run: site.intake.offsets(run) for run in answers} == stored["offsets"]
    others = [document for document in stored["documents"] if document["kind"] == "run-names"]
    assert [document.body for document in site.records.documents("run-names")] == [row["body"] for row in others]
    assert [document.body for document in site.records.documents("view")] == [{"title": "Mine"}]
    assert site.records.documents("run") == site.records.documents("run-detail") == []
    written = {document["key"]: document["written_at"] for document in stored["documents"] if document["kind"] == "run"}
    assert {record.run: record.written_at for record in site.records.runs().records} == written
    site.close()


@pytest.mark.parametrize("revision", VERSIONS)
def test_run_goes_on_as_its_owners_when_an_earlier_version_stored_its_begin(
    storage: StorageSettings, revision: str
) -> None:
    stored = json.loads((BEFORE / f"{revision}.json").read_text())
    fill(storage, revision, stored["documents"])
    site = Site(storage)
    end = stored["offsets"]["b"]["tracker.spool"]
    before = site.records.run("b")
    assert before is not None
    assert (before.record.owned_by, before.record.series_count) == ("me", 3)
    assert before.record.bytes >= 28 * before.summary.samples
    with pytest.raises(ForbiddenError):
        site.intake.take("b", "tracker.spool", end, TAGS, user="bob")
    site.intake.take("b", "tracker.spool", end, TAGS, user="me")
    after = site.records.run("b")
    assert after is not None
    assert after.summary.tags == {"a": "b"}
    assert (after.summary.figures, after.summary.samples) == (before.summary.figures, before.summary.samples)
    assert {key: after.detail.series[key] for key in before.detail.series} == before.detail.series
    # A version that checked no claims believed all of them: the same allocation goes on, no second one begins.
    held = [allocation.unit for allocation in site.records.allocations(workload=WorkloadId("run:b"))]
    assert held == ["n1:0" if revision == "0004" else "run:b/at/n1:0"]
    assert [record.run for record in site.records.runs(after=3).records] == ["b"]
    site.close()


def test_all_runs_are_listed_when_some_were_damaged_or_cut_off(storage: StorageSettings) -> None:
    listed = {"owned_by": "ada", "received_at": NOW, "bytes": 900, "series_count": 2, "samples": 9, "end": {}}
    rows: list[tuple[str, str, object]] = [
        # Cut off before its first detail: the owner is decided, and nothing else was read.
        ("run", "begun", listed),
        # Cut off between the two: the detail says how far its files were read.
        ("run", "behind", {**listed, "dropped": 4}),
        ("run-detail", "behind", {"samples": 5, "dropped": 3, "files": {"f": {"offset": 7}}}),
        ("run", "damaged", {**listed, "about": {"workload": []}, "bytes": "many"}),
        ("run-detail", "damaged", {"series": {"x": 5}}),
        ("run", "no json", "?"),
        ("run-detail", "orphan", {}),
    ]
    fill(storage, "0005", [{"kind": kind, "key": key, "body": body, "written_at": NOW} for kind, key, body in rows])
    site = Site(storage)
    records = {record.run: record for record in site.records.runs().records}
    assert records.keys() == {"begun", "behind", "damaged", "no json"}
    assert (records["begun"].summary.samples, site.intake.offsets("begun")) == (0, {})
    assert (records["behind"].summary.samples, records["behind"].summary.dropped) == (5, 3)
    assert site.intake.offsets("behind") == {"f": 7}
    assert [records[run].owned_by for run in ("begun", "behind", "damaged", "no json")] == ["ada"] * 3 + [None]
    assert [records[run].bytes for run in ("begun", "damaged")] == [900, 9 * 28]
    with pytest.raises(QueryError, match="is damaged"):
        site.intake.take("damaged", "f", 0, TAGS)
    assert {row.run: row.state for row in site.runs.all()} == {
        "begun": "waiting",
        "behind": "waiting",
        "damaged": "unknown",
        "no json": "unknown",
    }
    site.close()
