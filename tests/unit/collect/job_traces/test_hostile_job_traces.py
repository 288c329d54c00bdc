"""Job traces built to exhaust memory or crash the reader: refused at bounded cost with an error that names the limit."""

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hostile.memory import MIB, measure

from clusterscape.collect.job_traces import read_trace
from clusterscape.errors import SourceError, TooLargeError
from clusterscape.model.jobs import JobTrace
from clusterscape.settings.limits import UploadLimits

MOST_MEMORY = 700 * MIB
"""The reader's own blocks, with room for the allocator; the files below take 2 to 7 GB without limits."""
LINE = b"1 0 5 100 4 -1 -1 4 200 -1 1 7 3 -1 1 -1 -1 -1\n"
CSV_HEAD = b"job_id,user,vc,submit_time,duration,queue,gpu_num,cpu_num,node_num,state"


def read_with_limits(path: Path) -> int:
    return len(read_trace(path, limits=UploadLimits()))


def repeat(folder: Path, name: str, piece: bytes, times: int) -> Path:
    """A gzip file of equal members: small, and quick to write."""
    path = folder / name
    packed = gzip.compress(piece, 6)
    with path.open("wb") as file:
        for _ in range(times):
            file.write(packed)
    return path


def test_file_is_refused_when_it_unpacks_to_a_thousand_times_its_size(tmp_path: Path) -> None:
    path = repeat(tmp_path, "bomb.swf.gz", LINE * 300_000, 100)  # 1.4 GB
    assert path.stat().st_size < 6 * MIB
    cost = measure(read_with_limits, path)
    assert "limits.uploads.decompression_ratio" in str(cost.error)
    assert cost.peak_bytes < MOST_MEMORY


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz", "zst"])
def test_file_is_refused_when_any_compression_exceeds_the_ratio(tmp_path: Path, ending: str) -> None:
    packers: dict[str, Callable[[bytes], bytes]] = {
        "gz": gzip.compress,
        "bz2": bz2.compress,
        "xz": lzma.compress,
        "zst": zstandard.compress,
    }
    path = tmp_path / f"bomb.swf.{ending}"
    path.write_bytes(packers[ending](LINE * 400_000))
    with pytest.raises(TooLargeError, match="times its size"):
        read_trace(path, limits=UploadLimits())
    assert len(read_trace(path, limits=UploadLimits(decompression_ratio=1e6))) == 400_000


def test_file_is_refused_when_a_line_is_endless(tmp_path: Path) -> None:
    cost = measure(read_with_limits, repeat(tmp_path, "line.csv.gz", CSV_HEAD + b"\n" + b"x" * 8 * MIB, 300))  # 2.4 GB
    assert "limits.uploads.job_trace_line_bytes" in str(cost.error)
    assert cost.peak_bytes < MOST_MEMORY


