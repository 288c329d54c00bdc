"""Alerts by e-mail through a real SMTP server: down, with TLS and a login, to users, with recipients it refuses."""

import json
import ssl
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from alerting.endpoints import SmtpEndpoint
from alerting.turns import T0, PretendClock, rule, started, stopped
from servers.programs import need_program

from clusterscape.model.ids import UnixMs
from clusterscape.model.rules import Rule, ViolationTurn
from clusterscape.settings import AlertsSettings
from clusterscape.watch.alerts import Alerts, Channel, build_channels

HOUR_S = 3600.0


def channels(clock: PretendClock, endpoint: SmtpEndpoint, **settings: object) -> list[Channel]:
    standard: dict[str, object] = {
        "kind": "email",
        "host": "127.0.0.1",
        "port": endpoint.port,
        "security": "plain",
        "sender": "clusterscape@example.org",
        "to": ["ops@example.org"],
        "group_by": ["workload"],
        "group_wait_s": 0,
        "group_interval_s": 0,
        "hold_s": 0,
        "max_per_hour": None,
    }
    alerts = AlertsSettings.model_validate(
        {"page_url": "https://gpu.example.org", "channels": {"mail": {**standard, **settings}}}
    )
    return build_channels(alerts, cluster="test", clock=clock)


async def run_until(alerts: Alerts, clock: PretendClock, seconds: float) -> None:
    end = T0 + int(seconds * 1000)
    while (due_at := await alerts.deliver_due()) is not None and due_at <= end:
        clock.at = due_at
    clock.at = UnixMs(max(end, clock.at))


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, ssl.SSLContext]:
    """A certificate of 127.0.0.1 that signs itself, and a server that shows it."""
    openssl = need_program("openssl", "openssl")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, *names, "-keyout", key, "-out", cert], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return cert, context


async def test_every_mail_arrives_once_and_in_order_when_the_server_was_down_for_an_hour(tmp_path: Path) -> None:
    clock, endpoint = PretendClock(), SmtpEndpoint()
    alerts = Alerts(channels(clock, endpoint), tmp_path / "alerts.db", clock=clock)
    for minute in range(60):
        alerts.post([started(f"w{minute}", minute * 60.0)])
        await run_until(alerts, clock, (minute + 1) * 60.0)
    assert "cannot reach 127.0.0.1" in (alerts.state()[0].last_error or "")
    async with endpoint.up():
        await run_until(alerts, clock, 2 * HOUR_S)
    subjects = [mail["Subject"] for _, mail in endpoint.mails]
    assert subjects == [f"[test] warning: Low util by w{minute}: 1 started" for minute in range(60)]
    assert len({mail["Message-ID"] for _, mail in endpoint.mails}) == 60
    alerts.close()


async def test_mail_has_text_and_escaped_html_when_names_hold_markup(tmp_path: Path) -> None:
    clock, endpoint = PretendClock(), SmtpEndpoint()
    alerts = Alerts(channels(clock, endpoint), tmp_path / "alerts.db", clock=clock)
    odd = rule(name="Low <b>\r\nBcc: all@example.org")
    alerts.post([started("slurm:7", of=odd, units=tuple(f"n1:{i}" for i in range(8))), stopped("slurm:7", 60, of=odd)])
    async with endpoint.up():
        await run_until(alerts, clock, 60)
    ((to, mail),) = endpoint.mails
    assert to == ["ops@example.org"]
    assert mail["Bcc"] is None
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["Message-ID"].endswith("-1@example.org>")
    plain, page = mail.get_body(("plain",)), mail.get_body(("html",))
    assert plain is not None
    assert page is not None
    assert "n1:0, n1:1, n1:2 and 5 more, since 2027-01-15 08:00 UTC" in plain.get_content()
    assert "https://gpu.example.org/?select=workload:slurm:7" in plain.get_content()
    assert "Low &lt;b&gt;" in page.get_content()
    alerts.close()


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_mail_is_sent_over_tls_with_a_login_when_the_server_asks(
    tmp_path: Path, certificate: tuple[Path, ssl.SSLContext], security: str
) -> None:
    trusted, context = certificate
    clock = PretendClock()
    endpoint = SmtpEndpoint(login=("scape", "right"), tls=context, is_tls_from_start=security == "tls")
    options = {"security": security, "user": "scape", "ca_file": trusted}
    async with endpoint.up():
        wrong = Alerts(channels(clock, endpoint, **options, password="wrong"), tmp_path / "a.db", clock=clock)
        wrong.post([started()])
        await wrong.deliver_due()
        (state,) = wrong.state()
        assert state.is_lasting
        assert "535" in (state.last_error or "")
        wrong.close()
        # With the right password, queued messages arrive at once.
        right = Alerts(channels(clock, endpoint, **options, password="right"), tmp_path / "a.db", clock=clock)
        await right.deliver_due()
        right.close()
    assert len(endpoint.mails) == 1


