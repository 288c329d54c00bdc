"""Alerts over real sockets: endpoints that are down, refuse or answer late, a process that is killed, a real Alertmanager."""

import asyncio
import base64
import hashlib
import hmac
import json
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from alerting.endpoints import HttpEndpoint, Request
from alerting.turns import T0, PretendClock, started, stopped
from servers.alertmanager import AlertmanagerServer, alertmanager_server

from clusterscape.model.ids import UnixMs
from clusterscape.settings import AlertsSettings
from clusterscape.watch.alerts import Alerts, Channel, build_channels, read_spool

TESTS = Path(__file__).parents[1]
HOUR_S = 3600.0


def channels(clock: PretendClock, **settings: object) -> list[Channel]:
    quick = {"group_by": ["workload"], "group_wait_s": 0, "group_interval_s": 0, "hold_s": 0, "max_per_hour": None}
    alerts = AlertsSettings.model_validate(
        {"page_url": "https://gpu.example.org", "channels": {"hook": {**quick, **settings}}}
    )
    return build_channels(alerts, cluster="test", clock=clock)


async def run_until(alerts: Alerts, clock: PretendClock, seconds: float) -> None:
    """Advance the simulated clock and deliver due messages over real sockets."""
    end = T0 + int(seconds * 1000)
    while (due_at := await alerts.deliver_due()) is not None and due_at <= end:
        clock.at = due_at
    clock.at = UnixMs(max(end, clock.at))


