"""Slack's incoming webhooks, and compatible services (Mattermost, Rocket.Chat): blocks, and a text for notifications."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from clusterscape.model.ids import UnixMs
from clusterscape.model.rules import Severity
from clusterscape.watch.alerts.channels.http import post
from clusterscape.watch.alerts.channels.message_text import (
    MessageText,
    build_text,
    describe,
    describe_tally,
    worst,
)
from clusterscape.watch.alerts.channels.site_info import SiteInfo
from clusterscape.watch.alerts.contract import DeliveryResult, Firing, Message, SendingPolicy
from clusterscape.watch.alerts.turns import AlertTurn

# Slack's limits: characters of a header, of a section, and of all blocks (about 13,000 in practice).
_HEADER_CHARS = 150
_SECTION_CHARS = 3_000
_LISTED_TURNS = 20
_LINE_CHARS = 450
_SIGNS = {Severity.INFO: "🔵", Severity.WARNING: "🟠", Severity.CRITICAL: "🔴"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackChannel:
    """Slack. ``url``: the URL of the webhook, which is a secret."""

    name: str
    policy: SendingPolicy
    site: SiteInfo
    clock: Callable[[], UnixMs]
    url: str
    proxy: str | None = None
    timeout_s: float = 10.0
    kind: str = "slack"
    refresh_every_ms: int | None = None

    def can_reach(self, turn: AlertTurn) -> bool:
        """Always: there is one channel in Slack."""
        del turn
        return True

    async def send(self, message: Message) -> DeliveryResult:
        """Send one POST. Slack ignores the idempotency key, but a proxy may use it."""
        body = json.dumps(blocks(message, self.site), ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": message.key}
        return await post(self.url, body, headers, timeout_s=self.timeout_s, proxy=self.proxy, now=self.clock())

    async def refresh(self, firing: Sequence[Firing]) -> DeliveryResult:
        """Do nothing: Slack only receives changes."""
        del firing
        return DeliveryResult(is_accepted=True, text="")


def blocks(message: Message, site: SiteInfo) -> dict[str, Any]:
    """The body: a heading, the reasons, one line per turn, and the key in small print."""
    text = build_text(message, site.cluster, most=_LISTED_TURNS)
    sign = _SIGNS[worst([*(turn.severity for turn in message.turns), *(tally.severity for tally in message.tallies)])]
    title = f"{sign} {text.subject}"
    parts: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": _cut(title, _HEADER_CHARS), "emoji": True}}
    ]
    parts += [_section(lines) for lines in _pages(_lines(text, site))]
    small = f"ClusterScape · {message.key}"
    if site.page_url:
        small = f"<{_link(site.page_url)}|Open the page> · {small}"
    parts.append({"type": "context", "elements": [{"type": "mrkdwn", "text": small}]})
    return {"text": _cut(_escape(title), _SECTION_CHARS), "blocks": parts}


def _lines(text: MessageText, site: SiteInfo) -> list[str]:
    lines = [f"_{_cut(_escape(f'{name}: {reason}'), _LINE_CHARS)}_" for name, reason in text.reasons[:3]]
    lines += [f"• {_escape(describe_tally(tally))}" for tally in text.tallies[:_LISTED_TURNS]]
    if len(text.tallies) > _LISTED_TURNS:
        lines.append(f"… and {len(text.tallies) - _LISTED_TURNS:,} more rules.")
    for turn in text.turns:
        line = _cut(_escape(describe(turn)), _LINE_CHARS)
        url = site.workload_url(turn.workload)
        small = f"\n    {_cut(_escape(turn.readings), _LINE_CHARS // 3)}" if turn.readings else ""
        lines.append(f"• {line}{f' (<{_link(url)}|open>)' if url else ''}{small}")
    if text.unlisted:
        lines.append(f"… and {text.unlisted:,} more; the page shows them all.")
    return lines


def _pages(lines: Sequence[str]) -> list[list[str]]:
    """Split lines into sections, none longer than Slack allows."""
    pages: list[list[str]] = []
    room = 0
    for line in lines:
        if not pages or len(line) + 1 > room:
            pages.append([])
            room = _SECTION_CHARS
        pages[-1].append(line)
        room -= len(line) + 1
    return pages


def _section(lines: Sequence[str]) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(lines)}}


def _escape(text: str) -> str:
    """Escape names, which come from users and must not mention channels or forge links."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _link(url: str) -> str:
    return _escape(url).replace("|", "%7C")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
