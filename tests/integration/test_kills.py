"""Kill −9 of long work next to the server: imports of traces, and backups. Other processes are killed in other tests: collectors
and replicas in test_replicas, runs in test_runs_server and test_run_command, moves in test_migrate, stores in their own tests.
"""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import psycopg
import pytest
from contract.record_samples import T0, job
from servers.demo import get_json, wait_until
from servers.postgres import PostgresServer, postgres_server
from servers.reliability import note
from servers.serving import Served, serving

from clusterscape.ingest.traces import TraceIntake
from clusterscape.model import UnixMs
from clusterscape.model.traces import TraceState
from clusterscape.settings import StorageSettings
from clusterscape.store.artifacts import FolderArtifactStore
from clusterscape.store.backup import read_contents
from clusterscape.store.records import open_record_store
from clusterscape.store.records.advisory_locks import Leases
from clusterscape.store.records.engines import record_engine

pytestmark = pytest.mark.server

RECORDED = Path(__file__).parents[1] / "data/h200/traces"


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


def send(method: str, url: str, body: bytes = b"") -> Any:
    request = urllib.request.Request(url, data=body, method=method, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def send_trace(served: Served) -> str:
    """The address of a trace whose files are there; its import can be asked for."""
    created = send("POST", f"{served.url}/api/v1/traces", b'{"name": "killed"}')
    url = f"{served.url}/api/v1/traces/{created['trace_id']}"
    for path in RECORDED.glob("ddp_*"):
        send("PUT", f"{url}/files/{path.name}", path.read_bytes())
    return url


def importing_process(served: Served) -> psutil.Process:
    """The process that reads the trace, once it has started."""
    processes: list[psutil.Process] = []

    def is_there() -> bool:
        children = psutil.Process(served.process.pid).children()
        processes[:] = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
        return bool(processes)

    wait_until(is_there)
    return processes[0]


def row_of(url: str) -> Any:
    """The row of a trace in the list."""
    rows = get_json(url.rpartition("/")[0])["traces"]
    return next(row for row in rows if row["trace_id"] == url.rpartition("/")[2])


def state_of(url: str) -> str:
    return str(row_of(url)["state"])


def test_import_has_failed_and_can_be_asked_for_again_when_its_process_or_the_server_is_killed(tmp_path: Path) -> None:
    with serving(tmp_path, "") as served:
        url = send_trace(served)
        send("POST", f"{url}/import")
        importing_process(served).kill()
        wait_until(lambda: state_of(url) == "failed")
        problem = row_of(url)["problem"]
        assert "ended with status -9" in problem
        send("POST", f"{url}/import")
        reader = importing_process(served)
        served.kill()
        wait_until(lambda: not reader.is_running() or reader.status() == psutil.STATUS_ZOMBIE)
    with serving(tmp_path, "") as served:
        url = f"{served.url}{url[url.index('/api') :]}"
        assert state_of(url) == "failed"
        assert "start its import again" in row_of(url)["problem"]
        send("POST", f"{url}/import")
        wait_until(lambda: state_of(url) != "importing")
        assert state_of(url) == "ready"
        assert list((tmp_path / "data").glob(".trace-*")) == [], "nothing half-done is left"
    note(
        "fault",
        what="kill −9 of the process that reads a trace, then of its server",
        promised="the trace is said to have failed and why; asked for again it is read; nothing half-done is left",
        measured=f"as promised; said: {problem}",
    )


IMPORTER = """
import sys, time
from pathlib import Path
from clusterscape.ingest.traces import TraceIntake
from clusterscape.settings import StorageSettings
from clusterscape.store.artifacts import FolderArtifactStore
from clusterscape.store.records.engines import record_engine
from clusterscape.store.records.advisory_locks import Leases

def read(paths, folder, progress):
    progress(0.5)
    print("reading", flush=True)
    time.sleep(600)

leases = Leases(record_engine(StorageSettings(records=sys.argv[2])))
store = FolderArtifactStore(Path(sys.argv[1]))
intake = TraceIntake(store, read, clock=lambda: 0, token=lambda: "000001", scratch=Path(sys.argv[1]), leases=leases)
trace = intake.create("of another replica")
intake.put_file(trace.trace_id, "a.json", [b"x"])
intake.start(trace.trace_id)
time.sleep(600)
"""


def test_another_replica_marks_an_import_as_failed_when_the_importing_one_is_killed(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    from clusterscape.runtime.trace_importing import import_files

    records = postgres.new_database()
    store = FolderArtifactStore(tmp_path)
    leases = Leases(record_engine(StorageSettings(records=records)))
    intake = TraceIntake(
        store, import_files, clock=lambda: UnixMs(1), token=lambda: "000002", scratch=tmp_path, leases=leases
    )
    trace = "of-another-000001"
    command = [sys.executable, "-c", IMPORTER, str(tmp_path), records]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "reading\n"
        intake.mark_interrupted()
        assert intake.find(trace).state is TraceState.IMPORTING, "somebody is at it"
        assert intake.start(trace).progress == 0.5, "nobody else begins it"
        postgres.stop()
        postgres.start()
        other.send_signal(signal.SIGKILL)
        other.wait(30)
    wait_until(lambda: leases.is_free(trace))
    intake.mark_interrupted()
    assert intake.find(trace).state is TraceState.FAILED
    for path in RECORDED.glob("ddp_*"):
        intake.put_file(trace, path.name, [path.read_bytes()])
    store.delete(f"traces/{trace}/uploads/a.json")
    intake.start(trace)
    assert intake.wait(trace).state is TraceState.READY
    assert leases.is_free(trace)
    intake.close()
    note(
        "fault",
        what="kill −9 of a replica that reads a trace",
        promised="another replica says that it failed, and reads it when asked to",
        measured="as promised",
    )


def test_next_backup_is_whole_and_nothing_is_left_when_one_is_killed_in_the_middle(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    records = postgres.new_database()
    data = tmp_path / "data"
    storage = StorageSettings(data_dir=data, records=records)
    data.mkdir()
    store = open_record_store(storage)
    store.write_workloads([job(number) for number in range(50)], at_ms=T0)
    store.write_document("views", "mine", {"title": "Mine"}, at_ms=T0)
    store.close()
    FolderArtifactStore(data / "artifacts").put("traces/a/spans.parquet", [b"spans"])
    target = tmp_path / "site.tar"
    environ = {
        **os.environ,
        "CLUSTERSCAPE_STORAGE__DATA_DIR": str(data),
        "CLUSTERSCAPE_STORAGE__RECORDS": records,
        "CLUSTERSCAPE_STORAGE__METRICS": "http://127.0.0.1:9",
    }
    command = [sys.executable, "-m", "clusterscape.cli", "backup", str(target)]
    with psycopg.connect(records) as holder:
        holder.execute("LOCK TABLE workloads IN ACCESS EXCLUSIVE MODE")  # the backup cannot get past it
        with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL) as child:
            wait_until(lambda: bool(list(data.glob(".backup-*/*.gz"))))
            child.send_signal(signal.SIGKILL)
            child.wait(30)
    assert not target.exists(), "half a backup never has its name"
    assert list(data.glob(".backup-*"))
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert read_contents(target).rows["workloads"] == 50
    assert list(data.glob(".backup-*")) == []
    assert list(tmp_path.glob("*.part")) == []
    note(
        "fault",
        what="kill −9 of a backup in the middle",
        promised="no half backup under its name; the next one is whole and tidies up",
        measured="as promised",
    )


def test_a_lease_has_one_holder_when_two_processes_want_it(postgres: PostgresServer) -> None:
    records = StorageSettings(records=postgres.new_database())
    first, second = Leases(record_engine(records)), Leases(record_engine(records))
    assert first.is_free("a")
    assert first.acquire("a")
    assert not second.acquire("a")
    assert not second.is_free("a")
    assert second.acquire("b")
    first.release("a")
    assert second.acquire("a")
    postgres.stop()
    postgres.start()
    begun = time.monotonic()
    while first.is_free("a"):  # held again as soon as its holder looks
        second.is_free("b")
        assert time.monotonic() < begun + 60
    first.close()
    second.close()