def now() -> UnixMs:
    """Of a real server, which has its own clock."""
    return UnixMs(time.time_ns() // 1_000_000)


def workloads(requests: Sequence[Request]) -> list[str]:
    return [turn["workload"] for request in requests for turn in request.json["turns"]]


async def test_webhook_gets_everything_once_and_in_order_when_it_was_down_for_an_hour(tmp_path: Path) -> None:
    clock, endpoint = PretendClock(), HttpEndpoint()
    alerts = Alerts(channels(clock, kind="webhook", url=endpoint.url), tmp_path / "alerts.db", clock=clock)
    # Down in every way: nobody listens, a proxy in between complains, nobody listens again.
    for minute in range(60):
        alerts.post([started(f"w{minute}", minute * 60.0), started(f"x{minute}", minute * 60.0)])
        if 20 <= minute < 40:
            endpoint.status, endpoint.headers = 503, {"Retry-After": "20"}
            async with endpoint.up():
                await run_until(alerts, clock, (minute + 1) * 60.0)
        else:
            await run_until(alerts, clock, (minute + 1) * 60.0)
    assert endpoint.received
    assert not endpoint.accepted
    (state,) = alerts.state()
    assert (state.waiting, state.delivered) == (120, 0)
    assert state.failing_since == T0
    assert "cannot reach http://127.0.0.1" in (state.last_error or "")
    endpoint.status = 200
    async with endpoint.up():
        await run_until(alerts, clock, 2 * HOUR_S)
    assert workloads(endpoint.accepted) == [f"{kind}{minute}" for minute in range(60) for kind in "wx"]
    assert len({request.headers["idempotency-key"] for request in endpoint.accepted}) == 120
    assert alerts.state()[0].last_error is None
    alerts.close()


async def test_request_carries_key_token_and_valid_signature_when_they_are_set(tmp_path: Path) -> None:
    clock, endpoint = PretendClock(), HttpEndpoint()
    secret = b"0123456789abcdef01234567"
    settings = {
        "token": "bearer-token",
        "headers": {"X-Site": "a"},
        "secret": f"whsec_{base64.b64encode(secret).decode()}",
    }
    alerts = Alerts(channels(clock, kind="webhook", url=endpoint.url, **settings), tmp_path / "a.db", clock=clock)
    alerts.post([started("slurm:7", units=("n1:0", "n1:1"))])
    async with endpoint.up():
        await alerts.deliver_due()
    (request,) = endpoint.accepted
    headers = request.headers
    assert headers["authorization"] == "Bearer bearer-token"
    assert headers["x-site"] == "a"
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request.body
    expected = base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert headers["webhook-id"] == headers["idempotency-key"] == request.json["key"]
    assert request.json["version"] == 1
    (turn,) = request.json["turns"]
    assert turn["rule"] == {
        "key": "low-util",
        "name": "Low util",
        "severity": "warning",
        "text": "gpu_util p95 < 80%",
        "reason": "GPUs wait for data.",
    }
    assert turn["units"] == ["n1:0", "n1:1"]
    assert turn["readings"] == "gpu_util p95 41%"
    assert turn["since"] == "2027-01-15T08:00:00.000Z"
    assert turn["url"] == "https://gpu.example.org/?select=workload:slurm:7"
    alerts.close()


@pytest.mark.parametrize(
    ("status", "is_lasting"), [(400, True), (401, True), (404, True), (301, True), (429, False), (500, False)]
)
async def test_answer_is_understood_when_it_is_no_success(tmp_path: Path, status: int, is_lasting: bool) -> None:
    clock, endpoint = PretendClock(), HttpEndpoint(status=status, headers={"Retry-After": "7200"})
    alerts = Alerts(channels(clock, kind="webhook", url=endpoint.url), tmp_path / "a.db", clock=clock)
    alerts.post([started()])
    async with endpoint.up():
        await alerts.deliver_due()
        (state,) = alerts.state()
        assert (state.is_lasting, state.waiting) == (is_lasting, 1)
        assert str(status) in (state.last_error or "")
        assert state.next_attempt_at == T0 + 7_200_000
        endpoint.status = 200
        await run_until(alerts, clock, 3 * HOUR_S)
    assert workloads(endpoint.accepted) == ["slurm:1"]
    alerts.close()


async def test_silence_is_an_error_when_the_answer_does_not_come(tmp_path: Path) -> None:
    clock, endpoint = PretendClock(), HttpEndpoint(delay_s=5.0)
    alerts = Alerts(
        channels(clock, kind="webhook", url=endpoint.url, timeout_s=0.2), tmp_path / "alerts.db", clock=clock
    )
    alerts.post([started()])
    async with endpoint.up():
        await alerts.deliver_due()
    assert "did not answer within 0.2 s" in (alerts.state()[0].last_error or "")
    alerts.close()


async def test_slack_gets_readable_blocks_when_names_hold_its_markup(tmp_path: Path) -> None:
    clock, endpoint = PretendClock(), HttpEndpoint()
    alerts = Alerts(channels(clock, kind="slack", url=endpoint.url, group_by=[]), tmp_path / "a.db", clock=clock)
    alerts.post([started("slurm:1", user="<!channel>"), *(started(f"slurm:{n}") for n in range(2, 500))])
    async with endpoint.up():
        await alerts.deliver_due()
    (request,) = endpoint.accepted
    body = request.json
    text = json.dumps(body)
    assert "<!channel>" not in text
    assert body["blocks"][0]["text"]["text"] == "🟠 [test] warning: Low util by 499 workloads: 499 started"
    assert "and 479 more" in text
    assert len(body["blocks"]) <= 50
    assert all(len(part["text"]["text"]) <= 3000 for part in body["blocks"] if part["type"] == "section")
    assert sum(len(part["text"]["text"]) for part in body["blocks"] if part["type"] == "section") < 13_000
    alerts.close()


async def test_slow_channel_delays_no_other_when_both_run(tmp_path: Path) -> None:
    clock = PretendClock(now())
    slow, quick = HttpEndpoint(delay_s=30.0), HttpEndpoint()
    both = [
        *channels(clock, kind="webhook", url=slow.url, timeout_s=60),
        *build_channels(
            AlertsSettings.model_validate(
                {"channels": {"quick": {"kind": "slack", "url": quick.url, "group_wait_s": 0, "hold_s": 0}}}
            ),
            cluster="test",
            clock=clock,
        ),
    ]
    alerts = Alerts(both, tmp_path / "alerts.db", clock=clock)
    async with slow.up(), quick.up(), delivering(alerts):
        await asyncio.to_thread(alerts.post, [started()])
        await quick.until_received(1)
        assert {state.name: state.delivered for state in alerts.state()}["hook"] == 0
        slow.delay_s = 0.0
    alerts.close()


@asynccontextmanager
async def delivering(alerts: Alerts) -> AsyncIterator[None]:
    task = asyncio.create_task(alerts.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def start_worker(spool: Path, url: str, first: int, last: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "alerting.worker",
        str(spool),
        url,
        str(first),
        str(last),
        stdout=asyncio.subprocess.PIPE,
        cwd=TESTS,
    )


async def kill(process: asyncio.subprocess.Process) -> list[int]:
    """Kill −9; returns the turns whose post had returned."""
    process.send_signal(signal.SIGKILL)
    printed, _ = await process.communicate()
    return [int(line) for line in printed.split()]


async def test_everything_arrives_in_order_and_repeats_keep_their_key_when_the_process_is_killed(
    tmp_path: Path,
) -> None:
    spool, endpoint, dice = tmp_path / "alerts.db", HttpEndpoint(delay_s=0.002), random.Random(3)
    kills, first, acknowledged = 4, 0, []
    async with endpoint.up():
        for _ in range(kills):
            worker = await start_worker(spool, endpoint.url, first, first + 1000)
            await endpoint.until_received(len(endpoint.received) + 5)
            await asyncio.sleep(dice.uniform(0.0, 0.1))
            acknowledged += await kill(worker)
            first = acknowledged[-1] + 2  # the one after the last may be kept or not
        worker = await start_worker(spool, endpoint.url, first, first + 3)
        await worker.communicate()
        assert worker.returncode == 0
    bodies: dict[str, bytes] = {}
    for request in endpoint.received:
        assert bodies.setdefault(request.headers["idempotency-key"], request.body) == request.body
    once = [turn["workload"] for body in bodies.values() for turn in json.loads(body)["turns"]]
    numbers = [int(name.removeprefix("w")) for name in once]
    assert numbers == sorted(set(numbers))
    assert set(acknowledged) | {first, first + 1, first + 2} <= set(numbers)
    assert len(endpoint.received) - len(bodies) <= kills
    assert read_spool(spool)[0].waiting == 0


async def test_message_comes_again_under_its_key_when_killed_before_the_answer(tmp_path: Path) -> None:
    spool, endpoint = tmp_path / "alerts.db", HttpEndpoint(delay_s=60.0)
    async with endpoint.up():
        worker = await start_worker(spool, endpoint.url, 0, 1)
        await endpoint.until_received(1)
        await kill(worker)
        endpoint.delay_s = 0.0
        await (await start_worker(spool, endpoint.url, 0, 1)).communicate()
        # Its answer is kept: from now on nothing comes again, though the turn is posted again.
        await (await start_worker(spool, endpoint.url, 0, 1)).communicate()
    first, second = endpoint.received
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert first.body == second.body


@pytest.mark.server
async def test_alertmanager_keeps_an_alert_while_it_fires_when_it_is_repeated(tmp_path: Path) -> None:
    with alertmanager_server() as server:
        settings = AlertsSettings.model_validate(
            {
                "page_url": "https://gpu.example.org",
                "channels": {
                    "am": {
                        "kind": "alertmanager",
                        "url": server.url,
                        "hold_s": 0,
                        "resolve_timeout_s": 3,
                        "labels": {"team": "gpu"},
                    }
                },
            }
        )
        since_s = (now() - 1000 - T0) / 1000
        alerts = Alerts(build_channels(settings, cluster="test", clock=now), tmp_path / "alerts.db", clock=now)
        async with delivering(alerts):
            begin = [started("slurm:1", since_s, units=("n1:0", "n1:1")), started("slurm:2", since_s)]
            await asyncio.to_thread(alerts.post, begin)
            await firing(server, {"slurm:1", "slurm:2"})
            (alert,) = [listed for listed in server.alerts() if listed["labels"]["workload"] == "slurm:1"]
            assert alert["labels"] == {
                "alertname": "low-util",
                "cluster": "test",
                "partition": "a100",
                "project": "llm",
                "severity": "warning",
                "team": "gpu",
                "user": "ada",
                "workload": "slurm:1",
            }
            assert alert["generatorURL"] == "https://gpu.example.org/?select=workload:slurm:1"
            assert alert["annotations"]["units"] == "n1:0, n1:1"
            await asyncio.sleep(4.0)  # longer than the alert lives without being repeated
            assert names(server.alerts()) == {"slurm:1", "slurm:2"}
            at_s = (now() - T0) / 1000
            end = [
                stopped("slurm:2", at_s, since_s=since_s),
                stopped("slurm:1", at_s, since_s=since_s, units=("n1:0",)),
            ]
            await asyncio.to_thread(alerts.post, end)
            await firing(server, {"slurm:1"})
        # It is no longer repeated: whether it still fires is unknown.
        await firing(server, set())
        alerts.close()


async def firing(server: AlertmanagerServer, expected: set[str]) -> None:
    """Wait until exactly these workloads fire."""
    async with asyncio.timeout(20):
        while names(await asyncio.to_thread(server.alerts)) != expected:  # noqa: ASYNC110 – it calls nobody
            await asyncio.sleep(0.05)


def names(alerts: list[dict[str, Any]]) -> set[str]:
    return {alert["labels"]["workload"] for alert in alerts}
