"""The process that reads an uploaded trace or job trace is ended when it exceeds the limits of memory or time."""

import os
from pathlib import Path

import pytest

from clusterscape.collect.job_traces import read_trace
from clusterscape.errors import QueryError, SourceError, TooLargeError
from clusterscape.runtime.processes import find_machine_memory, iter_tree, read_tree_bytes
from clusterscape.runtime.site import _open_job_trace_reader
from clusterscape.runtime.trace_importing import import_in_subprocess, read_job_trace_in_subprocess
from clusterscape.settings.limits import UploadLimits

EVENT = '{"ph":"X","cat":"kernel","name":"gemm%d","ts":%d,"dur":5,"pid":0,"tid":7,"args":{"stream":7}}'


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "rank0.json"
    with path.open("w") as file:
        file.write('{"schemaVersion":1,"traceEvents":[')
        file.write(",".join(EVENT % (number, number) for number in range(600_000)))
        file.write("]}")
    return path


def test_an_import_is_ended_when_it_takes_too_much_memory(tmp_path: Path, trace: Path) -> None:
    with pytest.raises(TooLargeError, match="GiB of memory") as raised:
        import_in_subprocess([trace], tmp_path, lambda _: None, limits=UploadLimits(import_memory_bytes=2**28))
    assert raised.value.setting == "limits.uploads.import_memory_bytes"


def test_an_import_is_ended_when_it_takes_too_long(tmp_path: Path, trace: Path) -> None:
    with pytest.raises(TooLargeError, match="takes more than") as raised:
        import_in_subprocess([trace], tmp_path, lambda _: None, limits=UploadLimits(import_timeout_s=0.01))
    assert raised.value.setting == "limits.uploads.import_timeout_s"


def test_an_import_is_refused_when_it_has_more_spans_than_a_server_can_hold(tmp_path: Path, trace: Path) -> None:
    with pytest.raises(SourceError, match=r"600,000 spans, more than 599,999") as raised:
        import_in_subprocess([trace], tmp_path, lambda _: None, limits=UploadLimits(trace_spans=599_999))
    assert "limits.uploads.trace_spans" in str(raised.value.hint)
    assert not list(tmp_path.glob("*.parquet"))


def test_requests_have_priority_when_files_are_read(tmp_path: Path, trace: Path) -> None:
    own, priorities = os.getpriority(os.PRIO_PROCESS, 0), set[int]()

    def note(_: float) -> None:
        children = [pid for pid in iter_tree(os.getpid()) if _is_reader(pid)]
        priorities.update(os.getpriority(os.PRIO_PROCESS, pid) for pid in children)

    import_in_subprocess([trace], tmp_path, note)
    assert priorities
    assert min(priorities) > own


def _is_reader(pid: int) -> bool:
    return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_memory_of_this_process_is_within_that_of_the_machine() -> None:
    assert 10**6 < read_tree_bytes(os.getpid()) < find_machine_memory()


SWF_LINE = "1 0 5 100 4 -1 -1 4 200 -1 1 7 3 -1 1 -1 -1 -1\n"


def test_job_trace_is_the_same_when_a_child_process_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "trace.swf"
    path.write_text("; MaxProcs: 16\n" + SWF_LINE + "2 x 5\n")
    trace = read_job_trace_in_subprocess(path, None, "UTC", UploadLimits())
    expected = read_trace(path)
    assert trace.frame.equals(expected.frame)
    assert (trace.total, trace.notes, trace.header) == (expected.total, expected.notes, expected.header)


def test_refusal_keeps_its_kind_when_a_child_process_refuses_a_job_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.swf"
    path.write_text(SWF_LINE * 50)
    with pytest.raises(TooLargeError, match="more than 20 rows") as caught:
        read_job_trace_in_subprocess(path, None, "UTC", UploadLimits(job_trace_rows=20))
    assert caught.value.setting == "limits.uploads.job_trace_rows"
    with pytest.raises(QueryError, match="unknown time zone"):
        read_job_trace_in_subprocess(path, None, "Nowhere", UploadLimits())
    path.write_text("no trace\n")
    with pytest.raises(SourceError, match="unknown format"):
        read_job_trace_in_subprocess(path, None, "UTC", UploadLimits())


def test_server_survives_when_a_job_trace_takes_too_much_memory_or_time(tmp_path: Path) -> None:
    path = tmp_path / "trace.swf"
    path.write_text(SWF_LINE * 300_000)
    tight = UploadLimits.model_construct(**(UploadLimits().model_dump() | {"import_memory_bytes": 32 * 2**20}))
    with pytest.raises(TooLargeError, match="GiB of memory"):
        read_job_trace_in_subprocess(path, None, "UTC", tight)
    with pytest.raises(TooLargeError, match=r"takes more than 0\.1 s"):
        read_job_trace_in_subprocess(path, None, "UTC", UploadLimits(import_timeout_s=0.1))


def test_uploaded_job_trace_is_read_within_limits_when_a_server_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "trace.swf"
    path.write_text(SWF_LINE)
    assert len(_open_job_trace_reader(UploadLimits())(path, None, "UTC")) == 1
    with pytest.raises(TooLargeError, match="takes more than"):
        _open_job_trace_reader(UploadLimits(import_timeout_s=0.05))(path, None, "UTC")
