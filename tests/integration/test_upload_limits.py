"""A real server that is sent files which would take its memory or its disk: it refuses them, and goes on collecting."""

import gzip
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hostile.memory import MIB
from servers.demo import get_json, wait_until
from servers.exporters import node_exporters
from servers.serving import Served, serving

SWF_LINE = b"1 0 5 100 4 -1 -1 4 200 -1 1 7 3 -1 1 -1 -1 -1\n"
SWF = b"; MaxProcs: 8\n" + SWF_LINE


@contextmanager
def site(folder: Path, limits: str = "") -> Iterator[Served]:
    """A server that reads one exporter every 0.3 s."""
    with node_exporters(1) as (exporter,):
        config = f"""
        [collect.dcgm]
        targets = ["{exporter.target}"]
        interval_s = 0.3
        [limits.uploads]
        {limits}
        """
        with serving(folder, config) as server:
            wait_until(lambda: samples(server) > 0)
            yield server


def samples(server: Served) -> int:
    return int(get_json(f"{server.url}/api/v1/sources")["samples_total"])


def check_collecting(server: Served) -> None:
    before = samples(server)
    wait_until(lambda: samples(server) > before)
    assert get_json(f"{server.url}/api/v1/sources")["paused"] is None


def send(server: Served, path: str, body: bytes, method: str = "POST") -> tuple[int, dict[str, object]]:
    request = urllib.request.Request(f"{server.url}/api/v1/{path}", body, method=method)
    if path == "traces":
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=300) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)["error"]


def memory_of(server: Served) -> int:
    """The most that the process ever had."""
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def test_a_file_that_unpacks_to_a_thousand_times_its_size_takes_no_memory_of_the_server(tmp_path: Path) -> None:
    with site(tmp_path) as server:
        assert send(server, "job-traces?name=small.swf", SWF)[0] == 201
        before = memory_of(server)
        bomb = gzip.compress(SWF_LINE * 300_000) * 100  # 1.4 GB
        status, problem = send(server, "job-traces?name=bomb.swf.gz", bomb)
        assert (status, problem["code"]) == (413, "too_large")
        assert "limits.uploads.decompression_ratio" in str(problem["hint"])
        assert str(tmp_path) not in json.dumps(problem)
        assert memory_of(server) < before + 400 * MIB
        assert [trace["name"] for trace in get_json(f"{server.url}/api/v1/job-traces")["traces"][1:]] == ["small"]
        check_collecting(server)


def test_uploads_stop_and_collection_goes_on_when_the_disk_is_nearly_full(tmp_path: Path) -> None:
    with site(tmp_path, f"min_free_bytes = {2**60}") as server:
        status, problem = send(server, "job-traces?name=a.swf", SWF)
        assert (status, problem["code"]) == (507, "quota")
        trace = send(server, "traces", b'{"name": "x"}')[1]["trace_id"]
        status, problem = send(server, f"traces/{trace}/files/rank0.json", b"{}", "PUT")
        assert (status, problem["code"]) == (507, "quota")
        assert "limits.uploads.min_free_bytes" in str(problem["hint"])
        check_collecting(server)


def test_uploads_have_a_number_and_a_size(tmp_path: Path) -> None:
    with site(tmp_path, f"stored_traces = 3\nstored_bytes = {MIB}\njob_trace_bytes = {4 * MIB}") as server:
        assert send(server, "job-traces?name=a.swf", SWF)[0] == 201
        trace = send(server, "traces", b'{"name": "x"}')[1]["trace_id"]
        status, problem = send(server, f"traces/{trace}/files/rank0.json", b"x" * 2 * MIB, "PUT")
        assert (status, problem["code"]) == (507, "quota")
        assert send(server, "job-traces?name=b.swf", SWF * 100_000)[0] == 413
        assert send(server, "job-traces?name=b.swf", SWF)[0] == 201
        status, problem = send(server, "traces", b'{"name": "y"}')
        assert (status, problem["code"]) == (507, "quota")
        assert "limits.uploads.stored_traces" in str(problem["hint"])
        assert server.own_metric("clusterscape_upload_bytes") > MIB  # stored and limit
        urllib.request.urlopen(
            urllib.request.Request(f"{server.url}/api/v1/traces/{trace}", method="DELETE"), timeout=60
        ).close()
        assert send(server, "traces", b'{"name": "y"}')[0] == 201
        check_collecting(server)
