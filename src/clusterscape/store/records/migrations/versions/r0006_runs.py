"""Tracked runs get a table of their own; until now each was two documents."""

import json
from typing import Any

from alembic import op
from sqlalchemy import BigInteger, Column, Connection, Text, bindparam, column, delete, insert, select, table
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"

TEXT = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
AT_ONCE = 200  # runs
SAMPLE_BYTES = 28
COUNTED = ("samples", "not_finite", "dropped", "damaged")
COLUMNS = ("owned_by", "received_at", "bytes", "series_count")

documents = table("documents", *(column(name) for name in ("kind", "key", "body", "written_at")))
runs = table(
    "runs",
    *(column(name) for name in ("run", *COLUMNS, "written_at", "revision", "summary", "detail")),
)

revisions = table("revisions", column("kind"), column("revision"))


def upgrade() -> None:
    """Create the table and move the documents into it, oldest first."""
    op.create_table(
        "runs",
        Column("run", TEXT, primary_key=True),
        Column("owned_by", TEXT),
        Column("received_at", BigInteger),
        Column("written_at", BigInteger, nullable=False),
        Column("bytes", BigInteger, nullable=False),
        Column("series_count", BigInteger, nullable=False),
        Column("revision", BigInteger, nullable=False),
        Column("summary", TEXT, nullable=False),
        Column("detail", TEXT, nullable=False),
    )
    op.create_index("runs_by_revision", "runs", ["revision"])
    op.create_index("runs_by_owner", "runs", ["owned_by"])
    op.create_table("revisions", Column("kind", TEXT, primary_key=True), Column("revision", BigInteger, nullable=False))
    connection = op.get_bind()
    query = select(documents.c.key, documents.c.written_at).where(documents.c.kind == "run")
    keys = connection.execute(query.order_by(documents.c.written_at, documents.c.key)).fetchall()
    for start in range(0, len(keys), AT_ONCE):
        some = keys[start : start + AT_ONCE]
        bodies = {kind: _bodies(connection, kind, [key for key, _ in some]) for kind in ("run", "run-detail")}
        rows = [
            {"run": key, "written_at": at, "revision": start + place}
            | convert(bodies["run"][key], bodies["run-detail"].get(key))
            for place, (key, at) in enumerate(some, start=1)
        ]
        connection.execute(insert(runs), rows)
        is_moved = documents.c.kind.in_(("run", "run-detail")) & documents.c.key.in_(bindparam("keys", expanding=True))
        connection.execute(delete(documents).where(is_moved), {"keys": [key for key, _ in some]})
    if keys:
        connection.execute(insert(revisions), {"kind": "runs", "revision": len(keys)})


def _bodies(connection: Connection, kind: str, keys: list[str]) -> dict[str, str]:
    query = select(documents.c.key, documents.c.body).where(documents.c.kind == kind, documents.c.key.in_(keys))
    return {row[0]: row[1] for row in connection.execute(query)}


def convert(listed_text: str, detail_text: str | None) -> dict[str, object]:
    """The columns of a run from its two documents. What is damaged stays as it is, and is shown as damaged."""
    listed, detail = _load(listed_text), _load("{}" if detail_text is None else detail_text)
    summary = {name: value for name, value in listed.items() if name not in COLUMNS}
    for name in COUNTED:
        # The detail was written last: where a crash came in between, its counts belong to the offsets of its files.
        count = 0 if detail_text is None else detail.pop(name, summary.get(name, 0))
        if name in summary or count:
            summary[name] = count
    if "owned_by" in listed:  # claims are checked since runs have owners; without this the run's claims are believed
        detail.setdefault("holds", {})
    return {
        "owned_by": _owner_of(listed),
        "received_at": _int(listed.get("received_at")),
        "bytes": _bytes_of(listed),
        "series_count": _series_of(listed, detail),
        "summary": json.dumps(summary, separators=(",", ":")),
        "detail": json.dumps(detail, separators=(",", ":")),
    }


def _load(text: str) -> dict[str, Any]:
    try:
        body = json.loads(text)
    except ValueError:
        return {"about": text}  # no JSON: kept where it is found to be damaged
    return body if isinstance(body, dict) else {"about": body}


def _owner_of(listed: dict[str, Any]) -> str | None:
    """Of a run stored before runs had owners of their own, the user that it names."""
    about = listed.get("about")
    owner = listed["owned_by"] if "owned_by" in listed else about.get("user") if isinstance(about, dict) else None
    return owner if isinstance(owner, str) else None


def _bytes_of(listed: dict[str, Any]) -> int:
    """Of a run stored before bytes were counted, what its samples had."""
    counted = _int(listed.get("bytes"))
    return counted if counted is not None else (_int(listed.get("samples")) or 0) * SAMPLE_BYTES


def _series_of(listed: dict[str, Any], detail: dict[str, Any]) -> int:
    series = detail.get("series")
    counted = _int(listed.get("series_count"))
    return counted if counted is not None else len(series) if isinstance(series, dict) else 0


def _int(value: object) -> int | None:
    is_whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    return value if is_whole else None  # type: ignore[return-value]
