"""Traces built to exhaust memory: refused at bounded cost with an error that names the limit."""

import gzip
import io
import json
import os
import sqlite3
import tarfile
from pathlib import Path

import polars as pl
import pytest
from fuzz.structured_seeds import DOCUMENTS
from hostile.memory import MIB, measure
from unit.collect.traces.trace_files import simple_rank, write

from clusterscape.collect.traces import read_traces
from clusterscape.collect.traces.files import find_trace_files, natural_key
from clusterscape.errors import SourceError, TooLargeError
from clusterscape.settings.limits import UploadLimits

EVENT = b'{"ph":"X","cat":"kernel","name":"gemm","ts":1,"dur":5,"pid":0,"tid":7,"args":{"stream":7}},'


def read_with_limits(path: Path) -> int:
    return read_traces([path], workers=1, limits=UploadLimits()).spans.height


def test_trace_is_refused_when_it_unpacks_to_a_thousand_times_its_size(tmp_path: Path) -> None:
    path = tmp_path / "rank0.json.gz"
    with path.open("wb") as file:
        file.write(gzip.compress(b'{"traceEvents":['))
        member = gzip.compress(EVENT * 100_000)
        for _ in range(200):  # 1.9 GB
            file.write(member)
    assert path.stat().st_size < 8 * MIB
    cost = measure(read_with_limits, path)
    assert "limits.uploads.decompression_ratio" in str(cost.error)
    assert cost.peak_bytes < 2.2 * 200 * path.stat().st_size


def test_archive_is_refused_when_a_sparse_member_is_too_large(tmp_path: Path) -> None:
    """A few events followed by a terabyte of zeros that occupies no disk space."""
    path = tmp_path / "ranks.tar"
    start = b'{"traceEvents":[' + EVENT
    about = tarfile.TarInfo("rank0.json")
    about.size = len(start)
    about.pax_headers = {
        "GNU.sparse.major": "0",
        "GNU.sparse.minor": "1",
        "GNU.sparse.name": "rank0.json",
        "GNU.sparse.size": str(2**40),
        "GNU.sparse.map": f"0,{len(start)},{2**40},0",
    }
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(about, io.BytesIO(start))
    assert path.stat().st_size < 20_000
    (file,) = find_trace_files([path])
    assert file.size_bytes == 2**40
    cost = measure(read_with_limits, path)
    assert "limits.uploads.trace_file_unpacked_bytes" in str(cost.error)
    assert cost.peak_bytes < 50 * MIB


def test_the_error_names_the_limit_when_a_trace_has_too_many_files(tmp_path: Path) -> None:
    for rank in range(4):
        (tmp_path / f"rank{rank}.json").write_bytes(b'{"traceEvents":[' + EVENT[:-1] + b"]}")
    assert len(read_traces([tmp_path], limits=UploadLimits(trace_files=4)).ranks) == 4
    with pytest.raises(TooLargeError, match="more than 3 files") as raised:
        read_traces([tmp_path], limits=UploadLimits(trace_files=3))
    assert raised.value.setting == "limits.uploads.trace_files"


def test_the_error_names_the_limit_when_a_file_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "rank0.json"
    path.write_bytes(b'{"traceEvents":[' + EVENT * 100)
    with pytest.raises(SourceError, match=r"limits\.uploads\.trace_file_unpacked_bytes"):
        read_traces([path], limits=UploadLimits(trace_file_unpacked_bytes=1000))


@pytest.mark.parametrize("start", ["", '{"traceEvents":['])
def test_error_is_readable_when_brackets_are_nested(tmp_path: Path, start: str) -> None:
    path = tmp_path / "rank0.json"
    path.write_text(start + '{"ph":"X","ts":1,"args":{"x":' + "[" * 200_000)
    with pytest.raises(SourceError, match=r"nested too deeply|no event"):
        read_traces([path], workers=1, limits=UploadLimits())


