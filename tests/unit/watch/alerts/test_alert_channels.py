"""Channels from settings, and the meaning of responses and messages; sending is tested with real sockets elsewhere."""

import sys

import pytest
from alerting.turns import T0, flat, rule, started, stopped
from apprise import Apprise
from apprise.plugins.discord import NotifyDiscord

from clusterscape.errors import ConfigError
from clusterscape.model.rules import Severity
from clusterscape.settings import read_settings
from clusterscape.watch.alerts import Message, MessageKind, build_channels
from clusterscape.watch.alerts.channels.apprise import compose, open_service
from clusterscape.watch.alerts.channels.http import parse_retry_after
from clusterscape.watch.alerts.channels.message_text import build_text
from clusterscape.watch.alerts.channels.site_info import SiteInfo
from clusterscape.watch.alerts.channels.slack import blocks
from clusterscape.watch.alerts.channels.webhook import payload, signing_key
from clusterscape.watch.alerts.condense import tally
from clusterscape.watch.alerts.delivery import update_firing

ALERTS = {"alerts": {"channels": {"ops": {"kind": "slack", "url": "https://hooks.example.org/T0/secret-part"}}}}


def test_channel_reads_lists_and_secrets_when_they_stand_in_the_environment() -> None:
    prefix = "CLUSTERSCAPE_ALERTS__CHANNELS__OPS__"
    environ = {f"{prefix}URL": "https://hooks.example.org/other", f"{prefix}SEVERITIES": "info,critical"}
    settings = read_settings(environ=environ, overrides={"alerts": {"channels": {"ops": {"kind": "slack"}}}})
    (channel,) = build_channels(settings.alerts, cluster="test", clock=lambda: T0)
    assert channel.policy.severities == {Severity.INFO, Severity.CRITICAL}
    assert channel.kind == "slack"


def test_secrets_of_channels_are_hidden_when_settings_are_printed() -> None:
    assert "secret-part" not in repr(read_settings(environ={}, overrides=ALERTS))


@pytest.mark.parametrize(
    ("channel", "message", "hint"),
    [
        ({"kind": "webhook"}, "setting `alerts.channels.a.url`", "URL that JSON is posted to"),
        ({"kind": "pager", "token": "hunter2"}, "'webhook', 'slack', 'email', 'alertmanager', 'apprise'", "kind"),
        ({"kind": "webhook", "url": "http://x", "tokn": "hunter2"}, "`alerts.channels.a.tokn`", "mean `token`?"),
        ({"kind": "slack", "url": "hunter2"}, "`alerts.channels.a.url` = (hidden)", "It is a secret"),
        ({"kind": "apprise", "url": "hunter2"}, "`alerts.channels.a.url` = (hidden)", "It contains secrets"),
        ({"kind": "alertmanager", "url": "http://x", "send_resolved": False}, "send_resolved", "for ever"),
        ({"kind": "webhook", "url": "http://x", "headers": {"X": 3}}, "(hidden)", "headers"),
    ],
)
def test_wrong_channel_is_named_and_keeps_its_secrets_when_read(
    channel: dict[str, object], message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_settings(environ={}, overrides={"alerts": {"channels": {"a": channel}}})
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert "hunter2" not in caught.value.message + (caught.value.hint or "")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("120", 120.0), ("Fri, 15 Jan 2027 08:01:00 GMT", 60.0), ("Fri, 15 Jan 2027 07:00:00 GMT", 0.0), ("soon", None)],
)
def test_retry_after_is_read_when_it_is_seconds_or_a_date(value: str, seconds: float | None) -> None:
    assert parse_retry_after(value, T0) == seconds


def test_secret_is_decoded_when_it_is_written_as_the_standard_does() -> None:
    assert signing_key("whsec_aGVsbG8=") == b"hello"
    assert signing_key("hello") == b"hello"
    assert signing_key("whsec_not base64") == b"whsec_not base64"


def test_summary_has_counts_and_turns_when_there_are_both() -> None:
    old = [flat(started(f"w{n}", of=rule("idle", Severity.CRITICAL))) for n in range(40)]
    message = Message(
        key="k-1",
        kind=MessageKind.SUMMARY,
        created_at=T0,
        turns=[flat(started("slurm:7")), flat(stopped("slurm:8", 60))],
        tallies=tally([*old, flat(stopped("w1", 30, of=rule("idle", Severity.CRITICAL)))]),
    )
    subject = build_text(message, "test", most=10).subject
    assert subject == "[test] critical: summary of many violations, 2 rules: 41 started, 2 stopped"
    body = payload(message, "hook", SiteInfo(cluster="test"))
    assert body["tallies"][0]["started"] == 40
    assert body["tallies"][0]["last_at"] == "2027-01-15T08:00:30.000Z"
    text = blocks(message, SiteInfo(cluster="test"))["blocks"][1]["text"]["text"]
    assert "Idle: 40 started, 1 stopped" in text
    assert "Low util stopped: slurm:8 of ada (llm) on n1:0, 2027-01-15 08:00 UTC to 2027-01-15 08:01 UTC" in text


def test_address_is_refused_and_stays_secret_when_apprise_does_not_know_it() -> None:
    with pytest.raises(ConfigError) as caught:
        open_service("phone", "nothing://hunter2/hunter2", 10.0)
    assert "alerts.channels.phone.url" in caught.value.message
    assert "hunter2" not in f"{caught.value.message} {caught.value.hint}"


def test_package_is_named_when_apprise_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(ConfigError) as caught:
        open_service("phone", "json://localhost", 10.0)
    assert caught.value.hint == "pip install 'clusterscape[apprise]'"


def test_nobody_is_mentioned_when_a_name_contains_a_mention() -> None:
    turn = flat(started("slurm:1", user="@everyone <!channel> <@42>"))
    message = Message(key="k-1", kind=MessageKind.ALERT, created_at=T0, turns=[turn])
    title, body = compose(message, SiteInfo(cluster="@here"))
    discord = Apprise.instantiate("discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js")
    assert isinstance(discord, NotifyDiscord)
    assert discord.ping_payload("@everyone <@42>")["content"] == "👉 @everyone <@42>"  # so it would be read
    assert discord.ping_payload(title, body) == {}
    assert "<!channel>" not in body


def test_subject_fires_until_its_last_unit_stops_when_units_stop_one_by_one() -> None:
    key = ("low-util", "a")
    first = update_firing({}, [flat(started("a", units=("n1:0", "n1:1"))), flat(stopped("a", 5, units=("n1:0",)))])
    assert first[key].parts == {"n1:1"}
    more = update_firing(first, [flat(started("a", 7, units=("n1:2",)))])
    assert more[key].first.at == T0  # the alert goes on: its beginning and its labels stay
    assert not update_firing(more, [flat(stopped("a", 9, units=("n1:1", "n1:2")))])[key].parts
    assert not update_firing(more, [flat(stopped("a", 9, units=()))])[key].parts
