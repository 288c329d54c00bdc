"""Background loops continue after any exception, and report it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from clusters.opened import open_queries
from clusters.small import SmallCluster, small_cluster
from fastapi.testclient import TestClient
from servers.in_thread import served_in_thread

from clusterscape.cli.checks import check_everything
from clusterscape.collect.schedule import run_collectors
from clusterscape.errors import StoreError
from clusterscape.model import Observation, SourceStatus, UnixMs
from clusterscape.model.access import Role, Session, Viewer, Way
from clusterscape.query import Queries
from clusterscape.runtime.server import open_identity, run_upkeep
from clusterscape.runtime.site import open_site
from clusterscape.serve.app import create_app
from clusterscape.settings import ServerSettings, Settings, StorageSettings
from clusterscape.supervision import BackgroundLoops, SupervisedLoop, cancel_and_wait, keep_running

__all__ = ["small_cluster"]

LOG = logging.getLogger("test")
NOW = UnixMs(1_794_800_060_000)


@dataclass
class PretendClock:
    now: int

    def __call__(self) -> UnixMs:
        return UnixMs(self.now)


def a_loop(loops: BackgroundLoops | None = None, name: str = "rules") -> SupervisedLoop:
    return (loops or BackgroundLoops()).loop(name, LOG, fails="it fails", works="it works again")


def test_loop_goes_on_counts_and_logs_once_when_rounds_raise_anything(caplog: pytest.LogCaptureFixture) -> None:
    loop, rounds = a_loop(), 0
    for error in (ZeroDivisionError("x"), ZeroDivisionError("x"), StoreError("disk", hint="Look."), None):
        with loop:
            rounds += 1
            if error is not None:
                raise error
        if error is not None:
            assert (loop.is_failing, loop.state.error) == (True, type(error).__name__)
    assert (rounds, loop.state.failures, loop.is_failing, loop.state.problem) == (4, 3, False, None)
    assert [record.getMessage().strip() for record in caplog.records] == [
        "it fails: ZeroDivisionError: x",
        "it fails: disk Look.",
        "it works again",
    ]
    assert caplog.records[0].exc_info is not None, "what is unexpected is logged with its traceback"


def test_text_of_unexpected_errors_stays_in_the_log_when_a_loop_fails() -> None:
    loop = a_loop()
    with loop:
        raise RuntimeError("/home/ada/secret")
    assert "ada" not in str(loop.state.problem)


def test_cancellation_ends_a_loop_when_it_comes_within_a_round() -> None:
    loop = a_loop()
    with pytest.raises(asyncio.CancelledError), loop:
        raise asyncio.CancelledError
    assert loop.state.failures == 0


async def test_work_is_begun_again_when_it_ends_with_an_exception() -> None:
    loop, begun = a_loop(), 0

    async def work() -> None:
        nonlocal begun
        begun += 1
        if begun < 3:
            raise OSError("gone")

    await keep_running(loop, work, restart_s=0)
    assert (begun, loop.state.failures, loop.is_failing) == (3, 2, False)


class OneCollector:
    """A collector that yields its status repeatedly."""

    def __init__(self, name: str, error: Exception | None = None) -> None:
        self.name = name
        self.interval_s = 0.01
        self.error = error

    async def poll(self, now_ms: UnixMs) -> AsyncIterator[Observation]:
        if self.error is not None:
            raise self.error
        yield SourceStatus(source=self.name, kind=self.name, is_ok=True, at=now_ms)

    async def check(self) -> list[SourceStatus]:
        return []

    async def close(self) -> None:
        pass


async def test_collectors_go_on_when_the_sink_or_one_of_them_raises_anything() -> None:
    """Regression: a failing sink used to stop the collection of all sources."""
    statuses: list[str] = []
    has_enough = asyncio.Event()

    async def sink(observation: Observation) -> None:
        assert isinstance(observation, SourceStatus)
        if observation.source == "refused":
            raise KeyError("refused")
        statuses.append(f"{observation.source} {observation.is_ok}")
        if min(statuses.count("good True"), statuses.count("broken False")) >= 3:
            has_enough.set()

    loops = BackgroundLoops()
    collectors = [OneCollector("refused"), OneCollector("good"), OneCollector("broken", TypeError("odd"))]
    collecting = asyncio.create_task(run_collectors(collectors, sink, lambda: NOW, loops))
    await asyncio.wait_for(has_enough.wait(), 30)
    collecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await collecting
    failing = {state.loop: state.error for state in loops.failing()}
    assert failing == {"collect refused": "KeyError", "collect broken": "TypeError"}


def refuse(*, now_ms: UnixMs) -> None:
    raise OverflowError(f"nothing is maintained at {now_ms}")


async def test_upkeep_goes_on_when_one_of_its_tasks_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: one failed maintenance of a store used to stop retention and the end of sessions permanently."""
    clock = PretendClock(NOW)
    site = open_site(Settings(storage=StorageSettings(data_dir=tmp_path)), clock=clock)
    identity = open_identity(site)
    try:
        monkeypatch.setattr(site.metrics, "maintain", refuse)
        identity.store.add_session(
            Session(
                digest="d",
                way=Way.STATIC,
                login=None,
                created_at=UnixMs(1),
                seen_at=UnixMs(1),
                expires_at=UnixMs(2),
                address="::1",
                agent="test",
            )
        )
        clock.now += 2 * 86_400_000
        await run_upkeep(site, identity)
        assert [state.loop for state in site.loops.failing()] == ["upkeep of metric store"]
        assert identity.store.sessions(Way.STATIC, None) == []
    finally:
        identity.close()
        site.close()


