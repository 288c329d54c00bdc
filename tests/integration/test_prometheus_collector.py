"""The prometheus collector against a real Prometheus that scrapes a real exporter, and against a real VictoriaMetrics."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator

import aiohttp
import pytest
import pytest_asyncio
from servers.programs import free_port
from servers.prometheus import Exporter, exporter, prometheus_server
from servers.victoria import run_victoria

from clusterscape.collect.prometheus import PrometheusCollector
from clusterscape.model import RawScrape, ScrapeObserved, SourceStatus, UnixMs
from clusterscape.settings import PrometheusSettings

pytestmark = pytest.mark.server

OPEN_SESAME = "$2b$04$aJwBqDphqA6j8Q8jq2FGW.2M0E5087AzwibXePuVat5Qxl5q9tR4."  # bcrypt of "open-sesame"
MakeCollector = Callable[..., PrometheusCollector]


def exposition(util: float) -> str:
    lines = ["# TYPE DCGM_FI_DEV_GPU_UTIL gauge", "# TYPE DCGM_FI_DEV_POWER_USAGE gauge", "go_goroutines 7"]
    for gpu in range(4):
        labels = (
            f'gpu="{gpu}",UUID="GPU-{gpu}",device="nvidia{gpu}",modelName="NVIDIA H200",Hostname="n1",hpc_job="{gpu}"'
        )
        lines += [
            f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} {util + gpu}",
            f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} {500.5 + gpu}",
        ]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def dcgm() -> Iterator[Exporter]:
    with exporter(exposition(10)) as running:
        yield running


@pytest.fixture(scope="module")
def prometheus(dcgm: Exporter) -> Iterator[str]:
    with prometheus_server([dcgm.target]) as url:
        yield url


@pytest.fixture(scope="module")
def victoria(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with run_victoria(tmp_path_factory.mktemp("victoria")) as server:
        yield server.url


@pytest_asyncio.fixture
async def collector_of() -> AsyncIterator[MakeCollector]:
    opened: list[PrometheusCollector] = []

    def make(url: str, **settings: object) -> PrometheusCollector:
        opened.append(PrometheusCollector(PrometheusSettings(url=url, **settings), now))
        return opened[-1]

    yield make
    for collector in opened:
        await collector.close()


def now() -> UnixMs:
    return UnixMs(time.time_ns() // 1_000_000)


async def poll(collector: PrometheusCollector) -> tuple[RawScrape | None, SourceStatus]:
    observations = [observation async for observation in collector.poll(now())]
    assert len(observations) == 1
    assert isinstance(observations[0], ScrapeObserved)
    (status,) = observations[0].statuses
    return (observations[0].scrapes[0] if observations[0].scrapes else None), status


async def poll_until_rows(collector: PrometheusCollector, least: int) -> RawScrape:
    """Polls until there are ``least`` new rows: scraped samples become visible with a delay."""
    for _ in range(150):
        scrape, _ = await poll(collector)
        if scrape is not None and len(scrape.series) >= least:
            return scrape
        await asyncio.sleep(0.2)
    raise AssertionError("no samples became visible")


def values_of(scrape: RawScrape, name: str) -> dict[str, float]:
    """The last value of each GPU."""
    rows = zip(scrape.series, scrape.value, strict=True)
    series = [(scrape.table.series[code], float(value)) for code, value in rows]
    return {key.labels["gpu"]: value for key, value in series if key.name == name}


async def test_labels_values_and_times_are_the_exporters_when_prometheus_is_read(
    prometheus: str, dcgm: Exporter, collector_of: MakeCollector
) -> None:
    before = now()
    scrape = await poll_until_rows(collector_of(prometheus), 8)
    assert values_of(scrape, "DCGM_FI_DEV_POWER_USAGE") == {str(gpu): 500.5 + gpu for gpu in range(4)}
    labels = scrape.table.series[0].labels
    assert labels["Hostname"] == "n1"
    assert labels["hpc_job"] == labels["gpu"]
    assert labels["instance"] == dcgm.target
    assert {series.name for series in scrape.table.series} == {"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE"}
    assert scrape.time_ms is not None
    assert all(before - 300_000 < at <= scrape.fetched_at for at in scrape.time_ms)


async def test_each_sample_comes_once_and_changes_follow_when_polled_again(
    prometheus: str, dcgm: Exporter, collector_of: MakeCollector
) -> None:
    collector = collector_of(prometheus)
    table = (await poll_until_rows(collector, 8)).table
    dcgm.text = exposition(50)
    earlier: set[tuple[int, int]] = set()
    for _ in range(150):
        scrape = await poll_until_rows(collector, 1)
        assert scrape.table is table
        assert scrape.time_ms is not None
        new = {(int(code), int(at)) for code, at in zip(scrape.series, scrape.time_ms, strict=True)}
        assert len(new) == len(scrape.series)
        assert not new & earlier
        earlier |= new
        if values_of(scrape, "DCGM_FI_DEV_GPU_UTIL") == {str(gpu): 50.0 + gpu for gpu in range(4)}:
            return
    raise AssertionError("the change never came")


async def test_check_counts_series_and_gpus_when_the_matcher_selects_them(
    prometheus: str, collector_of: MakeCollector
) -> None:
    await poll_until_rows(collector_of(prometheus), 8)
    (status,) = await collector_of(prometheus).check()
    assert status.is_ok
    assert status.message == "8 series of 2 metrics (2 known) on 4 GPUs match"
    (narrowed,) = await collector_of(prometheus, matcher='DCGM_FI_DEV_GPU_UTIL{gpu=~"0|1"}').check()
    assert narrowed.message == "2 series of 1 metrics (1 known) on 2 GPUs match"


async def test_only_the_selected_are_read_when_the_matcher_is_narrow(
    prometheus: str, collector_of: MakeCollector
) -> None:
    scrape = await poll_until_rows(collector_of(prometheus, matcher='{job="dcgm", gpu="2"}'), 2)
    assert set(values_of(scrape, "DCGM_FI_DEV_POWER_USAGE")) == {"2"}


@pytest.mark.parametrize(
    ("matcher", "message", "hint"),
    [
        ('{job="dcgm"', "the query was rejected: .*parse", "matcher"),
        ('{job="elsewhere"}', 'no series match {job="elsewhere"}', "DCGM_FI_DEV_GPU_UTIL"),
        ('{__name__="go_goroutines"}', "matches 1 metrics, but none that is read", "known exporters"),
    ],
)
async def test_the_matcher_is_blamed_when_it_selects_nothing_useful(
    prometheus: str, collector_of: MakeCollector, matcher: str, message: str, hint: str
) -> None:
    await poll_until_rows(collector_of(prometheus), 8)
    collector = collector_of(prometheus, matcher=matcher)
    for status in ((await poll(collector))[1], *await collector.check()):
        assert not status.is_ok
        assert re.search(message, str(status.message))
        assert hint in str(status.hint)


async def failure_of(collector: PrometheusCollector) -> str:
    """Message and hint of a poll that fails without a scrape."""
    scrape, status = await poll(collector)
    assert scrape is None
    assert not status.is_ok
    assert [(s.message, s.hint) for s in await collector.check()] == [(status.message, status.hint)]
    return f"{status.source}: {status.message} – {status.hint}"


async def test_the_address_is_blamed_when_nothing_answers_there(collector_of: MakeCollector) -> None:
    port = free_port()
    text = await failure_of(collector_of(f"http://someone:hidden-word@127.0.0.1:{port}"))
    assert f"prometheus http://127.0.0.1:{port}: cannot be reached" in text.replace("/:", ":")
    assert "collect.prometheus.url" in text
    assert "hidden-word" not in text


async def test_the_path_is_blamed_when_the_api_is_not_there(prometheus: str, collector_of: MakeCollector) -> None:
    assert "/select/0/prometheus" in await failure_of(collector_of(f"{prometheus}/elsewhere"))


async def test_the_answer_is_blamed_when_it_is_a_login_page(collector_of: MakeCollector) -> None:
    with exporter("<html>Please log in</html>") as page:
        assert "login page" in await failure_of(collector_of(f"http://{page.target}"))


async def test_the_time_is_named_when_the_server_hangs(collector_of: MakeCollector) -> None:
    released = asyncio.Event()

    async def hang(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await released.wait()
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    assert "no response within 0.2 s" in await failure_of(collector_of(f"http://127.0.0.1:{port}", timeout_s=0.2))
    released.set()
    server.close()
    await server.wait_closed()


async def test_access_is_asked_for_when_the_server_wants_a_login(dcgm: Exporter, collector_of: MakeCollector) -> None:
    with prometheus_server([dcgm.target], password_hash=OPEN_SESAME) as url:
        assert "collect.prometheus.token" in await failure_of(collector_of(url))
        assert "access denied (HTTP 401)" in await failure_of(collector_of(url, token="wrong-token"))
        let_in = url.replace("http://", "http://site:open-sesame@")
        assert len((await poll_until_rows(collector_of(let_in), 8)).series) >= 8


async def test_a_series_vanishes_and_silence_is_reported_when_its_exporter_dies(collector_of: MakeCollector) -> None:
    with exporter(exposition(1)) as dying, prometheus_server([dying.target]) as url:
        collector = collector_of(url)
        await poll_until_rows(collector, 8)
        dying.text = None
        for _ in range(150):
            scrape, status = await poll(collector)
            assert status.is_ok
            assert scrape is not None
            if not len(scrape.series):
                break
            await asyncio.sleep(0.4)
        later = UnixMs(now() + 360_000)
        (observed,) = [observation async for observation in collector.poll(later)]
    assert isinstance(observed, ScrapeObserved)
    assert "no new sample for 6 minutes" in str(observed.statuses[0].message)


async def test_samples_are_read_fresh_when_the_server_is_victoria_metrics(
    victoria: str, collector_of: MakeCollector
) -> None:
    at = now()
    await import_samples(victoria, 10, at - 60_000)
    collector = collector_of(victoria)
    await poll_until_rows(collector, 8)
    (status,) = await collector.check()
    assert status.message == "8 series of 2 metrics (2 known) on 4 GPUs match"
    # A plain instant query would not see these for 30 s (-search.latencyOffset); they become visible one by one.
    await import_samples(victoria, 20, at - 2_000)
    await import_samples(victoria, 30, at - 1_000)
    times: set[int] = set()
    while len(times) < 2:
        scrape = await poll_until_rows(collector, 1)
        assert scrape.time_ms is not None
        times |= set(map(int, scrape.time_ms))
    assert times == {at - 2_000, at - 1_000}
    fresh = await poll_until_rows(collector_of(victoria), 24)
    assert values_of(fresh, "DCGM_FI_DEV_GPU_UTIL") == dict.fromkeys("0123", 30.0)
    bad = await failure_of(collector_of(victoria, matcher='{job="dcgm"'))
    assert "collect.prometheus.matcher" in bad


async def import_samples(victoria: str, value: float, at: int) -> None:
    lines = [line.rpartition(" ")[0] for line in exposition(0).splitlines() if line.startswith("DCGM")]
    text = "\n".join(f"{series} {value} {at}" for series in lines)
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{victoria}/api/v1/import/prometheus", data=text) as answer,
    ):
        assert answer.status == 204
