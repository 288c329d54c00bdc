"""Sources with too much data: the excess is dropped and counted, known data stays, and memory is bounded."""

import asyncio
import gzip
import json
import os
import stat
import sys
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
from aiohttp import web
from hostile.memory import MIB, measure

from clusterscape.collect.dcgm import DcgmCollector
from clusterscape.collect.exposition import ExpositionParser
from clusterscape.collect.kubernetes.access import Access
from clusterscape.collect.kubernetes.client import KubernetesApiError, KubernetesClient
from clusterscape.collect.kubernetes.reflector import Reflector
from clusterscape.collect.kubernetes.tokens import FixedToken
from clusterscape.collect.prometheus import PrometheusCollector
from clusterscape.collect.range_vectors import SampleReader
from clusterscape.collect.slurm.cli import SlurmCommands
from clusterscape.collect.slurm.parse_jobs import parse_jobs
from clusterscape.collect.slurm.parse_nodes import SlurmInventory
from clusterscape.collect.slurm.rest import SlurmRest
from clusterscape.model import RawScrape, ScrapeObserved, SourceStatus, UnixMs
from clusterscape.settings import DcgmSettings, PrometheusSettings, SlurmSettings
from clusterscape.settings.limits import SourceLimits

NOW = UnixMs(1_700_000_000_000)


