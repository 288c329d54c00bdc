"""Parses SQLite exports of Nsight Systems (``nsys export --type sqlite``), one file per rank, by their published schema.

Reads kernels, copies, runtime calls and NVTX ranges; tables and columns that a version lacks are skipped. Times are nanoseconds.
"""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from urllib.parse import quote

import polars as pl

from clusterscape.collect.traces.collective_names import find_kind, is_communication_kernel
from clusterscape.collect.traces.files import TraceFile
from clusterscape.errors import SourceError, TooLargeError
from clusterscape.model.spans import RankFacts, SpanClass, empty_spans, make_spans

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
COPIES = {"CUPTI_ACTIVITY_KIND_MEMCPY": "Memcpy", "CUPTI_ACTIVITY_KIND_MEMSET": "Memset"}
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
RANGES = "NVTX_EVENTS"
PUSH_POP, START_END = 59, 60
"""NVTX event types that are ranges."""
STEP = r"(?i)^(?:step|iteration|iter|profilerstep)[ _#:=]*(\d+)$"
MAX_VALUE_BYTES = 2**20
MAX_NS = 4 * 10**18
"""Larger times are not real, and differences between them would overflow 64 bits."""
_TEXTS = ("text",)
_THREAD_BITS = 0xFFFFFF  # of a globalTid; above it are process and machine


def parse_nsight(file: TraceFile) -> tuple[pl.DataFrame, RankFacts]:
    """Parse the spans of one export, with rank, step and phase still null. Raises ``SourceError`` if there are none."""
    try:
        with closing(_open(file)) as database:
            columns = _columns(database)
            _check_rows(database, columns, file)
            strings = _strings(database) if "StringIds" in columns else {}
            parts = [
                _kernels(database, columns, strings),
                *(_copies(database, columns, table, name) for table, name in COPIES.items()),
                _calls(database, columns, strings),
                _ranges(database, columns, strings),
            ]
    except sqlite3.DatabaseError as error:
        raise SourceError(
            f"cannot read the Nsight Systems export: {error}", hint="Export it again with nsys."
        ) from error
    spans = pl.concat(parts)
    if not spans.height:
        raise SourceError("it has no spans")
    return spans, RankFacts(rank=0, source=file.title)


def _open(file: TraceFile) -> sqlite3.Connection:
    """Open an untrusted database: nothing in its schema is executed, and the length of values is limited."""
    database = sqlite3.connect(f"file:{quote(str(file.path))}?mode=ro", uri=True)
    database.execute("PRAGMA trusted_schema = OFF")
    database.text_factory = lambda text: text.decode("utf-8", "replace")
    if file.limits is not None:
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    return database


def _check_rows(database: sqlite3.Connection, columns: Mapping[str, set[str]], file: TraceFile) -> None:
    """Raise TooLargeError if the tables that are read have too many rows."""
    if file.limits is None:
        return
    rows, max_rows = 0, file.limits.trace_file_spans
    for table in ("StringIds", KERNELS, *COPIES, CALLS, RANGES):
        if table in columns:
            query = f'SELECT count(*) FROM (SELECT 1 FROM "{table}" LIMIT {max_rows + 1})'  # noqa: S608 (our own names)
            rows += database.execute(query).fetchone()[0]
    if rows > max_rows:
        raise TooLargeError(f"{file.title} has more than {max_rows:,} rows", setting="limits.uploads.trace_file_spans")


def _strings(database: sqlite3.Connection) -> dict[int, str]:
    query = "SELECT id, value FROM StringIds WHERE typeof(id) = 'integer' AND typeof(value) = 'text'"
    return dict(database.execute(query))


def _columns(database: sqlite3.Connection) -> dict[str, set[str]]:
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {
        table: {
            row[1] for row in database.execute(f'PRAGMA table_info("{table}")')
        }  # names come from the file's own schema
        for table in tables
    }


