"""Any HTTP endpoint: JSON of a documented, versioned shape (docs/guide/alerts.md), signed after Standard Webhooks."""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from clusterscape.model.ids import UnixMs
from clusterscape.watch.alerts.channels.http import post
from clusterscape.watch.alerts.channels.letterhead import Letterhead
from clusterscape.watch.alerts.contract import Answer, Firing, Message, Policy, Tally
from clusterscape.watch.alerts.turns import AlertTurn

SHAPE_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookChannel:
    """``secret`` signs; ``token`` is sent as a bearer token."""

    name: str
    policy: Policy
    letterhead: Letterhead
    clock: Callable[[], UnixMs]
    url: str
    token: str | None = None
    headers: Mapping[str, str]
    secret: str | None = None
    proxy: str | None = None
    timeout_s: float = 10.0
    kind: str = "webhook"
    refresh_every_ms: int | None = None

    def can_reach(self, turn: AlertTurn) -> bool:
        """Always: there is one address."""
        del turn
        return True

    async def send(self, message: Message) -> Answer:
        """One POST."""
        now = self.clock()
        body = json.dumps(payload(message, self.name, self.letterhead), ensure_ascii=False).encode()
        headers = {**self.headers, **_identify(message.key, body, now, self.secret)}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return await post(self.url, body, headers, timeout_s=self.timeout_s, proxy=self.proxy, now=now)

    async def refresh(self, firing: Sequence[Firing]) -> Answer:
        """Nothing: a webhook is told changes."""
        del firing
        return Answer(is_accepted=True, text="")


def payload(message: Message, channel: str, letterhead: Letterhead) -> dict[str, Any]:
    """The body. Fields may be added within a version; none changes its meaning."""
    return {
        "version": SHAPE_VERSION,
        "kind": message.kind.value,
        "key": message.key,
        "cluster": letterhead.cluster,
        "channel": channel,
        "created_at": _iso(message.created_at),
        "page_url": letterhead.page_url,
        "group": dict(message.group),
        "turns": [_plain_turn(turn, letterhead) for turn in message.turns],
        "tallies": [_plain_tally(each) for each in message.tallies],
    }


def _plain_turn(turn: AlertTurn, letterhead: Letterhead) -> dict[str, Any]:
    return {
        "id": turn.id,
        "turn": turn.turn.value,
        "at": _iso(turn.at),
        "since": _iso(turn.since),
        "rule": {
            "key": turn.rule,
            "name": turn.rule_name,
            "severity": turn.severity.value,
            "text": turn.rule_text,
            "reason": turn.reason,
        },
        "workload": turn.workload,
        "user": turn.user,
        "project": turn.project,
        "partition": turn.partition,
        "units": list(turn.units),
        "values": dict(turn.values),
        "readings": turn.readings,
        "url": letterhead.workload_url(turn.workload),
    }


def _plain_tally(each: Tally) -> dict[str, Any]:
    return {
        "rule": {"key": each.rule, "name": each.rule_name, "severity": each.severity.value},
        "started": each.started,
        "stopped": each.stopped,
        "first_at": _iso(each.first_at),
        "last_at": _iso(each.last_at),
    }


def _identify(key: str, body: bytes, now: UnixMs, secret: str | None) -> dict[str, str]:
    """The key under both names that receivers look for, and the signature of standardwebhooks.com."""
    sent_s = str(now // 1000)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "ClusterScape",
        "Idempotency-Key": key,
        "webhook-id": key,
        "webhook-timestamp": sent_s,
    }
    if secret:
        signed = b".".join((key.encode(), sent_s.encode(), body))
        digest = hmac.new(signing_key(secret), signed, hashlib.sha256).digest()
        headers["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
    return headers


def signing_key(secret: str) -> bytes:
    """The bytes of a secret: ``whsec_`` and base64, as the standard writes them, or any text as it is."""
    if secret.startswith("whsec_"):
        try:
            return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        except binascii.Error:
            pass
    return secret.encode()


def _iso(at: UnixMs) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
