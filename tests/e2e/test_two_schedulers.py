"""One page for a real Slurm and a Kubernetes (the stand-in) at once: partitions, queue, and holders of GPUs with their source."""

import json
import os
import re
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
from clusters.kubernetes_objects import (
    KUEUE,
    RUNNING,
    cluster_queue,
    condition,
    flavor,
    job,
    kueue_workload,
    local_queue,
    node,
    pod,
)
from playwright.sync_api import Page, expect
from servers.demo import get_json, wait_until
from servers.kubernetes import stand_in
from servers.kubernetes_api import Api
from servers.slurm import slurm_server

pytestmark = [pytest.mark.browser, pytest.mark.server]

IS_FOR_DOCS = bool(os.environ.get("CLUSTERSCAPE_SCREENSHOTS"))
FOLDER = Path(__file__).parents[2] / "docs/images" if IS_FOR_DOCS else Path(__file__).parent / "output"
SLOW_MS = 120_000
QUOTA = "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor h100, 8 more needed"


class Exporter(BaseHTTPRequestHandler):
    """dcgm-exporter of k8s-1 with its Kubernetes mapping on: GPU 5 is held by a pod of the half node's job."""

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        rows = []
        for index in range(8):
            holder = 'namespace="team-a",pod="tune-0",container="main"' if index == 5 else ""
            labels = f'gpu="{index}",UUID="GPU-{index}",modelName="NVIDIA H100 80GB HBM3",Hostname="k8s-1",{holder}'
            rows.append(f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} {90 if holder else 0}")
        data = ("# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n" + "\n".join(rows) + "\n").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def exporter() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join(timeout=10)


def fill(api: Api) -> None:
    """Two nodes, a job on one GPU of the first, a job on all of the second, and one that Kueue holds back."""
    api.create(node("k8s-1"))
    api.create(node("k8s-2"))
    api.install(KUEUE)
    api.create(flavor("h100", {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}))
    api.create(cluster_queue("llm", 9, "h100", used=9, pending=1))
    api.create(local_queue("main", "team-a", "llm"))
    labels = {"kueue.x-k8s.io/queue-name": "main", "user": "grace"}
    for name, gpus, place in (("tune", 1, "k8s-1"), ("pretrain", 8, "k8s-2")):
        owner = api.create(job(name, gpus=gpus, labels=labels))
        api.set_status(api.create(pod(f"{name}-0", gpus=gpus, owner=owner, nodeName=place)), RUNNING)
    held = api.create(job("evaluate", labels=labels | {"user": "ada"}, suspend=True))
    api.create(kueue_workload(held, queue="main", conditions=[condition("QuotaReserved", "False", "Pending", QUOTA)]))


@pytest.fixture(scope="module")
def demo_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("both")
    with slurm_server(accounting=False) as slurm, stand_in() as state, exporter() as port:
        running = slurm.submit("-p", "a100", "--gpus=8", "-N1", "--job-name=simulate")
        slurm.wait_for_state(running, "RUNNING")
        slurm.submit("-p", "a100", "--gpus=24", "-N3", "--exclusive", "--job-name=large", "-t", "60")
        fill(Api(state.url, "secret"))
        config = folder / "site.toml"
        config.write_text(
            f'cluster = "both"\n[storage]\ndata_dir = "{folder}/data"\n'
            f'[collect.slurm]\nmode = "cli"\nconf = "{slurm.conf}"\nhistory_days = 0\ninterval_s = 1\n'
            f'[collect.kubernetes]\nmode = "url"\nurl = "{state.url}"\ntoken = "secret"\ninterval_s = 1\n'
            f'[collect.dcgm]\ntargets = ["http://127.0.0.1:{port}/metrics#k8s-1"]\ninterval_s = 1\n'
        )
        with serving(config, folder) as url:
            wait_until(lambda: {row["workload"].partition(":")[0] for row in queue(url)} == {"slurm", "kubernetes"})
            wait_until(lambda: len(held_units(url)) >= 17)
            yield url
        slurm.cancel_all()


@contextmanager
def serving(config: Path, folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "clusterscape.cli", "serve", "--config", str(config), "--port", "0", "--json"]
    with (folder / "serve.log").open("wb") as log:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
    try:
        assert child.stdout is not None
        text = ""
        while "}" not in text:
            line = child.stdout.readline().decode()
            assert line, (folder / "serve.log").read_text()
            text += line
        yield json.loads(text)["url"]
    finally:
        child.send_signal(signal.SIGINT)
        child.wait(timeout=60)
        assert child.stdout is not None
        child.stdout.close()


def queue(url: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = get_json(f"{url}/api/v1/scheduling/queue")["workloads"]
    return rows


def held_units(url: str) -> dict[str, str]:
    """Source of the allocation, by unit."""
    held: dict[str, str] = {}
    for row in get_json(f"{url}/api/v1/workloads?state=running")["workloads"]:
        detail = get_json(f"{url}/api/v1/workloads/{row['workload']}")
        held.update((span["unit"], span["source"]) for span in detail["allocations"] if span["to_at"] is None)
    return held


def test_holders_come_from_each_schedulers_best_source_when_both_are_read(demo_url: str) -> None:
    sources = held_units(demo_url)
    assert sources["k8s-1:5"] == "exporter_label"
    assert [sources[f"k8s-2:{index}"] for index in range(8)] == ["whole_node"] * 8
    assert sum(unit.startswith("gpu0") for unit in sources) == 8
    summary = get_json(f"{demo_url}/api/v1/cluster")
    assert {"a100", "v100", "k8s/llm"} <= {partition["name"] for partition in summary["partitions"]}
    assert (summary["nodes"], summary["failing_sources"]) == (6, 0)


def test_one_page_shows_both_when_the_overview_and_the_queue_are_opened(page: Page) -> None:
    FOLDER.mkdir(exist_ok=True)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto("/?picture=projects-by-partition")
    picture = page.get_by_role("application", name="Picture of all units")
    expect(picture).to_have_attribute("data-unit-count", re.compile(r"[1-9]\d*"), timeout=SLOW_MS)
    expect(page.get_by_text("k8s/llm").first).to_be_visible()
    page.wait_for_timeout(1500)  # lazily loaded parts have arrived
    page.screenshot(path=FOLDER / "two-schedulers-overview.png")

    page.goto("/scheduling")
    table = page.get_by_role("grid", name="Waiting workloads")
    expect(table).to_be_visible(timeout=SLOW_MS)
    expect(table.get_by_text("k8s team-a/evaluate")).to_be_visible()
    expect(table.get_by_text("large")).to_be_visible()
    page.screenshot(path=FOLDER / "two-schedulers-queue.png")
    table.get_by_role("row", name=re.compile("evaluate")).click()
    details = page.get_by_role("complementary", name="Details")
    expect(details.get_by_text("Waits until its Kueue queue has quota for it.")).to_be_visible(timeout=SLOW_MS)