def failing_queries(cluster: SmallCluster) -> Queries:
    loops = BackgroundLoops()
    a_loop(loops, "alerts")
    for error in (StoreError("the disk is full"), StoreError("the disk is full")):
        with a_loop(loops, "upkeep"):
            raise error
    return open_queries(replace(cluster.queries.context, loops=loops))


def test_failing_loop_is_named_everywhere_when_the_server_is_asked(small_cluster: SmallCluster) -> None:
    with TestClient(create_app(failing_queries(small_cluster))) as client:
        health = client.get("/healthz").json()
        assert (health["status"], health["failing"]) == ("degraded", ["upkeep"])
        states = {state["loop"]: state for state in client.get("/api/v1/sources").json()["background"]}
        assert (states["upkeep"]["failures"], states["upkeep"]["problem"]) == (2, "the disk is full")
        assert states["alerts"]["error"] is None
        metrics = client.get("/metrics").text.splitlines()
    assert 'clusterscape_background_failures_total{loop="upkeep"} 2.0' in metrics
    assert 'clusterscape_background_failing{loop="upkeep"} 1.0' in metrics
    assert 'clusterscape_background_failing{loop="alerts"} 0.0' in metrics


def test_problem_of_a_loop_is_hidden_when_names_are(small_cluster: SmallCluster) -> None:
    whole = failing_queries(small_cluster)
    private = open_queries(replace(whole.context, is_private=True))
    redactor = private.scoped_to(Viewer(login="bob", role=Role.RESEARCHER)).redactor
    assert redactor is not None
    states = {state.loop: state for state in redactor.redact(private.sources.sources()).background}
    assert (states["upkeep"].error, states["upkeep"].problem) == ("StoreError", None)


def test_doctor_names_the_failing_loop_and_why_when_a_server_runs(small_cluster: SmallCluster, tmp_path: Path) -> None:
    with served_in_thread(failing_queries(small_cluster)) as url:
        server = ServerSettings(host="127.0.0.1", port=int(url.rsplit(":", 1)[1]))
        checks = check_everything(Settings(server=server, storage=StorageSettings(data_dir=tmp_path)), None)
    (check,) = [check for check in checks if check.what.startswith("background")]
    assert (check.what, check.is_ok) == ("background: upkeep", False)
    assert "2 times" in check.message
    assert "the disk is full" in check.message


async def test_task_ends_when_it_survives_the_first_cancellation() -> None:
    cancellations = 0

    async def retry_forever() -> None:
        nonlocal cancellations
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:  # as aiohttp does if a timeout occurs at the same moment
                cancellations += 1
                if cancellations > 1:
                    raise

    task = asyncio.create_task(retry_forever())
    await asyncio.sleep(0)
    await cancel_and_wait(task, again_s=0.01)
    assert task.cancelled()
    assert cancellations == 2


async def test_error_of_a_cancelled_task_is_left_to_its_owner() -> None:
    async def fail_on_cancellation() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise ValueError("planted")

    task = asyncio.create_task(fail_on_cancellation())
    await asyncio.sleep(0)
    await cancel_and_wait(task)
    with pytest.raises(ValueError, match="planted"):
        await task