async def test_nothing_is_sent_when_the_certificate_is_not_trusted(
    tmp_path: Path, certificate: tuple[Path, ssl.SSLContext]
) -> None:
    clock, endpoint = PretendClock(), SmtpEndpoint(tls=certificate[1], is_tls_from_start=True)
    alerts = Alerts(channels(clock, endpoint, security="tls"), tmp_path / "a.db", clock=clock)
    alerts.post([started()])
    async with endpoint.up():
        await alerts.deliver_due()
    (state,) = alerts.state()
    assert state.is_lasting
    assert "certificate is not trusted" in (state.last_error or "")
    alerts.close()


async def test_users_get_only_their_own_when_mail_goes_to_them(tmp_path: Path) -> None:
    clock, endpoint = PretendClock(), SmtpEndpoint(refuse={"gone@example.org": "550 no such user"})
    settings = {"to": ["{user}@example.org"], "group_by": [], "max_per_hour": 1}
    alerts = Alerts(channels(clock, endpoint, **settings), tmp_path / "a.db", clock=clock)
    alerts.post(
        [started("a", user="gone"), started("b", user="ada"), started("c", user="bob"), started("d", user="ada")]
    )
    alerts.post([started("e", user=None), started("f", user="x@evil.org, all")])
    async with endpoint.up():
        await run_until(alerts, clock, 60)
        alerts.post([started("g", 60, user="ada"), started("h", 61, user="ada")])
        await run_until(alerts, clock, 2 * HOUR_S)
    sent = [(to, mail["Subject"]) for to, mail in endpoint.mails]
    assert sent == [
        (["ada@example.org"], "[test] 2 of your jobs: Low util"),
        (["bob@example.org"], "[test] Your job c: Low util"),
        (["ada@example.org"], "[test] 2 of your jobs: Low util"),
    ]
    (state,) = alerts.state()
    assert state.waiting == 1
    assert "gone@example.org refused: 550 no such user" in (state.last_error or "")
    alerts.close()


async def test_mail_counts_as_sent_when_some_recipients_are_refused(tmp_path: Path) -> None:
    clock, endpoint = PretendClock(), SmtpEndpoint(refuse={"gone@example.org": "550 no such user"})
    alerts = Alerts(
        channels(clock, endpoint, to=["ops@example.org", "gone@example.org"]), tmp_path / "a.db", clock=clock
    )
    alerts.post([started()])
    async with endpoint.up():
        await run_until(alerts, clock, HOUR_S)
    assert [to for to, _ in endpoint.mails] == [["ops@example.org"]]
    (state,) = alerts.state()
    assert (state.waiting, state.delivered, state.failing_since) == (0, 1, None)
    assert "gone@example.org refused" in json.dumps(state.last_error)
    alerts.close()


async def test_users_read_what_their_job_does_and_what_they_can_do_when_mail_goes_to_them(tmp_path: Path) -> None:
    clock, endpoint = PretendClock(), SmtpEndpoint()
    settings = {"to": ["{user}@example.org"], "group_by": ["rule"]}
    alerts = Alerts(channels(clock, endpoint, **settings), tmp_path / "a.db", clock=clock)
    hot = replace(rule("hot", name="Thermal throttling"), reason="Drain the node.", advice="There is nothing to do.")
    alerts.post([replace(started("slurm:4711", of=hot, units=("n1:0", "n1:1")), name="train-llm")])
    async with endpoint.up():
        await run_until(alerts, clock, 60)
    ((_, mail),) = endpoint.mails
    assert mail["Subject"] == "[test] Your job “train-llm” (4711): Thermal throttling"
    for part in ("plain", "html"):
        body = mail.get_body((part,))
        assert body is not None
        text = body.get_content()
        assert "Your job “train-llm” (4711): Thermal throttling on n1:0, n1:1, since 2027-01-15 08:00 UTC" in text
        assert "There is nothing to do." in text
        assert "https://gpu.example.org/?select=workload:slurm:4711" in text
        assert "Drain the node" not in text, "what operators do is not for users"
    alerts.close()


async def test_one_mail_comes_for_an_array_and_a_cause_when_its_tasks_follow_each_other(tmp_path: Path) -> None:
    clock, endpoint = PretendClock(), SmtpEndpoint()
    settings = {"to": ["{user}@example.org"], "group_by": ["rule"], "group_wait_s": 30}
    alerts = Alerts(channels(clock, endpoint, **settings), tmp_path / "a.db", clock=clock)
    other = rule("leak", name="Memory leak")

    def task(number: int, at_s: float, of: Rule | None = None) -> ViolationTurn:
        return replace(started(f"slurm:50_{number}", at_s, of=of), name="sweep", array="50")

    async with endpoint.up():
        for number in range(40):  # one after another, for hours
            alerts.post([task(number, number * 600.0)])
            await run_until(alerts, clock, (number + 1) * 600.0)
        alerts.post([task(0, 40 * 600.0, other)])
        await run_until(alerts, clock, 8 * HOUR_S)
        subjects = [mail["Subject"] for _, mail in endpoint.mails]
        assert subjects == [
            "[test] 1 task of your array “sweep” (50): Low util",
            "[test] 1 task of your array “sweep” (50): Memory leak",
        ]
        await run_until(alerts, clock, 26 * HOUR_S)
    assert endpoint.mails[2][1]["Subject"] == "[test] 39 tasks of your array “sweep” (50): Low util"
    assert len(endpoint.mails) == 3
    alerts.close()
