"""Nsight Systems exports, built by the published schema of their SQLite tables."""

import sqlite3
from contextlib import closing
from pathlib import Path

import polars as pl

from clusterscape.collect.traces import read_traces

THREAD = (7 << 24) | 42  # globalTid: process and thread


def write_export(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            """
            CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
                correlationId INTEGER, demangledName INTEGER, shortName INTEGER);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, streamId INTEGER,
                correlationId INTEGER, bytes INTEGER);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,
                correlationId INTEGER, nameId INTEGER);
            CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER,
                globalTid INTEGER);
            """
        )
        names = [(1, "gemm"), (2, "ncclDevKernel_AllGather_RING_LL"), (3, "cudaLaunchKernel_v7000"), (4, "forward")]
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", names)
        kernels = [(2000, 2500, 0, 7, 11, 1, 1), (2600, 2900, 0, 9, 12, 2, 2)]
        database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?)", kernels)
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1900, 1950, 7, 13, 4096)")
        calls = [(1100, 1110, THREAD, 11, 3), (1200, 1210, THREAD, 12, 3), (1050, 1060, THREAD, 13, 3)]
        database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?)", calls)
        ranges = [
            (1000, 3000, 59, "step 5", None, THREAD),
            (1080, 1300, 59, None, 4, THREAD),
            (1, None, 34, "mark", None, THREAD),
        ]
        database.executemany("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, ?)", ranges)
        database.commit()
    return path


def test_kernels_and_steps_are_read_when_an_export_is_named(tmp_path: Path) -> None:
    trace = read_traces([write_export(tmp_path / "report_rank3.sqlite")])
    assert trace.format == "Nsight Systems"
    assert [facts.rank for facts in trace.ranks] == [3]
    spans = trace.spans.with_columns(pl.col("name", "collective", "phase").cast(pl.String))
    gathered = spans.filter(pl.col("collective") == "all_gather").row(0, named=True)
    assert (gathered["step"], gathered["phase"], gathered["start_ns"]) == (5, "forward", 2600)
    assert spans.filter(pl.col("span_class") == "memory")["bytes"].to_list() == [4096]
    assert spans.filter(pl.col("span_class") == "step")["step"].to_list() == [5]
    assert set(spans.filter(pl.col("span_class") == "launch")["name"]) == {"cudaLaunchKernel"}


def test_damage_is_reported_when_an_export_is_damaged(tmp_path: Path) -> None:
    write_export(tmp_path / "rank0.sqlite")
    (tmp_path / "rank1.sqlite").write_bytes(b"SQLite format 3\x00 and then nothing")
    trace = read_traces([tmp_path])
    assert [facts.rank for facts in trace.ranks] == [0]
    assert any("Cannot read rank1.sqlite" in note for note in trace.notes)
