"""Builds channels from their settings."""

import ssl
from collections.abc import Callable
from pathlib import Path

from clusterscape.errors import ConfigError
from clusterscape.model.ids import UnixMs
from clusterscape.settings import (
    AlertmanagerSettings,
    AlertsSettings,
    AnyChannelSettings,
    AppriseSettings,
    ChannelSettings,
    EmailSettings,
    SlackSettings,
    WebhookSettings,
)
from clusterscape.watch.alerts.channels.alertmanager import AlertmanagerChannel
from clusterscape.watch.alerts.channels.apprise import AppriseChannel, open_service
from clusterscape.watch.alerts.channels.mail import PERSONAL, MailChannel
from clusterscape.watch.alerts.channels.site_info import SiteInfo
from clusterscape.watch.alerts.channels.slack import SlackChannel
from clusterscape.watch.alerts.channels.smtp import SmtpServer
from clusterscape.watch.alerts.channels.webhook import WebhookChannel
from clusterscape.watch.alerts.contract import Channel, SendingPolicy

ARRAY_INTERVAL_MS = 24 * 3_600_000
"""Tasks of an array violate a rule one after another for the same cause: the user gets one message per day."""

_SMTP_PORTS = {"plain": 25, "starttls": 587, "tls": 465}


def build_channels(alerts: AlertsSettings, *, cluster: str, clock: Callable[[], UnixMs]) -> list[Channel]:
    """Build all configured channels."""
    site = SiteInfo(cluster=cluster, page_url=alerts.page_url)
    return [build_channel(name, settings, site, clock) for name, settings in alerts.channels.items()]


def build_channel(name: str, settings: AnyChannelSettings, site: SiteInfo, clock: Callable[[], UnixMs]) -> Channel:
    """Build one channel."""
    policy = _policy(settings)
    match settings:
        case WebhookSettings():
            return WebhookChannel(
                name=name,
                policy=policy,
                site=site,
                clock=clock,
                url=settings.url,
                token=settings.token,
                headers=settings.headers,
                secret=settings.secret,
                proxy=settings.proxy,
                timeout_s=settings.timeout_s,
            )
        case SlackSettings():
            return SlackChannel(
                name=name,
                policy=policy,
                site=site,
                clock=clock,
                url=settings.url,
                proxy=settings.proxy,
                timeout_s=settings.timeout_s,
            )
        case EmailSettings():
            return MailChannel(
                name=name,
                policy=policy,
                site=site,
                clock=clock,
                server=open_smtp(settings),
                sender=settings.sender,
                to=settings.to,
            )
        case AlertmanagerSettings():
            return AlertmanagerChannel(
                name=name,
                policy=policy,
                site=site,
                clock=clock,
                url=settings.url,
                token=settings.token,
                labels=settings.labels,
                resolve_timeout_ms=int(settings.resolve_timeout_s * 1000),
                proxy=settings.proxy,
                timeout_s=settings.timeout_s,
            )
        case AppriseSettings():
            return AppriseChannel(
                name=name,
                policy=policy,
                site=site,
                service=open_service(name, settings.url, settings.timeout_s),
                timeout_s=settings.timeout_s,
            )


def open_smtp(settings: EmailSettings) -> SmtpServer:
    """The SMTP server of an e-mail channel."""
    return SmtpServer(
        host=settings.host,
        port=settings.port or _SMTP_PORTS[settings.security],
        security=settings.security,
        user=settings.user,
        password=settings.password,
        trust=_load_trust(settings.ca_file),
        timeout_s=settings.timeout_s,
    )


def _load_trust(ca_file: Path | None) -> ssl.SSLContext | None:
    if ca_file is None:
        return None
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # SSLError is one
        raise ConfigError(
            f"cannot load certificates from `ca_file` {ca_file}: {error}", hint="Set it to a readable PEM file."
        ) from None


def _policy(settings: ChannelSettings) -> SendingPolicy:
    is_personal = isinstance(settings, EmailSettings) and any(PERSONAL in address for address in settings.to)
    return SendingPolicy(
        severities=frozenset(settings.severities),
        rules=settings.rules,
        sends_stops=settings.send_resolved,
        group_by=(*settings.group_by, "array") if is_personal else settings.group_by,
        lane_by=("user",) if is_personal else (),
        array_interval_ms=ARRAY_INTERVAL_MS if is_personal else 0,
        group_wait_ms=int(settings.group_wait_s * 1000),
        group_interval_ms=int(settings.group_interval_s * 1000),
        hold_ms=int(settings.hold_s * 1000),
        max_per_hour=settings.max_per_hour,
        max_waiting=settings.max_waiting,
    )
