"""A real server under clients that stall and flood: collection goes on, others are answered, the surplus is refused."""

import json
import os
import socket
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from servers.demo import get_json, wait_until
from servers.exporters import node_exporters
from servers.serving import Served, serving

STALLED = 32
"""More than asyncio's default executor has threads, on any machine."""
NODE = {
    "name": "gpu-1",
    "state": "idle",
    "gres": "gpu:a100:8",
    "gres_used": "gpu:a100:0(IDX:N/A)",
    "partitions": ["a100"],
    "cpus": 64,
    "real_memory": 512_000,
}
JOB = {
    "job_state": "PENDING",
    "name": "train",
    "user_name": "alice",
    "account": "nlp",
    "partition": "a100",
    "priority": 12,
    "node_count": 1,
    "tres_per_job": "gres:gpu:8",
    "submit_time": 1_700_000_000,
    "time_limit": 60,
    "state_reason": "Resources",
}


def put_slurm(folder: Path) -> Path:
    """Slurm's commands as scripts; ``squeue`` notes each time that it is asked."""
    folder.mkdir()
    jobs = {"jobs": [{**JOB, "job_id": number} for number in range(1, 20)]}
    documents = {
        "squeue": jobs,
        "nodes": {"nodes": [NODE]},
        "partitions": {"partitions": [{"name": "a100", "nodes": {"configured": "gpu-1"}}]},
        "sacct": {"jobs": []},
    }
    for name, document in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(document))
    scripts = {
        "squeue": f"echo x >> {folder}/asked; cat {folder}/squeue.json",
        "sacct": f"cat {folder}/sacct.json",
        "scontrol": f'for word; do last="$word"; done; [ -f "{folder}/$last.json" ] && cat "{folder}/$last.json" || true',
        "sprio": "exit 1",
    }
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return folder / "asked"


@contextmanager
def site(folder: Path, limits: str) -> Iterator[tuple[Served, Path]]:
    """A server that reads one exporter and Slurm every 0.3 s, and the file that counts questions to Slurm."""
    calls = put_slurm(folder / "slurm")
    with node_exporters(1) as (exporter,):
        config = f"""
        [collect.dcgm]
        targets = ["{exporter.target}"]
        interval_s = 0.3
        [collect.slurm]
        mode = "cli"
        interval_s = 0.3
        [limits.work]
        {limits}
        """
        path = {"PATH": f"{folder / 'slurm'}:{os.environ['PATH']}"}
        with serving(folder, config, environment=path) as server:
            wait_until(lambda: is_collecting(server))
            yield server, calls


def is_collecting(server: Served) -> bool:
    groups = {group["kind"]: group for group in get_json(f"{server.url}/api/v1/sources")["groups"]}
    return {"dcgm", "slurm"} <= set(groups) and all(group["last_at"] is not None for group in groups.values())


def last_reads(server: Served) -> dict[str, int]:
    return {group["kind"]: group["last_at"] or 0 for group in get_json(f"{server.url}/api/v1/sources")["groups"]}


def post(url: str, body: object) -> tuple[int, Any]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=600) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, {"retry_after": error.headers.get("retry-after"), **json.load(error)}


def begin_upload(server: Served, stack: ExitStack, trace: str) -> socket.socket:
    """An upload that sends its head and a few bytes, and nothing more."""
    parts = urlsplit(server.url)
    assert parts.hostname is not None
    client = stack.enter_context(socket.create_connection((parts.hostname, parts.port), timeout=60))
    head = (
        f"PUT /api/v1/traces/{trace}/files/a.json HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Length: 1000000\r\n\r\n"
    )
    client.sendall(head.encode() + b"stalled")
    return client


def test_collection_goes_on_when_uploads_stall(tmp_path: Path) -> None:
    with site(tmp_path, "upload_timeout_s = 3600.0") as (server, calls), ExitStack() as stack:
        _, trace = post(f"{server.url}/api/v1/traces", {"name": "stalled"})
        for _ in range(STALLED):
            begin_upload(server, stack, trace["trace_id"])
        wait_until(lambda: server.own_metric("clusterscape_limited_requests") >= 3)
        rounds, reads = len(calls.read_text()), last_reads(server)
        wait_until(lambda: len(calls.read_text()) >= rounds + 10)
        wait_until(lambda: all(at > reads[kind] for kind, at in last_reads(server).items()))
        assert get_json(f"{server.url}/healthz")["failing"] == []


def test_slot_is_given_back_when_an_upload_stalls(tmp_path: Path) -> None:
    limits = "upload_timeout_s = 0.5\nconcurrent_uploads = 1\nuploads_per_user = 1"
    with site(tmp_path, limits) as (server, _), ExitStack() as stack:
        _, trace = post(f"{server.url}/api/v1/traces", {"name": "stalled"})
        clients = [begin_upload(server, stack, trace["trace_id"]) for _ in range(3)]
        for client in clients:
            assert b" 408 " in client.recv(1000).partition(b"\r\n")[0]
        address = f"{server.url}/api/v1/traces/{trace['trace_id']}/files/b.json"
        request = urllib.request.Request(address, b"{}" * 100_000, method="PUT")
        with urllib.request.urlopen(request, timeout=60) as response:
            assert json.load(response)["size"] == 200_000


def test_others_are_answered_and_the_surplus_is_refused_when_sixty_what_ifs_come(tmp_path: Path) -> None:
    with site(tmp_path, "concurrent_requests = 2\nrequests_per_user = 6\nqueue_timeout_s = 600") as (server, calls):
        wait_until(lambda: len(get_json(f"{server.url}/api/v1/scheduling/queue")["workloads"]) > 0)
        question = {"policy": "sjf", "futures": 60}
        with ThreadPoolExecutor(60) as pool:
            answers = [pool.submit(post, f"{server.url}/api/v1/scheduling/whatif", question) for _ in range(60)]
            wait_until(lambda: any(answer.done() for answer in answers))
            rounds = len(calls.read_text())
            assert get_json(f"{server.url}/healthz")["status"] == "ok"
            assert get_json(f"{server.url}/api/v1/cluster")
            wait_until(lambda: len(calls.read_text()) > rounds)
            codes = Counter(answer.result()[0] for answer in answers)
        assert set(codes) == {200, 429}
        assert codes[200] >= 6
        refused = next(body for code, body in (answer.result() for answer in answers) if code == 429)
        assert int(refused["retry_after"]) > 0
        assert refused["error"]["code"] == "throttled"
        assert refused["error"]["hint"]
        assert server.own_metric("clusterscape_refused_requests_total") == codes[429]
        wait_until(lambda: server.own_metric("clusterscape_limited_requests") == 0)
