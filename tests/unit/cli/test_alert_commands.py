"""``clusterscape alerts`` as a user types it, against an HTTP endpoint on loopback."""

import asyncio
import json
import sys
from pathlib import Path

from alerting.channels import DOWN, PaperChannel
from alerting.endpoints import HttpEndpoint
from alerting.turns import PretendClock, started

from clusterscape.watch.alerts import SPOOL_FILE, Alerts


async def run(*arguments: str, **environment: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "clusterscape.cli",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "COLUMNS": "200", **environment},
    )
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


def write(folder: Path, url: str) -> str:
    path = folder / "clusterscape.toml"
    path.write_text(
        f"cluster = 'test'\n[storage]\ndata_dir = '{folder}'\n[alerts.channels.hook]\nkind = 'webhook'\nurl = '{url}'\n"
    )
    return str(path)


async def test_marked_message_and_its_response_are_reported_when_a_channel_is_tested(tmp_path: Path) -> None:
    endpoint = HttpEndpoint()
    config = write(tmp_path, endpoint.url)
    async with endpoint.up():
        token = {"CLUSTERSCAPE_ALERTS__CHANNELS__HOOK__TOKEN": "from-the-environment"}
        code, out, _ = await run("alerts", "test", "hook", "--config", config, "--json", **token)
        assert code == 0
        assert json.loads(out)["answer"] == "200 OK: ok"
        endpoint.status = 403
        code, out, _ = await run("alerts", "test", "hook", "--config", config)
        assert code == 1
        assert "403 Forbidden" in out
    assert endpoint.accepted[0].json["kind"] == "test"
    assert endpoint.accepted[0].headers["authorization"] == "Bearer from-the-environment"


async def test_channels_are_named_when_one_does_not_exist(tmp_path: Path) -> None:
    code, _, err = await run("alerts", "test", "hok", "--config", write(tmp_path, "http://127.0.0.1:1"))
    assert code == 1
    assert "no channel `hok`" in err
    assert "Configured: hook." in err


async def test_state_is_reported_from_the_spool_when_delivery_fails(tmp_path: Path) -> None:
    config = write(tmp_path, "http://127.0.0.1:1")
    code, out, _ = await run("alerts", "status", "--config", config, "--json")
    assert (code, json.loads(out)) == (0, [])
    channel = PaperChannel(name="hook", kind="webhook", answers=[DOWN])
    alerts = Alerts([channel], tmp_path / SPOOL_FILE, clock=PretendClock())
    alerts.post([started()])
    await alerts.deliver_due()
    code, out, _ = await run("alerts", "status", "--config", config, "--json")
    (state,) = json.loads(out)
    assert (state["name"], state["waiting"], state["last_error"]) == ("hook", 1, "cannot reach it")
    assert state["is_configured"] is True
    code, out, _ = await run("alerts", "status", "--config", config)
    assert "cannot reach it" in out
    assert "1 attempt" in out
    _, out, _ = await run("doctor", "--config", config, "--json")
    (check,) = [entry for entry in json.loads(out) if entry["what"] == "alerts to hook"]
    assert (check["ok"], check["message"]) == (False, "cannot reach it")
    alerts.close()