def test_file_is_refused_when_a_json_job_is_endless(tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    with path.open("wb") as file:
        file.write(b'{"jobs": [{"job_id": 1, "comment": "')
        for _ in range(200):
            file.write(b"x" * MIB)
    cost = measure(read_with_limits, path)
    assert "limits.uploads.job_trace_line_bytes" in str(cost.error)
    assert cost.peak_bytes < 100 * MIB


def test_memory_is_bounded_when_lines_are_only_separators(tmp_path: Path) -> None:
    path = tmp_path / "separators.csv"
    path.write_bytes(CSV_HEAD + b"\n" + (b"," * 900_000 + b"\n") * 100)
    cost = measure(read_with_limits, path)
    assert "more than 10 fields" in str(cost.error)  # no row is left
    assert cost.peak_bytes < 250 * MIB


def test_header_lines_and_statuses_are_limited_when_there_are_many(tmp_path: Path) -> None:
    header = b"".join(b"; k%d: v\n; Queue: %d q\n" % (number, number) for number in range(100_000))
    jobs = b"".join(b"%d 0 5 100 4 -1 -1 4 200 -1 word%d 7 3 -1 1 -1 -1 -1\n" % (n, n) for n in range(50_000))
    path = tmp_path / "many.swf"
    path.write_bytes(header + jobs)
    trace = read_trace(path, limits=UploadLimits())
    assert len(trace) == 50_000
    assert len(trace.header) <= 10_000
    assert len(trace.notes) < 30
    assert next(note.count for note in trace.notes if note.reason == "other unknown statuses") > 40_000


@pytest.mark.parametrize(
    ("limits", "setting"),
    [
        (UploadLimits(job_trace_rows=100), "job_trace_rows"),
        (UploadLimits(job_trace_columns=5), "job_trace_columns"),
        (UploadLimits(job_trace_cells=1000), "job_trace_cells"),
        (UploadLimits(job_trace_unpacked_bytes=1000), "job_trace_unpacked_bytes"),
    ],
)
def test_the_error_names_the_limit_when_a_table_is_too_large(
    tmp_path: Path, limits: UploadLimits, setting: str
) -> None:
    path = tmp_path / "table.csv"
    row = b"\n1,a,vc,2023-01-01 00:00:00,10,0,1,1,1,COMPLETED"
    path.write_bytes(CSV_HEAD + row * 101)
    with pytest.raises(TooLargeError, match=r"has ") as raised:
        read_trace(path, limits=limits)
    assert f"limits.uploads.{setting}" in str(raised.value.hint)
    assert isinstance(read_trace(path, limits=UploadLimits()), JobTrace)


def test_json_is_refused_when_it_has_too_many_rows(tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps({"jobs": [{"job_id": number} for number in range(50)]}))
    with pytest.raises(TooLargeError, match="more than 20 rows"):
        read_trace(path, limits=UploadLimits(job_trace_rows=20))


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_error_is_readable_when_nesting_is_too_deep(tmp_path: Path, opening: str) -> None:
    path = tmp_path / "deep.json"
    path.write_text('{"jobs": [' + opening * 100_000)
    with pytest.raises(SourceError, match=r"nested too deeply|truncated|damaged"):
        read_trace(path, "sacct-json", limits=UploadLimits())


def test_letters_are_whole_when_a_block_ends_within_one(tmp_path: Path) -> None:
    path = tmp_path / "names.json"
    job = {"job_id": 1, "user": "Žofie", "time": {"submission": 1, "start": 2, "elapsed": 5}, "allocation_nodes": 1}
    text = json.dumps({"jobs": [job | {"job_id": number} for number in range(40_000)]}, ensure_ascii=False)
    path.write_text(text, encoding="utf-8")
    trace = read_trace(path, limits=UploadLimits())
    assert trace.frame["user"].unique().to_list() == ["Žofie"]


def test_file_is_refused_when_its_decompressor_needs_gigabytes(tmp_path: Path) -> None:
    path = tmp_path / "window.swf.xz"
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 2**30}]
    path.write_bytes(lzma.compress(LINE * 10, filters=filters))
    with pytest.raises(SourceError, match=r"[Mm]emory"):
        read_trace(path, limits=UploadLimits())


@pytest.mark.parametrize("heading", ["line", "job_id"])
def test_heading_is_refused_or_ignored_when_it_repeats_or_is_internal(tmp_path: Path, heading: str) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(CSV_HEAD + f",{heading}\n1,a,vc,2023-01-01 00:00:00,10,0,1,1,1,COMPLETED,9\n".encode())
    if heading == "job_id":
        with pytest.raises(SourceError, match="duplicate column 'job_id'"):
            read_trace(path)
    else:
        assert read_trace(path).frame["line"].to_list() == [2]


def test_only_its_row_is_dropped_when_a_quoted_field_has_no_end(tmp_path: Path) -> None:
    path = tmp_path / "quoted.csv"
    row = b"\n1,a,vc,2023-01-01 00:00:00,10,0,1,1,1,COMPLETED"
    path.write_bytes(CSV_HEAD + row + b'\n2,"' + b"x" * 200_000 + row)
    assert len(read_trace(path)) == 2