def test_table_is_refused_when_it_has_too_many_rows(tmp_path: Path) -> None:
    path = tmp_path / "job.parquet"
    columns = ("dp_rank", "stage", "rank", "step", "start_ts", "duration", "seq_id", "mb_id")
    # A constant column is a few bytes for any number of rows.
    lengths = {name: pl.repeat(0, 20_000_000, dtype=pl.Int64, eager=True) for name in columns}
    pl.DataFrame(lengths | {"optype": pl.repeat("forward-compute", 20_000_000, eager=True)}).write_parquet(path)
    assert path.stat().st_size < MIB
    cost = measure(read_few_rows, path)
    assert "limits.uploads.trace_file_spans" in str(cost.error)
    assert cost.peak_bytes < 150 * MIB


def read_few_rows(path: Path) -> int:
    return read_traces([path], workers=1, limits=UploadLimits(trace_file_spans=1_000_000)).spans.height


def write_export(path: Path, table: str, rows: str) -> Path:
    with sqlite3.connect(path) as database:
        database.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({table})")
        database.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end) {rows}")
    database.close()
    return path


def test_database_is_refused_when_it_has_too_many_rows(tmp_path: Path) -> None:
    many = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 500) SELECT x, x + 1 FROM n"
    path = write_export(tmp_path / "rank0.sqlite", "start INTEGER, end INTEGER", many)
    assert read_traces([path], limits=UploadLimits()).spans.height == 500
    with pytest.raises(SourceError, match=r"more than 400 rows \(limits\.uploads\.trace_file_spans\)"):
        read_traces([path], limits=UploadLimits(trace_file_spans=400))


def test_no_memory_is_taken_when_a_database_column_is_computed(tmp_path: Path) -> None:
    table = "start INTEGER, end INTEGER, demangledName BLOB GENERATED ALWAYS AS (zeroblob(1000000000)) VIRTUAL"
    path = write_export(tmp_path / "rank0.sqlite", table, "VALUES (1, 2), (3, 4), (5, 6), (7, 8)")
    cost = measure(read_with_limits, path)
    assert cost.peak_bytes < 200 * MIB


def test_names_are_sorted_when_their_numbers_are_very_long() -> None:
    names = ["rank10.json", "rank2.json", f"rank{'9' * 5000}.json"]
    assert sorted(names, key=natural_key) == [names[1], names[0], names[2]]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("is_packed", [False, True])
def test_spans_are_the_same_when_a_trace_has_a_byte_order_mark(tmp_path: Path, encoding: str, is_packed: bool) -> None:
    data = json.dumps(simple_rank(0, 1)).encode(encoding)
    path = tmp_path / "rank0.json"
    path.write_bytes(gzip.compress(data) if is_packed else data)
    plain = write(tmp_path / "plain" / "rank0.json", simple_rank(0, 1))
    assert read_traces([path]).spans.equals(read_traces([plain]).spans)


def test_folder_and_pipe_that_look_like_scope_files_are_ignored(tmp_path: Path) -> None:
    """Nobody writes into the pipe, so a reader that opened it would never end."""
    name, document = DOCUMENTS["traces"]["mindspore"]
    (tmp_path / name).write_text(json.dumps(document))
    expected = read_traces([tmp_path / name]).spans
    (tmp_path / "scopes").mkdir()
    os.mkfifo(tmp_path / "scope_map")
    assert read_traces([tmp_path / name]).spans.equals(expected)


def test_error_says_why_when_a_path_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "rank0.json").touch()
    (tmp_path / "rank1.json").symlink_to(tmp_path / "rank1.json")
    for path, message in (
        (tmp_path / "rank0.json", "rank0.json is empty"),
        (tmp_path / "rank1.json", "Too many levels of symbolic links"),
        (tmp_path / "rank2.json", "no such file or folder"),
        (tmp_path / ("x" * 5000), "File name too long"),
    ):
        with pytest.raises(SourceError, match=message):
            read_traces([path])
