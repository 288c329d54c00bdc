"""Slack's incoming webhooks, and what speaks their format (Mattermost, Rocket.Chat): blocks, and a text for notifications."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from clusterscape.model.ids import UnixMs
from clusterscape.model.rules import Severity
from clusterscape.watch.alerts.channels.http import post
from clusterscape.watch.alerts.channels.letterhead import Letterhead
from clusterscape.watch.alerts.channels.words import (
    Wording,
    describe,
    describe_tally,
    put_into_words,
    worst,
)
from clusterscape.watch.alerts.contract import Answer, Firing, Message, Policy
from clusterscape.watch.alerts.turns import AlertTurn

# Slack refuses a message beyond these: characters of a header, of a section, and of all blocks (about 13,000 by experience).
_HEADER_CHARS = 150
_SECTION_CHARS = 3_000
_LISTED_TURNS = 20
_LINE_CHARS = 450
_SIGNS = {Severity.INFO: "🔵", Severity.WARNING: "🟠", Severity.CRITICAL: "🔴"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackChannel:
    """``url`` is the webhook's address and its secret."""

    name: str
    policy: Policy
    letterhead: Letterhead
    clock: Callable[[], UnixMs]
    url: str
    proxy: str | None = None
    timeout_s: float = 10.0
    kind: str = "slack"
    refresh_every_ms: int | None = None

    def can_reach(self, turn: AlertTurn) -> bool:
        """Always: there is one room."""
        del turn
        return True

    async def send(self, message: Message) -> Answer:
        """One POST. Slack itself does not look at the key; what stands in between may."""
        body = json.dumps(blocks(message, self.letterhead), ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": message.key}
        return await post(self.url, body, headers, timeout_s=self.timeout_s, proxy=self.proxy, now=self.clock())

    async def refresh(self, firing: Sequence[Firing]) -> Answer:
        """Nothing: a room is told changes."""
        del firing
        return Answer(is_accepted=True, text="")


def blocks(message: Message, letterhead: Letterhead) -> dict[str, Any]:
    """The body: a heading, the reasons, one line per turn, and the key as small print."""
    words = put_into_words(message, letterhead.cluster, most=_LISTED_TURNS)
    sign = _SIGNS[worst([*(turn.severity for turn in message.turns), *(each.severity for each in message.tallies)])]
    title = f"{sign} {words.subject}"
    parts: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": _cut(title, _HEADER_CHARS), "emoji": True}}
    ]
    parts += [_section(lines) for lines in _pages(_lines(words, letterhead))]
    small = f"ClusterScape · {message.key}"
    if letterhead.page_url:
        small = f"<{_link(letterhead.page_url)}|Open the page> · {small}"
    parts.append({"type": "context", "elements": [{"type": "mrkdwn", "text": small}]})
    return {"text": _cut(_escape(title), _SECTION_CHARS), "blocks": parts}


def _lines(words: Wording, letterhead: Letterhead) -> list[str]:
    lines = [f"_{_cut(_escape(f'{name}: {reason}'), _LINE_CHARS)}_" for name, reason in words.reasons[:3]]
    lines += [f"• {_escape(describe_tally(each))}" for each in words.tallies[:_LISTED_TURNS]]
    if len(words.tallies) > _LISTED_TURNS:
        lines.append(f"… and {len(words.tallies) - _LISTED_TURNS:,} more rules.")
    for turn in words.turns:
        text = _cut(_escape(describe(turn)), _LINE_CHARS)
        url = letterhead.workload_url(turn.workload)
        small = f"\n    {_cut(_escape(turn.readings), _LINE_CHARS // 3)}" if turn.readings else ""
        lines.append(f"• {text}{f' (<{_link(url)}|open>)' if url else ''}{small}")
    if words.unlisted:
        lines.append(f"… and {words.unlisted:,} more; the page shows them all.")
    return lines


def _pages(lines: Sequence[str]) -> list[list[str]]:
    """Lines in sections, none longer than Slack takes."""
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
    """Names come from users: none of them may mention a room or forge a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _link(url: str) -> str:
    return _escape(url).replace("|", "%7C")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
