"""Settings of what is judged and told to others: rules, channels of alerts, remote write."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from clusterscape.model.rules import Severity
from clusterscape.settings.section import Section


class RulesSettings(Section):
    """How violation rules are judged."""

    judge_every_s: float = Field(15.0, ge=1, description="Seconds between two judgements of all workloads.")


class ChannelSettings(Section):
    """What every channel of alerts can be told."""

    severities: tuple[Severity, ...] = Field(
        (Severity.WARNING, Severity.CRITICAL), description="Rules of these severities: `info`, `warning`, `critical`."
    )
    rules: tuple[str, ...] = Field(("*",), min_length=1, description="Rules with these keys; `*` and `?` are globs.")
    tell_stops: bool = Field(True, description="Tell also when a violation stops.")
    group_by: tuple[Literal["rule", "workload", "user", "project", "partition"], ...] = Field(
        ("rule",), description="What has these in common is told in one message; empty: everything together."
    )
    group_wait_s: float = Field(30.0, ge=0, description="Seconds to wait for more of the same group.")
    group_interval_s: float = Field(300.0, ge=0, description="Seconds between two messages of the same group.")
    hold_s: float = Field(120.0, ge=0, description="A violation that is over within so many seconds is not told.")
    max_per_hour: int | None = Field(
        60,
        ge=1,
        description="Most messages an hour (to one user, where it goes to users); the last one sums up the rest.",
    )
    max_waiting: int = Field(
        10_000, ge=100, description="Most starts and stops that wait; beyond, of the oldest only their number is kept."
    )
    timeout_s: float = Field(10.0, gt=0, description="Seconds after which an answer counts as missing.")


class WebhookSettings(ChannelSettings):
    """Any HTTP endpoint; what it gets is in the [guide](../guide/alerts.md)."""

    kind: Literal["webhook"]
    url: str = Field(pattern=r"^https?://", description="Address that JSON is posted to.")
    token: str | None = Field(None, repr=False, description="Bearer token.")
    headers: dict[str, str] = Field({}, repr=False, description="More headers, by name.")
    secret: str | None = Field(
        None, repr=False, description="Key of the signature (HMAC-SHA256); without it none is sent."
    )
    proxy: str | None = Field(None, description="HTTP proxy.")


class SlackSettings(ChannelSettings):
    """A Slack incoming webhook, or what speaks its format."""

    kind: Literal["slack"]
    url: str = Field(pattern=r"^https?://", repr=False, description="The webhook's address, which is its secret.")
    proxy: str | None = Field(None, description="HTTP proxy.")


class EmailSettings(ChannelSettings):
    """E-mail over SMTP."""

    kind: Literal["email"]
    host: str = Field(min_length=1, description="SMTP server.")
    port: int | None = Field(None, ge=1, le=65535, description="Its port; by default 25, 587 (starttls) or 465 (tls).")
    security: Literal["plain", "starttls", "tls"] = Field("starttls", description="How the connection is protected.")
    user: str | None = Field(None, description="Name to log in with; without it nobody logs in.")
    password: str | None = Field(None, repr=False, description="Its password.")
    ca_file: Path | None = Field(None, description="Certificates to trust (PEM); by default the system's.")
    sender: str = Field(pattern=r"^[^\s<>]+@[^\s<>]+$", description="Address the mails come from.")
    to: tuple[str, ...] = Field(
        min_length=1, description="Addresses; `{user}@example.org` goes to the workload's user."
    )
    max_per_hour: int | None = Field(20, ge=1, description="Most mails an hour to the same addresses.")


class AlertmanagerSettings(ChannelSettings):
    """An Alertmanager (API v2); of several that form a cluster, each is a channel. It groups and holds by itself."""

    kind: Literal["alertmanager"]
    url: str = Field(pattern=r"^https?://", description="Address, such as http://127.0.0.1:9093.")
    token: str | None = Field(None, repr=False, description="Bearer token.")
    labels: dict[str, str] = Field({}, description="More labels for every alert.")
    resolve_timeout_s: float = Field(
        300.0, ge=3, description="An alert that is not repeated for so long ends by itself."
    )
    proxy: str | None = Field(None, description="HTTP proxy.")
    tell_stops: Literal[True] = Field(True, description="Always: an alert that is not ended would fire for ever.")
    group_by: tuple[Literal["rule", "workload", "user", "project", "partition"], ...] = Field(
        (), description="What has these in common is told in one request; empty: everything together."
    )
    group_wait_s: float = Field(0.0, ge=0, description="Seconds to wait for more of the same group.")
    group_interval_s: float = Field(0.0, ge=0, description="Seconds between two requests of the same group.")
    max_per_hour: int | None = Field(None, ge=1, description="Most requests an hour; repetitions do not count.")


AnyChannelSettings = WebhookSettings | SlackSettings | EmailSettings | AlertmanagerSettings
CHANNEL_KINDS: Mapping[str, type[ChannelSettings]] = {
    "webhook": WebhookSettings,
    "slack": SlackSettings,
    "email": EmailSettings,
    "alertmanager": AlertmanagerSettings,
}


class AlertsSettings(Section):
    """Who is told when a violation starts or stops."""

    page_url: str | None = Field(None, description="Where people reach the page; messages then link to it.")
    channels: dict[
        Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$")],
        Annotated[AnyChannelSettings, Field(discriminator="kind")],
    ] = Field({}, description="Channels by name: `[alerts.channels.NAME]` with a `kind`.")


class RemoteWriteSettings(Section):
    """Sends what ClusterScape finds out to a Prometheus-compatible server: violations, runs, the state of the cluster."""

    url: str | None = Field(
        None, pattern=r"^https?://", description="Remote-write address, such as http://127.0.0.1:9090/api/v1/write."
    )
    token: str | None = Field(None, repr=False, description="Bearer token; a user and password go into the address.")
    org_id: str | None = Field(None, description="X-Scope-OrgID: the tenant of Mimir and Cortex.")
    headers: dict[str, str] = Field({}, repr=False, description="More headers, by name.")
    labels: dict[str, str] = Field({}, description="More labels for every series; `cluster` is always there.")
    every_s: float = Field(30.0, ge=1, description="Seconds between two looks.")
    samples: tuple[str, ...] = Field((), description="Stored metrics to pass on as well; `*` and `?` are globs.")
    timeout_s: float = Field(30.0, gt=0, description="Seconds after which an answer counts as missing.")
    spool_bytes: int = Field(
        256 * 2**20, ge=2**20, description="While the server is away samples wait in `data_dir`, so much at most."
    )
