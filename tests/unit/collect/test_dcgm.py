"""The DCGM collector against real HTTP servers on loopback, correct and faulty ones."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web
from servers.programs import free_port

from clusterscape.collect.contract import Collector
from clusterscape.collect.dcgm import MAX_BACKOFF_INTERVALS, DcgmCollector
from clusterscape.model import ScrapeObserved, SourceStatus, UnixMs
from clusterscape.settings import DcgmSettings
from clusterscape.settings.limits import SourceLimits

NOW = UnixMs(1_700_000_000_000)
INTERVAL_MS = 15_000


def text_of(node: str, value: float = 50) -> str:
    return f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",Hostname="{node}"}} {value}\n'


@dataclass
class Exporters:
    """One server for many exporters, one path each; ``answers`` has the response of each path."""

    port: int = 0
    answers: dict[str, Callable[[web.Request], Awaitable[web.StreamResponse]]] = field(default_factory=dict)
    requested: list[str] = field(default_factory=list)

    def url(self, node: str) -> str:
        return f"http://127.0.0.1:{self.port}/{node}/metrics#{node}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        node = request.match_info["node"]
        self.requested.append(node)
        if node in self.answers:
            return await self.answers[node](request)
        return web.Response(text=text_of(node))


@pytest.fixture
async def exporters() -> AsyncIterator[Exporters]:
    exporters = Exporters()
    app = web.Application()
    app.router.add_get("/{node}/metrics", exporters.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    exporters.port = runner.addresses[0][1]
    yield exporters
    await runner.cleanup()


@asynccontextmanager
async def raw_server(
    talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def collector_of(*targets: str, **options: object) -> AsyncIterator[DcgmCollector]:
    settings = DcgmSettings.model_validate({"targets": targets, "jitter_s": 0, "timeout_s": 20, **options})
    collector = DcgmCollector(settings, lambda: NOW)
    try:
        yield collector
    finally:
        await collector.close()


async def poll(collector: DcgmCollector, now_ms: int = NOW) -> ScrapeObserved:
    """A whole round, merged from any number of observations."""
    observations = [observation async for observation in collector.poll(UnixMs(now_ms))]
    return ScrapeObserved(
        at=observations[-1].at,
        scrapes=[scrape for observation in observations for scrape in observation.scrapes],
        statuses=[status for observation in observations for status in observation.statuses],
    )


async def only_status(collector: DcgmCollector) -> SourceStatus:
    (status,) = (await poll(collector)).statuses
    return status


async def test_every_target_is_scraped_when_all_are_healthy(exporters: Exporters) -> None:
    nodes = [f"gpu-{number:03d}" for number in range(40)]
    async with collector_of(*map(exporters.url, nodes), concurrency=8, jitter_s=0.05) as collector:
        first = await poll(collector)
        second = await poll(collector)

    for observation in (first, second):
        assert sorted(str(scrape.node) for scrape in observation.scrapes) == nodes
        assert {scrape.value.tolist()[0] for scrape in observation.scrapes} == {50.0}
        assert all(status.is_ok and status.message is None for status in observation.statuses)
    assert first.statuses[0].source.startswith("dcgm http://127.0.0.1")
    assert sorted(exporters.requested) == sorted(nodes * 2)


def test_collector_keeps_the_contract_when_checked() -> None:
    collector: Collector = DcgmCollector(DcgmSettings(targets=("gpu-001",)), lambda: NOW)

    assert collector.name == "dcgm"
    assert collector.interval_s == 15.0


async def test_live_targets_are_observed_first_when_another_never_responds(exporters: Exporters) -> None:
    release = asyncio.Event()

    async def hang(_: web.Request) -> web.StreamResponse:
        await release.wait()
        return web.Response(text=text_of("slow"))

    exporters.answers["slow"] = hang
    urls = [exporters.url("gpu-001"), exporters.url("slow"), exporters.url("gpu-002")]
    async with collector_of(*urls) as collector:
        rounds = collector.poll(NOW)
        first = await anext(rounds)
        assert not release.is_set()
        release.set()
        second = await anext(rounds)
        await rounds.aclose()

    assert [scrape.node for scrape in first.scrapes] == ["gpu-001", "gpu-002"]
    assert [scrape.node for scrape in second.scrapes] == ["slow"]


async def test_slots_are_released_when_dead_targets_hold_them_all(exporters: Exporters) -> None:
    async def hang(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        raise AssertionError

    dead = [f"dead-{number}" for number in range(4)]
    exporters.answers = dict.fromkeys(dead, hang)
    async with collector_of(
        *map(exporters.url, [*dead, "gpu-001"]), concurrency=4, timeout_s=60, jitter_s=0.5
    ) as collector:
        rounds = collector.poll(NOW)
        first = await anext(rounds)
        await rounds.aclose()

    assert [scrape.node for scrape in first.scrapes] == ["gpu-001"]


async def test_failing_target_is_backed_off_when_it_stays_down(exporters: Exporters) -> None:
    async def fail(_: web.Request) -> web.StreamResponse:
        return web.Response(status=500)

    exporters.answers["bad"] = fail
    async with collector_of(exporters.url("bad"), exporters.url("good"), interval_s=INTERVAL_MS / 1000) as collector:
        scraped_rounds = []
        for number in range(40):
            exporters.requested.clear()
            observed = await poll(collector, NOW + number * INTERVAL_MS)
            assert [scrape.node for scrape in observed.scrapes] == ["good"]
            if "bad" in exporters.requested:
                scraped_rounds.append(number)
                assert [status.node for status in observed.statuses if not status.is_ok] == ["bad"]
        del exporters.answers["bad"]
        for number in range(40, 40 + MAX_BACKOFF_INTERVALS):
            await poll(collector, NOW + number * INTERVAL_MS)
        exporters.requested.clear()
        recovered = await poll(collector, NOW + 100 * INTERVAL_MS)

    gaps = [later - earlier for earlier, later in itertools.pairwise(scraped_rounds)]
    assert gaps[:4] == [1, 2, 4, 8]
    assert max(gaps) == MAX_BACKOFF_INTERVALS
    assert sorted(exporters.requested) == ["bad", "good"]
    assert all(status.is_ok for status in recovered.statuses)


async def test_message_names_the_remedy_when_nothing_listens() -> None:
    async with collector_of(f"http://127.0.0.1:{free_port()}/metrics#gpu-017") as collector:
        status = await only_status(collector)

    assert not status.is_ok
    assert status.node == "gpu-017"
    assert "refused the connection" in str(status.message)
    assert status.hint == "Start dcgm-exporter on gpu-017 or remove it from collect.dcgm.targets."


async def test_message_names_the_host_when_it_does_not_resolve() -> None:
    async with collector_of("no-such-host.invalid:9400") as collector:
        status = await only_status(collector)

    assert "cannot resolve the host name no-such-host.invalid" in str(status.message)
    assert "DNS" in str(status.hint)


async def test_message_names_the_time_out_when_a_target_is_silent() -> None:
    async def silence(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with raw_server(silence) as port, collector_of(f"http://127.0.0.1:{port}", timeout_s=0.5) as collector:
        status = await only_status(collector)

    assert "did not respond within 0.5 s" in str(status.message)
    assert "firewall" in str(status.hint)


@pytest.mark.parametrize(
    ("http_status", "word"),
    [(404, "full URL"), (500, "log"), (503, "log"), (401, "password"), (418, "program other than dcgm-exporter")],
)
async def test_hint_matches_when_the_response_is_an_http_error(
    exporters: Exporters, http_status: int, word: str
) -> None:
    async def fail(_: web.Request) -> web.StreamResponse:
        return web.Response(status=http_status)

    exporters.answers["gpu-001"] = fail
    async with collector_of(exporters.url("gpu-001")) as collector:
        status = await only_status(collector)

    assert f"HTTP {http_status}" in str(status.message)
    assert word in str(status.hint)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html><body>Welcome</body></html>\n", "not in the Prometheus text format"),
        (b"\x00\xff\xfe" * 100 + b"\n", "not in the Prometheus text format"),
        (b"", "without samples"),
        (b"# HELP a nothing\n", "without samples"),
    ],
)
async def test_status_reports_it_when_a_response_has_no_samples(
    exporters: Exporters, body: bytes, message: str
) -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body)

    exporters.answers["gpu-001"] = answer
    async with collector_of(exporters.url("gpu-001")) as collector:
        status = await only_status(collector)

    assert message in str(status.message)


async def test_samples_are_kept_when_only_some_lines_are_damaged(exporters: Exporters) -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(text=text_of("gpu-001") + "%%%\n")

    exporters.answers["gpu-001"] = answer
    async with collector_of(exporters.url("gpu-001")) as collector:
        observation = await poll(collector)

    assert observation.statuses[0].is_ok
    assert observation.scrapes[0].malformed == {"malformed_line": 1}


async def test_response_is_refused_when_it_is_endless(exporters: Exporters) -> None:
    async def pour(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(2 * SourceLimits().scrape_bytes // 2**20):
            await response.write(b"#" * 2**20)
        return response

    async def announce(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(2 * SourceLimits().scrape_bytes)})
        await response.prepare(request)
        await asyncio.sleep(60)
        return response

    exporters.answers = {"pouring": pour, "announcing": announce}
    async with collector_of(exporters.url("pouring"), exporters.url("announcing")) as collector:
        statuses = (await poll(collector)).statuses

    assert [("more data" in str(status.message)) for status in statuses] == [True, True]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nDCGM_FI_DEV_GPU_UTIL", "before the response was complete"),
        (b"", "before the response was complete"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "valid HTTP response"),
    ],
)
async def test_message_is_plain_when_the_connection_breaks_or_is_no_http(answer: bytes, message: str) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()

    async with raw_server(talk) as port, collector_of(f"http://127.0.0.1:{port}") as collector:
        status = await only_status(collector)

    assert message in str(status.message)
    assert status.hint


async def test_target_list_is_followed_when_its_file_changes(exporters: Exporters, tmp_path: Path) -> None:
    path = tmp_path / "targets"
    path.write_text(exporters.url("gpu-001") + "\n")
    async with collector_of(targets_file=path) as collector:
        await poll(collector)
        path.write_text(exporters.url("gpu-002") + "\nnonsense here\n")
        broken = await poll(collector)
        path.write_text(exporters.url("gpu-002") + "\n")
        recovered_list = await poll(collector)
        quiet = await poll(collector)

    assert exporters.requested == ["gpu-001", "gpu-002", "gpu-002", "gpu-002"]
    assert [status.is_ok for status in broken.statuses] == [False, True]
    assert "line 2" in str(broken.statuses[0].message)
    assert [status.is_ok for status in recovered_list.statuses] == [True, True]
    assert len(quiet.statuses) == 1


async def test_status_reports_it_when_there_is_no_target(tmp_path: Path) -> None:
    path = tmp_path / "targets"
    path.write_text("# none yet\n")
    async with collector_of(targets_file=path) as collector:
        observation = await poll(collector)

    assert [status.is_ok for status in observation.statuses] == [False]


async def test_check_queries_all_targets_concurrently_when_some_are_down(exporters: Exporters) -> None:
    down = f"http://127.0.0.1:{free_port()}/metrics#gpu-002"
    async with collector_of(exporters.url("gpu-001"), down, jitter_s=30) as collector:
        statuses = await collector.check()

    assert [(status.node, status.is_ok) for status in statuses] == [("gpu-001", True), ("gpu-002", False)]


async def test_exporter_is_read_again_when_it_was_restarted(exporters: Exporters) -> None:
    async def stop_keeping_alive(_: web.Request) -> web.StreamResponse:
        response = web.Response(text=text_of("gpu-001", 70))
        response.force_close()
        return response

    async with collector_of(exporters.url("gpu-001")) as collector:
        first = await poll(collector)
        exporters.answers["gpu-001"] = stop_keeping_alive
        second = await poll(collector)
        third = await poll(collector)

    assert [observation.scrapes[0].value.tolist() for observation in (first, second, third)] == [[50.0], [70.0], [70.0]]
