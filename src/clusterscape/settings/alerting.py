"""Settings of rules, alert channels and remote write."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from clusterscape.model.rules import Severity
from clusterscape.settings.section import Section


class RulesSettings(Section):
    """Evaluation of rules."""

    evaluation_interval_s: float = Field(15.0, ge=1, description="Seconds between evaluations of all rules.")


class ChannelSettings(Section):
    """Settings that every alert channel has."""

    severities: tuple[Severity, ...] = Field(
        (Severity.WARNING, Severity.CRITICAL),
        description="Send only rules of these severities: `info`, `warning`, `critical`.",
    )
    rules: tuple[str, ...] = Field(
        ("*",), min_length=1, description="Send only rules with these keys; `*` and `?` are globs."
    )
    send_resolved: bool = Field(True, description="Also send a message when a violation stops.")
    group_by: tuple[Literal["rule", "workload", "user", "project", "partition"], ...] = Field(
        ("rule",), description="Violations with the same values share one message; empty: one message for all."
    )
    group_wait_s: float = Field(30.0, ge=0, description="Seconds to wait for more violations of the same group.")
    group_interval_s: float = Field(300.0, ge=0, description="Seconds between messages of the same group.")
    hold_s: float = Field(120.0, ge=0, description="A violation that lasts less than this, in seconds, is not sent.")
    max_per_hour: int | None = Field(
        60,
        ge=1,
        description="Rate limit: messages per hour (per user, if the channel writes to users); the last one summarizes the rest.",
    )
    max_waiting: int = Field(
        10_000,
        ge=100,
        description="Queue length: starts and stops that wait to be sent; of older ones only the number is kept.",
    )
    timeout_s: float = Field(10.0, gt=0, description="Request timeout, seconds.")


class WebhookSettings(ChannelSettings):
    """Any HTTP endpoint; the [guide](../guide/alerts.md) describes the payload."""

    kind: Literal["webhook"]
    url: str = Field(pattern=r"^https?://", description="URL that JSON is posted to.")
    token: str | None = Field(None, repr=False, description="Bearer token.")
    headers: dict[str, str] = Field({}, repr=False, description="Additional headers, by name.")
    secret: str | None = Field(
        None, repr=False, description="Key of the HMAC-SHA256 signature; without it, messages are not signed."
    )
    proxy: str | None = Field(None, description="HTTP proxy.")


class SlackSettings(ChannelSettings):
    """A Slack incoming webhook, or a service with the same format."""

    kind: Literal["slack"]
    url: str = Field(pattern=r"^https?://", repr=False, description="URL of the webhook. It is a secret.")
    proxy: str | None = Field(None, description="HTTP proxy.")


class EmailSettings(ChannelSettings):
    """E-mail over SMTP."""

    kind: Literal["email"]
    host: str = Field(min_length=1, description="SMTP server.")
    port: int | None = Field(None, ge=1, le=65535, description="SMTP port; by default 25, 587 (starttls) or 465 (tls).")
    security: Literal["plain", "starttls", "tls"] = Field("starttls", description="Encryption of the connection.")
    user: str | None = Field(None, description="SMTP user; without it, no authentication.")
    password: str | None = Field(None, repr=False, description="SMTP password.")
    ca_file: Path | None = Field(None, description="CA certificates to trust (PEM); by default the system's.")
    sender: str = Field(pattern=r"^[^\s<>]+@[^\s<>]+$", description="From address.")
    to: tuple[str, ...] = Field(
        min_length=1, description="To addresses; `{user}@example.org` goes to the workload's user."
    )
    max_per_hour: int | None = Field(20, ge=1, description="Rate limit: mails per hour to the same addresses.")


class AlertmanagerSettings(ChannelSettings):
    """An Alertmanager (API v2); configure one channel for each member of a cluster. Alertmanager does the grouping."""

    kind: Literal["alertmanager"]
    url: str = Field(pattern=r"^https?://", description="URL, such as http://127.0.0.1:9093.")
    token: str | None = Field(None, repr=False, description="Bearer token.")
    labels: dict[str, str] = Field({}, description="Additional labels of every alert.")
    resolve_timeout_s: float = Field(
        300.0, ge=3, description="Seconds after which an alert that is not repeated is resolved."
    )
    proxy: str | None = Field(None, description="HTTP proxy.")
    send_resolved: Literal[True] = Field(
        True, description="Always true: an alert that is never resolved would fire for ever."
    )
    group_by: tuple[Literal["rule", "workload", "user", "project", "partition"], ...] = Field(
        (), description="Violations with the same values share one request; empty: one request for all."
    )
    group_wait_s: float = Field(0.0, ge=0, description="Seconds to wait for more violations of the same group.")
    group_interval_s: float = Field(0.0, ge=0, description="Seconds between requests of the same group.")
    max_per_hour: int | None = Field(None, ge=1, description="Rate limit: requests per hour, without repetitions.")


class AppriseSettings(ChannelSettings):
    """Any service that the Apprise library supports; needs `pip install 'clusterscape[apprise]'`."""

    kind: Literal["apprise"]
    url: str = Field(
        pattern=r"^[a-zA-Z][a-zA-Z0-9]*://",
        repr=False,
        description="[Apprise URL](https://github.com/caronc/apprise/wiki) of the service. It contains secrets.",
    )


AnyChannelSettings = WebhookSettings | SlackSettings | EmailSettings | AlertmanagerSettings | AppriseSettings
CHANNEL_KINDS: Mapping[str, type[ChannelSettings]] = {
    "webhook": WebhookSettings,
    "slack": SlackSettings,
    "email": EmailSettings,
    "alertmanager": AlertmanagerSettings,
    "apprise": AppriseSettings,
}


class AlertsSettings(Section):
    """Messages about violations that start or stop."""

    page_url: str | None = Field(None, description="URL of the page, for links in messages.")
    channels: dict[
        Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$")],
        Annotated[AnyChannelSettings, Field(discriminator="kind")],
    ] = Field({}, description="Channels by name: `[alerts.channels.NAME]` with a `kind`.")


class JobMailSettings(Section):
    """Mails to users whose jobs ended, in place of Slurm's own; needs `MailProg` of slurm.conf to be `clusterscape-mail`."""

    channel: str | None = Field(
        None,
        description="Name of the e-mail channel in `alerts.channels` whose server and sender are used; without it, no mails.",
    )
    spool: Path = Field(
        Path("/var/spool/clusterscape/mail"),
        description="Folder into which `clusterscape-mail` writes, on this machine.",
    )
    mails: Literal["all", "waste", "none"] = Field(
        "all",
        description="Mails to users who have not chosen: of all ended jobs, only of those that wasted something, or none.",
    )
    digest_above: int = Field(
        5,
        ge=1,
        description="If more jobs of a user end at about the same time, they share one mail; also the mails per interval.",
    )
    digest_interval_s: float = Field(
        3600.0, ge=60, description="Seconds between mails to a user who got `digest_above` of them."
    )
    weekly_to_leads: bool = Field(True, description="Send leads a digest of their projects every Monday.")


class RemoteWriteSettings(Section):
    """Sends violations, metrics of runs and the state of the cluster to a Prometheus-compatible server."""

    url: str | None = Field(
        None, pattern=r"^https?://", description="Remote-write URL, such as http://127.0.0.1:9090/api/v1/write."
    )
    token: str | None = Field(None, repr=False, description="Bearer token; a user name and password go into the URL.")
    org_id: str | None = Field(None, description="`X-Scope-OrgID`: tenant of Mimir and Cortex.")
    headers: dict[str, str] = Field({}, repr=False, description="Additional headers, by name.")
    labels: dict[str, str] = Field({}, description="Additional labels of every series; `cluster` is always added.")
    interval_s: float = Field(30.0, ge=1, description="Seconds between sends.")
    samples: tuple[str, ...] = Field((), description="Stored metrics to forward as well; `*` and `?` are globs.")
    timeout_s: float = Field(30.0, gt=0, description="Request timeout, seconds.")
    spool_bytes: int = Field(
        256 * 2**20,
        ge=2**20,
        description="Spool size in `data_dir`, for samples that wait while the server is unreachable.",
    )