def make_bomb(times: int) -> bytes:
    """One gzip stream of ``times`` 16 MiB, without compressing all of it; it lacks its end."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    first = packer.compress(b"0" * 16 * MIB) + packer.flush(zlib.Z_FULL_FLUSH)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    again = packer.compress(b"0" * 16 * MIB) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + again * (times - 1)


BOMB = make_bomb(40)
"""0.6 MB that unpack to 640 MB."""
MOST_MEMORY = 100 * MIB


def gpu_lines(pods: range) -> bytes:
    return b"".join(b'DCGM_FI_DEV_GPU_UTIL{gpu="0",pod="p%d"} 1\n' % pod for pod in pods)


def pods_of(scrape: RawScrape) -> set[str]:
    return {scrape.table.series[code].labels["pod"] for code in scrape.series.tolist()}


# exporters


def test_known_series_stay_when_an_exporter_shows_too_many_new_ones() -> None:
    parser = ExpositionParser("x", limits=SourceLimits(series_per_target=100))
    parser.parse(gpu_lines(range(60)), fetched_at=NOW)
    for turn in range(1, 200):
        # New ones first, as an attacker would send them to evict others.
        scrape = parser.parse(gpu_lines(range(1000 * turn, 1000 * turn + 500)) + gpu_lines(range(60)), fetched_at=NOW)
        assert pods_of(scrape) >= {f"p{pod}" for pod in range(60)}
        assert len(scrape.series) == 100
        assert scrape.malformed == {"too_many_series": 460}
        assert len(scrape.table) < 5_000


def test_lines_stay_in_their_order_when_some_are_new() -> None:
    parser = ExpositionParser("x")
    parser.parse(b'a{gpu="0"} 1\nb{gpu="0"} 2\n', fetched_at=NOW)
    scrape = parser.parse(b'b{gpu="0"} 3\nc{gpu="0"} 4\na{gpu="0"} 5\n', fetched_at=NOW)
    assert [scrape.table.series[code].name for code in scrape.series.tolist()] == ["b", "c", "a"]
    assert scrape.value.tolist() == [3, 4, 5]


def test_lines_and_labels_are_counted_and_dropped_when_too_long() -> None:
    parser = ExpositionParser("x", limits=SourceLimits(line_bytes=1024, label_length=64))
    text = b'a{x="%b"} 1\na{x="%b"} 2\na{x="1"} 3\n' % (b"y" * 2000, b"y" * 100)
    scrape = parser.parse(text, fetched_at=NOW)
    assert scrape.malformed == {"line_too_long": 1, "label_too_long": 1}
    assert scrape.value.tolist() == [3]


def parse_new_labels(scrapes: int) -> int:
    parser = ExpositionParser("x")
    for turn in range(scrapes):
        parser.parse(gpu_lines(range(turn * 20_000, turn * 20_000 + 20_000)), fetched_at=NOW)
    return 0


def test_memory_is_bounded_when_all_labels_are_new_in_every_scrape() -> None:
    few, many = measure(parse_new_labels, 6).peak_bytes, measure(parse_new_labels, 24).peak_bytes
    assert many < few + 40 * MIB


@asynccontextmanager
async def web_server(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def explode(_: web.Request) -> web.StreamResponse:
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    return web.Response(body=BOMB, headers=headers)


async def scrape_status(url: str) -> SourceStatus:
    collector = DcgmCollector(DcgmSettings(targets=(f"{url}/metrics",), jitter_s=0, timeout_s=60), lambda: NOW)
    observations = [observation async for observation in collector.poll(NOW)]
    await collector.close()
    return observations[-1].statuses[0]


def scrape_bomb() -> str | None:
    async def run() -> str | None:
        async with web_server(explode) as url:
            return (await scrape_status(url)).message

    return asyncio.run(run())


def test_exporter_is_refused_when_its_response_unpacks_without_end() -> None:
    cost = measure(scrape_bomb)
    assert "more data than an exporter should" in cost.value
    assert cost.peak_bytes < 32 * MIB + MOST_MEMORY


async def test_the_status_names_the_limit_when_series_are_dropped() -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(body=gpu_lines(range(200)))

    async with web_server(answer) as url:
        settings = DcgmSettings(targets=(f"{url}/metrics",), jitter_s=0, timeout_s=60)
        collector = DcgmCollector(settings, lambda: NOW, limits=SourceLimits(series_per_target=100))
        (status,) = await collector.check()
        await collector.close()
    assert status.is_ok
    assert "more series than the limit" in str(status.message)
    assert "limits.sources.series_per_target" in str(status.hint)


# Prometheus


def range_answer(pods: range, time_s: int = 1_700_000_000) -> bytes:
    return json.dumps(
        {
            "status": "success",
            "data": {
                "resultType": "matrix",
                "result": [
                    {"metric": {"__name__": "m", "pod": f"p{pod}"}, "values": [[time_s, "1"], [time_s + 15, "2"]]}
                    for pod in pods
                ],
            },
        }
    ).encode()


def test_known_series_stay_when_a_prometheus_has_too_many_new_ones() -> None:
    reader = SampleReader(SourceLimits(series=1000))
    reader.read("m", range_answer(range(600)))
    reader.take(source="x", fetched_at=NOW, duration_s=0)
    for turn in range(1, 20):
        time_s = 1_700_000_000 + 60 * turn
        reader.read("m", range_answer(range(10_000 * turn, 10_000 * turn + 2000), time_s))
        reader.read("m", range_answer(range(600), time_s))
        scrape = reader.take(source="x", fetched_at=NOW, duration_s=0)
        assert pods_of(scrape) >= {f"p{pod}" for pod in range(600)}
        assert len(np.unique(scrape.series)) <= 1000
        assert scrape.malformed["too_many_series"] >= 1600


def test_samples_are_reported_once_when_a_table_is_restarted() -> None:
    reader = SampleReader(SourceLimits(series=1000))
    reader.read("m", range_answer(range(600)))
    assert len(reader.take(source="x", fetched_at=NOW, duration_s=0).series) == 1200
    reader.read("m", range_answer(range(2600)))
    assert len(reader.take(source="x", fetched_at=NOW, duration_s=0).series) == 800
    reader.read("m", range_answer(range(600)))
    assert len(reader.take(source="x", fetched_at=NOW, duration_s=0).series) == 0


def read_prometheus_bomb() -> str | None:
    async def run() -> str | None:
        async with web_server(explode) as url:
            limits = SourceLimits(response_bytes=8 * MIB)
            collector = PrometheusCollector(PrometheusSettings(url=url), lambda: NOW, limits=limits)
            observations = [observation async for observation in collector.poll(NOW)]
            await collector.close()
            assert isinstance(observations[0], ScrapeObserved)
            return f"{observations[0].statuses[0].message} {observations[0].statuses[0].hint}"

    return asyncio.run(run())


def test_prometheus_is_refused_when_its_response_unpacks_without_end() -> None:
    cost = measure(read_prometheus_bomb)
    assert "limits.sources.response_bytes" in cost.value
    assert cost.peak_bytes < MOST_MEMORY


async def test_responses_are_read_when_they_are_compressed() -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        body = gzip.compress(b'{"status": "success", "data": ["DCGM_FI_DEV_GPU_UTIL"]}')
        return web.Response(body=body, headers={"Content-Encoding": "gzip"})

    async with web_server(answer) as url:
        collector = PrometheusCollector(PrometheusSettings(url=url), lambda: NOW)
        assert await collector._fetch_names(NOW) == ["DCGM_FI_DEV_GPU_UTIL"]
        await collector.close()


# Slurm


def write_command(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)


def ask_endless_squeue(folder: str) -> None:
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
    commands = SlurmCommands(SlurmSettings(mode="cli", timeout_s=60), SourceLimits(response_bytes=8 * MIB))
    asyncio.run(commands.fetch_jobs())


def test_command_is_ended_when_it_prints_without_end(tmp_path: Path) -> None:
    write_command(tmp_path, "squeue", "import sys\nwhile True: sys.stdout.write('x' * 2**20)")
    began = time.monotonic()
    cost = measure(ask_endless_squeue, str(tmp_path))
    assert "squeue --json" in str(cost.error)
    assert "limits.sources.response_bytes" in str(cost.error)
    assert cost.peak_bytes < MOST_MEMORY
    assert time.monotonic() - began < 60


def ask_exploding_slurmrestd() -> None:
    async def run() -> None:
        async with web_server(explode) as url:
            rest = SlurmRest(SlurmSettings(mode="rest", url=url), lambda: NOW, SourceLimits(response_bytes=8 * MIB))
            try:
                await rest.fetch_nodes()
            finally:
                await rest.close()

    asyncio.run(run())


def test_slurmrestd_is_refused_when_its_response_unpacks_without_end() -> None:
    cost = measure(ask_exploding_slurmrestd)
    assert "limits.sources.response_bytes" in str(cost.error)
    assert cost.peak_bytes < MOST_MEMORY


def test_the_newest_arrays_are_left_out_when_a_queue_has_too_many_tasks() -> None:
    jobs = [
        {"job_id": number, "array_job_id": number, "array_task_string": "0-999", "job_state": ["PENDING"]}
        for number in range(1, 101)
    ]
    parsed = parse_jobs({"jobs": jobs}, SlurmInventory(), NOW, 5_000)
    assert len(parsed.workloads) == 5_000
    assert parsed.dropped == {"jobs: too many workloads": 95}
    assert not parsed.is_complete  # a job that is not listed may still be active


# Kubernetes


def pod(name: str) -> dict[str, object]:
    return {"metadata": {"uid": name, "name": name}}


class PodServer:
    """An API server with pods, which are listed in one page; its watches send ``events`` and stay open."""

    def __init__(self) -> None:
        self.pods = [pod(f"old-{number}") for number in range(50)]
        self.events: list[dict[str, object]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.json_response({"items": self.pods, "metadata": {"resourceVersion": "1"}})
        response = web.StreamResponse()
        await response.prepare(request)
        for event in self.events:
            await response.write(json.dumps(event).encode() + b"\n")
        return response


def kubernetes_client(url: str, limits: SourceLimits | None = None) -> KubernetesClient:
    return KubernetesClient(Access(url=url, token=FixedToken(None), tls=None), 20.0, lambda: NOW, limits=limits)


async def test_known_pods_stay_when_an_api_server_has_too_many_new_ones() -> None:
    server = PodServer()
    async with web_server(server.answer) as url:
        client = kubernetes_client(url)
        reflector = Reflector(client, "/api/v1/pods", lambda item: str(item), max_objects=100)
        await reflector._list()
        assert len(reflector.facts) == 50
        server.pods = [pod(f"new-{number}") for number in range(500)] + server.pods
        server.events = [{"type": "ADDED", "object": pod(f"newest-{number}")} for number in range(50)]
        await reflector._list()
        await reflector._follow()
        await client.close()
    assert len(reflector.facts) == 100
    assert {f"old-{number}" for number in range(50)} <= reflector.facts.keys()
    assert reflector.is_full
    assert reflector.dropped == {"/api/v1/pods: too many objects": 500}


def list_exploding_pods() -> None:
    async def run() -> None:
        async with web_server(explode) as url:
            client = kubernetes_client(url, SourceLimits(response_bytes=8 * MIB))
            try:
                await client.get("/api/v1/pods")
            finally:
                await client.close()

    asyncio.run(run())


def test_api_server_is_refused_when_its_response_unpacks_without_end() -> None:
    cost = measure(list_exploding_pods)
    assert "limits.sources.response_bytes" in str(cost.error)
    assert cost.peak_bytes < MOST_MEMORY


async def test_trailing_bytes_are_ignored_when_a_compressed_response_has_ended() -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        body = gzip.compress(b'{"items": [], "metadata": {}}') + b"more" * 100_000
        return web.Response(body=body, headers={"Content-Encoding": "gzip"})

    async with web_server(answer) as url:
        client = kubernetes_client(url)
        assert await client.get("/api/v1/pods") == {"items": [], "metadata": {}}
        await client.close()


@pytest.mark.parametrize("encoding", ["br", "gzip, gzip"])
async def test_encoding_is_refused_when_it_was_not_requested(encoding: str) -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(body=b"x", headers={"Content-Encoding": encoding})

    async with web_server(answer) as url:
        client = kubernetes_client(url)
        with pytest.raises(KubernetesApiError, match="cannot decompress"):
            await client.get("/api/v1/pods")
        await client.close()
        assert not (await scrape_status(url)).is_ok