def _read(database: sqlite3.Connection, columns: Mapping[str, set[str]], table: str, *names: str) -> pl.DataFrame:
    """Read the rows with a start and an end. A column that the version lacks is null."""
    if not {"start", "end"} <= columns.get(table, set()):
        return pl.DataFrame(
            schema={name: pl.String if name in _TEXTS else pl.Int64 for name in ("start", "end", *names)}
        )
    # SQLite checks no types: what is not of the column's type is null.
    kinds = {name: "text" if name in _TEXTS else "integer" for name in ("start", "end", *names)}
    selection = ", ".join(
        f'CASE WHEN typeof("{name}") = \'{kind}\' THEN "{name}" END' if name in columns[table] else "NULL"
        for name, kind in kinds.items()
    )
    is_possible = (
        f'typeof("start") = \'integer\' AND typeof("end") = \'integer\' AND "end" >= "start" AND "end" < {MAX_NS}'
    )
    query = f'SELECT {selection} FROM "{table}" WHERE {is_possible} AND "start" > -{MAX_NS}'  # noqa: S608 (only our own names)
    schema = {name: pl.String() if kind == "text" else pl.Int64() for name, kind in kinds.items()}
    return pl.DataFrame(database.execute(query).fetchall(), schema=schema, orient="row")


def _kernels(database: sqlite3.Connection, columns: Mapping[str, set[str]], strings: Mapping[int, str]) -> pl.DataFrame:
    table = _read(database, columns, KERNELS, "streamId", "correlationId", "demangledName", "shortName")
    names = [
        strings.get(long) or strings.get(short) or "kernel"
        for long, short in table.select("demangledName", "shortName").iter_rows()
    ]
    is_communication = [is_communication_kernel(name) for name in names]
    return make_spans(
        {
            "lane": [f"stream {stream}" for stream in table["streamId"]],
            "is_device": True,
            "span_class": [
                (SpanClass.COMMUNICATION if is_collective else SpanClass.COMPUTE).value
                for is_collective in is_communication
            ],
            "name": names,
            "collective": [
                find_kind(name) if is_collective else None
                for name, is_collective in zip(names, is_communication, strict=True)
            ],
            "start_ns": table["start"],
            "end_ns": table["end"],
            "correlation": table["correlationId"],
        },
        table.height,
    )


def _copies(database: sqlite3.Connection, columns: Mapping[str, set[str]], kind: str, name: str) -> pl.DataFrame:
    table = _read(database, columns, kind, "streamId", "correlationId", "bytes")
    return make_spans(
        {
            "lane": [f"stream {stream}" for stream in table["streamId"]],
            "is_device": True,
            "span_class": SpanClass.MEMORY.value,
            "name": name,
            "start_ns": table["start"],
            "end_ns": table["end"],
            "bytes": table["bytes"],
            "correlation": table["correlationId"],
        },
        table.height,
    )


def _calls(database: sqlite3.Connection, columns: Mapping[str, set[str]], strings: Mapping[int, str]) -> pl.DataFrame:
    table = _read(database, columns, CALLS, "globalTid", "correlationId", "nameId")
    # Names end in the version of their signature: cudaLaunchKernel_v7000.
    names = [(strings.get(number) or "call").partition("_v")[0] for number in table["nameId"]]
    return make_spans(
        {
            "lane": _threads(table),
            "is_device": False,
            "span_class": SpanClass.LAUNCH.value,
            "name": names,
            "start_ns": table["start"],
            "end_ns": table["end"],
            "correlation": table["correlationId"],
        },
        table.height,
    )


def _ranges(database: sqlite3.Connection, columns: Mapping[str, set[str]], strings: Mapping[int, str]) -> pl.DataFrame:
    table = _read(database, columns, RANGES, "globalTid", "eventType", "text", "textId")
    table = table.filter(pl.col("eventType").is_null() | pl.col("eventType").is_in([PUSH_POP, START_END]))
    if not table.height:
        return empty_spans()
    names = [text or strings.get(number) or "range" for text, number in table.select("text", "textId").iter_rows()]
    steps = pl.Series(names, dtype=pl.String).str.extract(STEP).cast(pl.Int32, strict=False)
    kinds = [SpanClass.ANNOTATION.value if step is None else SpanClass.STEP.value for step in steps]
    return make_spans(
        {
            "lane": _threads(table),
            "is_device": False,
            "span_class": kinds,
            "name": names,
            "start_ns": table["start"],
            "end_ns": table["end"],
            "step": steps,
        },
        table.height,
    )


def _threads(table: pl.DataFrame) -> list[str]:
    return [f"thread {0 if thread_id is None else thread_id & _THREAD_BITS}" for thread_id in table["globalTid"]]
