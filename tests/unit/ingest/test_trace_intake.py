"""Import of traces: files are read and stored; unreadable files are reported, and the others are imported."""

import gzip
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from clusterscape.errors import NotFoundError, QueryError, SourceError
from clusterscape.ingest.traces import TraceIntake
from clusterscape.model import UnixMs
from clusterscape.model.traces import ImportedTrace, TraceAbout, TraceState, trace_key
from clusterscape.runtime.trace_importing import import_files, import_in_subprocess
from clusterscape.store.artifacts import FolderArtifactStore
from clusterscape.store.artifacts.traces import list_abouts, write_about

RECORDED = Path(__file__).parents[2] / "data/h200/traces"
NOW = UnixMs(1_790_000_000_000)


def tokens() -> Callable[[], str]:
    numbers = iter(range(100))
    return lambda: f"{next(numbers):06x}"


@pytest.fixture
def store(tmp_path: Path) -> FolderArtifactStore:
    return FolderArtifactStore(tmp_path / "artifacts")


@pytest.fixture
def intake(store: FolderArtifactStore, tmp_path: Path) -> Iterator[TraceIntake]:
    intake = TraceIntake(store, import_files, clock=lambda: NOW, token=tokens(), scratch=tmp_path)
    yield intake
    intake.close()


def send(intake: TraceIntake, trace_id: str, paths: Sequence[Path]) -> None:
    for path in paths:
        intake.put_file(trace_id, f"run/{path.name}", [path.read_bytes()])


def wait_for_end(intake: TraceIntake, trace_id: str) -> None:
    with suppress(NotFoundError):  # it was deleted, and its import has ended
        intake.wait(trace_id)


def test_trace_is_ready_with_its_headline_when_its_files_were_sent(
    intake: TraceIntake, store: FolderArtifactStore
) -> None:
    trace = intake.create("Nightly, run 3", "slurm:7")
    assert trace.trace_id == "nightly-run-3-000000"
    assert trace.state is TraceState.IMPORTING
    send(intake, trace.trace_id, sorted(RECORDED.glob("ddp_*")))
    intake.start(trace.trace_id)
    done = intake.wait(trace.trace_id)
    assert (done.state, done.ranks, done.steps, done.workload_id) == (TraceState.READY, 4, 3, "slurm:7")
    assert done.headline is not None
    assert done.headline.startswith("Rank 0 computes longer than its peers")
    assert done.origin_ms == pytest.approx(1_794_724_163_500, abs=20_000)
    kept = {artifact.key.rpartition("/")[2] for artifact in store.list(trace_key(trace.trace_id, ""))}
    assert kept == {"about.json", "spans.parquet", "steps.parquet", "report.json"}
    assert list_abouts(store) == [done]


def test_broken_rank_is_reported_and_the_rest_goes_on_when_one_file_is_no_trace(intake: TraceIntake) -> None:
    trace = intake.create("broken")
    good = sorted(RECORDED.glob("ddp_*"))
    send(intake, trace.trace_id, good[:3])
    intake.put_file(trace.trace_id, "run/ddp_rank3.json.gz", [gzip.compress(b'{"traceEvents": [{"ph": "X"')])
    intake.start(trace.trace_id)
    done = intake.wait(trace.trace_id)
    assert (done.state, done.ranks) == (TraceState.READY, 3)
    assert any("Cannot read ddp_rank3.json.gz" in note for note in done.notes)
    assert any("Rank 3 is missing" in note for note in done.notes)


def test_failure_message_is_stored_when_nothing_can_be_read(intake: TraceIntake) -> None:
    trace = intake.create("noise")
    intake.put_file(trace.trace_id, "noise.json", [b"this is not a trace"])
    intake.start(trace.trace_id)
    done = intake.wait(trace.trace_id)
    assert done.state is TraceState.FAILED
    assert done.problem is not None
    assert "unknown trace format" in done.problem
    intake.put_file(trace.trace_id, "noise.json", [(RECORDED / "ddp_rank0.json.gz").read_bytes()])
    intake.start(trace.trace_id)
    assert intake.wait(trace.trace_id).state is TraceState.READY


def test_reason_is_kept_when_reading_fails_in_an_unforeseen_way(store: FolderArtifactStore, tmp_path: Path) -> None:
    def broken(_: Sequence[Path], __: Path, ___: Callable[[float], None]) -> ImportedTrace:
        raise ZeroDivisionError

    intake = TraceIntake(store, broken, clock=lambda: NOW, token=tokens(), scratch=tmp_path)
    trace = intake.create("x")
    intake.put_file(trace.trace_id, "a.json", [b"{}"])
    intake.start(trace.trace_id)
    assert intake.wait(trace.trace_id).problem is not None
    intake.close()


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "a/../../b", ".hidden"])
def test_file_is_refused_when_its_path_leaves_the_trace(intake: TraceIntake, path: str) -> None:
    trace = intake.create("x")
    with pytest.raises(QueryError, match="is not a valid name"):
        intake.put_file(trace.trace_id, path, [b"1"])


