"""Any service that the library Apprise supports (Teams, Discord, Matrix, Telegram, PagerDuty, ntfy and more), as plain text.

The library is an optional extra, imported only if such a channel is configured. It reports success or failure and its log, not
the HTTP status: every failure is treated as temporary and retried.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clusterscape import executors
from clusterscape.errors import ConfigError
from clusterscape.model.rules import Severity
from clusterscape.watch.alerts.channels.message_text import build_text, worst, write_plain
from clusterscape.watch.alerts.channels.site_info import SiteInfo
from clusterscape.watch.alerts.contract import DeliveryResult, Firing, Message, MessageKind, SendingPolicy
from clusterscape.watch.alerts.turns import AlertTurn

if TYPE_CHECKING:
    from apprise import Apprise

_LISTED_TURNS = 20
_LONGEST_ERROR = 300
_WORD_JOINER = "\u2060"
_TYPES = {Severity.INFO: "info", Severity.WARNING: "warning", Severity.CRITICAL: "failure"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AppriseChannel:
    """A service. ``service`` holds one address: with several, a retry after one failed would send duplicates to the others."""

    name: str
    policy: SendingPolicy
    site: SiteInfo
    service: "Apprise"
    timeout_s: float = 10.0
    kind: str = "apprise"
    refresh_every_ms: int | None = None

    def can_reach(self, turn: AlertTurn) -> bool:
        """Always: there is one address."""
        del turn
        return True

    async def send(self, message: Message) -> DeliveryResult:
        """Send one notification, in a thread, because the library blocks."""
        return await executors.UPKEEP.run(self._notify, message)

    async def refresh(self, firing: Sequence[Firing]) -> DeliveryResult:
        """Do nothing: the service only receives changes."""
        del firing
        return DeliveryResult(is_accepted=True, text="")

    def _notify(self, message: Message) -> DeliveryResult:
        title, body = compose(message, self.site)
        # The library pauses between two messages to one service; the pause does not count as response time.
        total_timeout_s = self.timeout_s + max(service.request_rate_per_sec for service in self.service)
        result = self.service.notify(
            body=body, title=title, notify_type=_type_of(message), body_format="text", timeout=total_timeout_s
        )
        if result:
            return DeliveryResult(is_accepted=True, text="accepted")
        errors = "; ".join(dict.fromkeys(entry.message for entry in result.logs()))
        return DeliveryResult(
            is_accepted=False, text=errors[:_LONGEST_ERROR] or f"not accepted within {total_timeout_s:g} s"
        )


def open_service(name: str, url: str, timeout_s: float) -> "Apprise":
    """The service at ``url``, which is a secret: error messages do not contain it."""
    try:
        from apprise import Apprise, AppriseAsset, OverflowMode
    except ModuleNotFoundError:
        raise ConfigError(
            f"alerts.channels.{name} requires the package apprise", hint="pip install 'clusterscape[apprise]'"
        ) from None
    # Its log is part of the delivery result; a service that is down for days would fill our log.
    logging.getLogger("apprise").propagate = False
    asset = AppriseAsset(app_id="ClusterScape", http_redirects=False, storage_mode="memory")
    service = Apprise.instantiate(url, asset=asset)
    if service is None:
        raise ConfigError(
            f"alerts.channels.{name}.url is not a valid Apprise URL",
            hint="https://github.com/caronc/apprise/wiki lists the URLs of all services.",
        )
    service.socket_connect_timeout = service.socket_read_timeout = timeout_s
    service.overflow_mode = OverflowMode.TRUNCATE  # a split message that failed halfway would be repeated in part
    apprise = Apprise(asset=asset)
    apprise.add(service)
    return apprise


def compose(message: Message, site: SiteInfo) -> tuple[str, str]:
    """Title and text. Names come from users and must not trigger mentions, which services detect in plain text, too."""
    text = build_text(message, site.cluster, most=_LISTED_TURNS)
    return _disable_mentions(text.subject), _disable_mentions(write_plain(text, site, message.key))


def _disable_mentions(text: str) -> str:
    return text.replace("@", f"@{_WORD_JOINER}").replace("<!", f"<{_WORD_JOINER}!")


def _type_of(message: Message) -> str:
    """The notification type, which sets the color and the icon."""
    if (
        message.kind is not MessageKind.TEST
        and not message.tallies
        and not any(turn.is_start for turn in message.turns)
    ):
        return "success"
    return _TYPES[worst([*(turn.severity for turn in message.turns), *(tally.severity for tally in message.tallies)])]
