"""``clusterscape serve`` as a site runs it: a real Slurm, a real HTTP exporter, and the answers of its API."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from servers.demo import get_json, wait_until
from servers.postgres import postgres_server
from servers.slurm import SlurmServer, slurm_server
from servers.victoria import run_victoria

pytestmark = pytest.mark.server

METRICS = """# TYPE DCGM_FI_DEV_GPU_UTIL gauge
{rows}
"""


@contextmanager
def exporter(node: str, gpus: int) -> Iterator[str]:
    """An exporter of one node whose GPU i is (10 + i) % busy."""
    rows = "\n".join(
        f'DCGM_FI_DEV_GPU_UTIL{{gpu="{i}",UUID="GPU-{node}-{i}",modelName="NVIDIA A100-SXM4-80GB",Hostname="{node}"}} {10 + i}'
        for i in range(gpus)
    )
    body = METRICS.format(rows=rows).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/metrics#{node}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def serving(folder: Path, config: str, *, stop: signal.Signals = signal.SIGTERM) -> Iterator[str]:
    """The address of a running ``clusterscape serve``; ``stop`` ends it, and it reports success."""
    (folder / "clusterscape.toml").write_text(config)
    command = [sys.executable, "-m", "clusterscape.cli", "serve", "--port", "0", "--json"]
    with (folder / "serve.log").open("wb") as log:
        child = subprocess.Popen(
            [*command, "--config", str(folder / "clusterscape.toml")], stdout=subprocess.PIPE, stderr=log
        )
        assert child.stdout is not None
        try:
            text = ""
            while not text.rstrip().endswith("}"):
                line = child.stdout.readline().decode()
                assert line, (folder / "serve.log").read_text()
                text += line
            yield json.loads(text)["url"]
        finally:
            child.send_signal(stop)
            assert child.wait(timeout=60) == 0, (folder / "serve.log").read_text()
            child.stdout.close()


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmServer]:
    with slurm_server(accounting=False) as server:
        yield server


@pytest.fixture(params=["embedded", "servers"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Lines of the section [storage]: nothing to install, or VictoriaMetrics and PostgreSQL."""
    if request.param == "embedded":
        yield ""
        return
    with run_victoria(tmp_path / "victoria") as victoria, postgres_server() as postgres:
        yield f'metrics = "{victoria.url}"\nrecords = "{postgres.new_database()}"'


def held_units(url: str, job: int) -> list[str]:
    detail: Any = get_json(f"{url}/api/v1/workloads/slurm:{job}")
    return sorted(allocation["unit"] for allocation in detail["allocations"] if allocation["to_at"] is None)


def test_api_says_who_holds_which_gpu_and_how_well_when_slurm_and_an_exporter_are_read(
    slurm: SlurmServer, storage: str, tmp_path: Path
) -> None:
    node = slurm.node_names[0]
    with exporter(node, 8) as target:
        config = f"""
cluster = "real"
[storage]
data_dir = "{tmp_path}/data"
{storage}
[collect.slurm]
mode = "cli"
conf = "{slurm.conf}"
interval_s = 1
history_days = 0
[collect.dcgm]
targets = ["{target}", "http://127.0.0.1:9/metrics#{slurm.node_names[1]}"]
interval_s = 1
jitter_s = 0
"""
        with serving(tmp_path, config) as url:
            wait_until(lambda: get_json(f"{url}/api/v1/cluster")["units"]["total"] == 28, 60)
            job = slurm.submit("-N1", "-w", node, "--gpus=3", "-c1")
            slurm.wait_for_state(job, "RUNNING")
            wait_until(lambda: get_json(f"{url}/api/v1/cluster")["units"]["allocated"] == 3, 60)
            assert held_units(url, job) == [f"{node}:{i}" for i in range(3)]
            wait_until(lambda: get_json(f"{url}/api/v1/cluster")["gpu_util_ratio"] is not None, 60)
            assert get_json(f"{url}/api/v1/cluster")["gpu_util_ratio"] == pytest.approx(0.11)
            (failing,) = [g for g in get_json(f"{url}/api/v1/sources")["groups"] if g["failing"]]
            assert (failing["kind"], failing["failures"][0]["node"]) == ("dcgm", slurm.node_names[1])
            slurm.cancel_all()
            wait_until(lambda: get_json(f"{url}/api/v1/cluster")["units"]["allocated"] == 0, 60)
            ended = get_json(f"{url}/api/v1/workloads/slurm:{job}")
            assert ended["workload"]["state"] in ("cancelled", "unknown")
            assert all(allocation["to_at"] for allocation in ended["allocations"]), "who held what is kept"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_server_ends_its_threads_and_closes_its_stores_when_it_is_stopped(
    tmp_path: Path, number: signal.Signals
) -> None:
    config = 'cluster = "stopped"\n[collect.dcgm]\ntargets = ["http://127.0.0.1:9/metrics"]\n'
    with serving(tmp_path, f'{config}[storage]\ndata_dir = "{tmp_path}/data"\n', stop=number) as url:
        wait_until(lambda: get_json(f"{url}/healthz") is not None, 60)
    assert "failed" not in (tmp_path / "serve.log").read_text()