def test_query_is_refused_when_a_trace_does_not_exist(intake: TraceIntake) -> None:
    for ask in (intake.find, intake.start, intake.delete):
        with pytest.raises(NotFoundError, match="no trace nowhere"):
            ask("nowhere")
    with pytest.raises(NotFoundError):
        intake.find("../../etc")
    with pytest.raises(QueryError, match="no files were uploaded"):
        intake.start(intake.create("x").trace_id)


def test_all_files_go_when_a_trace_is_deleted(intake: TraceIntake, store: FolderArtifactStore) -> None:
    done = intake.take([RECORDED / "ddp_rank0.json.gz"], "one")
    intake.delete(done.trace_id)
    assert store.list("traces/") == []


def test_local_files_leave_nothing_behind_when_they_cannot_be_read(
    intake: TraceIntake, store: FolderArtifactStore, tmp_path: Path
) -> None:
    (tmp_path / "noise.json").write_text("no trace")
    with pytest.raises(SourceError, match="unknown trace format"):
        intake.take([tmp_path / "noise.json"], "noise")
    assert store.list("traces/") == []


def test_interrupted_import_has_failed_when_the_next_process_starts(
    intake: TraceIntake, store: FolderArtifactStore
) -> None:
    waiting = intake.create("waiting for files")
    write_about(store, TraceAbout(trace_id="cut-000009", name="cut", imported_at=NOW, progress=0.4))
    intake.mark_interrupted()
    assert intake.find("cut-000009").state is TraceState.FAILED
    assert intake.find(waiting.trace_id).state is TraceState.IMPORTING


def test_trace_is_read_in_a_separate_process_when_the_server_imports_it(tmp_path: Path) -> None:
    shares: list[float] = []
    imported = import_in_subprocess([RECORDED / "ddp_rank0.json.gz"], tmp_path, shares.append)
    assert imported.ranks == 1
    assert all(path.exists() for path in imported.files.values())
    assert shares
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="no traces in"):
        import_in_subprocess([tmp_path / "empty"], tmp_path, shares.append)


def test_reading_is_given_up_when_the_server_stops(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="was stopped"):
        import_in_subprocess([RECORDED], tmp_path, lambda _: None, lambda: True)


def test_deleted_trace_stays_deleted_and_its_import_ends_when_it_was_being_read(
    store: FolderArtifactStore, tmp_path: Path
) -> None:
    is_reading, may_go_on, reports = threading.Event(), threading.Event(), []

    def read(paths: Sequence[Path], folder: Path, progress: Callable[[float], None]) -> ImportedTrace:
        is_reading.set()
        assert may_go_on.wait(60)
        reports.append(0.5)
        progress(0.5)
        reports.append(1.0)
        return import_files(paths, folder, progress)

    intake = TraceIntake(store, read, clock=lambda: NOW, token=tokens(), scratch=tmp_path)
    trace = intake.create("secret")
    send(intake, trace.trace_id, [RECORDED / "ddp_rank0.json.gz"])
    intake.start(trace.trace_id)
    assert is_reading.wait(60)
    intake.delete(trace.trace_id)
    may_go_on.set()
    wait_for_end(intake, trace.trace_id)
    assert reports == [0.5], "the importer was not stopped"
    assert store.list("traces/") == []
    intake.close()


def test_deleted_trace_stays_deleted_when_it_was_stored_meanwhile(store: FolderArtifactStore, tmp_path: Path) -> None:
    trace_ids: list[str] = []

    def read(paths: Sequence[Path], folder: Path, progress: Callable[[float], None]) -> ImportedTrace:
        imported = import_files(paths, folder, lambda _: None)
        own.delete(trace_ids[0])
        return imported

    own = TraceIntake(store, read, clock=lambda: NOW, token=tokens(), scratch=tmp_path)
    trace_ids.append(own.create("secret").trace_id)
    send(own, trace_ids[0], [RECORDED / "ddp_rank0.json.gz"])
    own.start(trace_ids[0])
    wait_for_end(own, trace_ids[0])
    assert store.list("traces/") == []
    own.close()


def test_owners_take_turns_when_one_of_them_imports_many_traces(store: FolderArtifactStore, tmp_path: Path) -> None:
    order: list[str] = []
    may_go_on = threading.Event()

    def read(paths: Sequence[Path], folder: Path, progress: Callable[[float], None]) -> ImportedTrace:
        assert may_go_on.wait(60)
        order.append(paths[0].read_text())
        raise SourceError("it is not a trace")

    intake = TraceIntake(store, read, clock=lambda: NOW, token=tokens(), scratch=tmp_path)
    traces = [(owner, intake.create(owner, owned_by=owner).trace_id) for owner in ["eve"] * 4 + ["ada", "bob"]]
    for owner, trace_id in traces:
        intake.put_file(trace_id, "a", [owner.encode()])
        intake.start(trace_id)
    may_go_on.set()
    for _, trace_id in traces:
        intake.wait(trace_id)
    assert order == ["eve", "eve", "ada", "bob", "eve", "eve"], "one that runs, then each owner in turn"
    intake.close()
