"""Alerts through Apprise over real sockets: services that are down, refuse, redirect or answer late."""

import json
import logging
from pathlib import Path

import pytest
from alerting.endpoints import HttpEndpoint
from alerting.turns import T0, PretendClock, started, stopped
from integration.test_alerts import HOUR_S, channels, run_until

from clusterscape.watch.alerts import Alerts


def open_alerts(folder: Path, clock: PretendClock, endpoint: HttpEndpoint, **settings: object) -> Alerts:
    """To Apprise's own JSON service, whose address holds a password."""
    url = f"json://ops:hunter2@127.0.0.1:{endpoint.port}/hook"
    return Alerts(channels(clock, kind="apprise", url=url, **settings), folder / "alerts.db", clock=clock)


async def test_everything_arrives_once_and_in_order_when_the_service_was_down_for_an_hour(tmp_path: Path) -> None:
    clock, endpoint = PretendClock(), HttpEndpoint()
    alerts = open_alerts(tmp_path, clock, endpoint)
    alerts.post([started(f"slurm:{minute}", minute * 60.0) for minute in range(60)])
    await run_until(alerts, clock, HOUR_S)
    assert not endpoint.received
    async with endpoint.up():
        await run_until(alerts, clock, 2 * HOUR_S)
    titles = [request.json["title"] for request in endpoint.accepted]
    assert titles == [f"[test] warning: Low util by slurm:{minute}: 1 started" for minute in range(60)]
    alerts.close()


async def test_message_has_type_text_and_key_when_violations_start_and_stop(tmp_path: Path) -> None:
    clock, endpoint = PretendClock(), HttpEndpoint()
    alerts = open_alerts(tmp_path, clock, endpoint)
    async with endpoint.up():
        alerts.post([started("slurm:7")])
        await alerts.deliver_due()
        alerts.post([stopped("slurm:7", 60)])
        await alerts.deliver_due()
    first, second = (request.json for request in endpoint.accepted)
    assert (first["type"], second["type"]) == ("warning", "success")
    assert "Low util started: slurm:7 of ada (llm) on n1:0, since 2027-01-15 08:00 UTC" in first["message"]
    assert "https://gpu.example.org/?select=workload:slurm:7" in first["message"]
    assert "ClusterScape, message " in first["message"]
    assert endpoint.accepted[0].headers["user-agent"] == "ClusterScape"
    alerts.close()


@pytest.mark.parametrize("status", [301, 401, 429, 500])
async def test_message_is_retried_and_no_secret_is_shown_when_the_service_refuses(
    tmp_path: Path, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    clock, endpoint, other = PretendClock(), HttpEndpoint(status=status), HttpEndpoint()
    endpoint.headers = {"Location": other.url}
    alerts = open_alerts(tmp_path, clock, endpoint)
    alerts.post([started()])
    async with endpoint.up(), other.up():
        with caplog.at_level(logging.DEBUG):
            await alerts.deliver_due()
        (state,) = alerts.state()
        assert (state.waiting, state.is_lasting) == (1, False)
        assert f"error={status}" in (state.last_error or "")
        assert "hunter2" not in (state.last_error or "") + caplog.text
        endpoint.status = 200
        await run_until(alerts, clock, HOUR_S)
    assert len(endpoint.accepted) == 1
    assert not other.received  # the redirection was not followed
    alerts.close()


async def test_silence_is_an_error_when_the_answer_does_not_come(tmp_path: Path) -> None:
    clock, endpoint = PretendClock(), HttpEndpoint(delay_s=5.0)
    alerts = open_alerts(tmp_path, clock, endpoint, timeout_s=0.2)
    alerts.post([started()])
    async with endpoint.up():
        await alerts.deliver_due()
    (state,) = alerts.state()
    assert state.waiting == 1
    assert state.last_error
    assert (state.next_attempt_at or 0) > T0
    alerts.close()


async def test_one_message_is_sent_when_there_is_more_than_a_service_takes(tmp_path: Path) -> None:
    clock, endpoint = PretendClock(), HttpEndpoint()
    alerts = open_alerts(tmp_path, clock, endpoint, group_by=[])
    alerts.post([started(f"slurm:{number}") for number in range(500)])
    async with endpoint.up():
        await alerts.deliver_due()
    (request,) = endpoint.accepted
    assert "and 480 more; the page shows them all" in json.loads(request.body)["message"]
    alerts.close()
