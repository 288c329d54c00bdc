"""Everything that a site's stores hold, each with its owner, for comparison before and after a write."""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusterscape.model import UnixMs
from clusterscape.store.metrics.contract import ListedMetricStore

FOREVER_MS = UnixMs(9_000_000_000_000)
OWNER_FIELDS = {"comment": "author", "rule-comment": "author"}
"""Documents that name their owner in another field than ``owned_by``."""


@dataclass(frozen=True)
class Thing:
    """One row, file or series. ``owner``: None if the site owns it."""

    place: str
    key: str
    owner: str | None

    def __str__(self) -> str:
        return f"{self.place} {self.key} of {self.owner or 'the site'}"


def read_contents(folder: Path, metrics: ListedMetricStore, run_owners: Mapping[str, str]) -> dict[Thing, str]:
    """A digest of every thing in the stores under ``folder``. ``run_owners``: whose the runs are, by id."""
    rows = list(_rows(folder / "data/records.db", run_owners))
    # Files of uploads and simulations are named after the document that says whose they are.
    owners = {key.split(" ")[-1]: owner for place, key, owner, _ in rows if place == "documents"}
    things = [*rows, *_files(folder / "artifacts", owners), *_series(metrics, run_owners)]
    return {Thing(place, key, owner): hashlib.sha256(body.encode()).hexdigest() for place, key, owner, body in things}


def _rows(path: Path, run_owners: Mapping[str, str]) -> Iterator[tuple[str, str, str | None, str]]:
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        database.row_factory = sqlite3.Row
        names = [row[0] for row in database.execute("select name from sqlite_master where type = 'table'")]
        for table in sorted(set(names) - {"revisions"}):  # which only counts writes
            columns = list(database.execute(f"pragma table_info('{table}')"))
            keys = [column["name"] for column in columns if column["pk"]]
            for row in database.execute(f'select * from "{table}"'):
                fields = {name: row[name] for name in row.keys() if name not in ("seen_at", "written_at")}  # noqa: SIM118
                key = " ".join(str(row[name]) for name in keys)
                yield table, key, _row_owner(table, fields, run_owners), json.dumps(fields, sort_keys=True)


def _row_owner(table: str, row: Mapping[str, Any], run_owners: Mapping[str, str]) -> str | None:
    if table == "documents":
        if row["kind"] == "run-deleted":
            return run_owners.get(row["key"])
        body = json.loads(row["body"])
        owner = body.get(OWNER_FIELDS.get(row["kind"], "owned_by"))
        return owner if isinstance(owner, str) else None
    if table == "runs":
        return run_owners.get(row["run"])
    for column in ("workload", "id"):
        text = row.get(column)
        if isinstance(text, str) and text.startswith("run:"):
            return run_owners.get(text.removeprefix("run:"))
    return None


def _files(folder: Path, document_owners: Mapping[str, str | None]) -> Iterator[tuple[str, str, str | None, str]]:
    owners = dict(document_owners)
    owners |= {path.parent.name: json.loads(path.read_bytes()).get("owned_by") for path in folder.rglob("about.json")}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        owner = next((owners[part] for part in (*path.parts, path.name.split(".")[0]) if part in owners), None)
        yield "artifacts", name, owner, hashlib.sha256(path.read_bytes()).hexdigest()


def _series(metrics: ListedMetricStore, run_owners: Mapping[str, str]) -> Iterator[tuple[str, str, str | None, str]]:
    names = {name for day in metrics.days(start_ms=UnixMs(0), end_ms=FOREVER_MS) for name in day.metrics}
    table = metrics.read_all(sorted(names), start_ms=UnixMs(0), end_ms=FOREVER_MS)
    for (unit,), rows in table.sort("unit", "metric", "time_ms").group_by("unit", maintain_order=True):
        run = str(unit).removeprefix("run:").partition("/")[0]
        yield "samples", str(unit), run_owners.get(run), rows.write_csv()
