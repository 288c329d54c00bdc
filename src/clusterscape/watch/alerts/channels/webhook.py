"""Any HTTP endpoint: JSON with a versioned schema (docs/guide/alerts.md), signed as in Standard Webhooks."""

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
from clusterscape.watch.alerts.channels.site_info import SiteInfo
from clusterscape.watch.alerts.contract import DeliveryResult, Firing, Message, SendingPolicy, Tally
from clusterscape.watch.alerts.turns import AlertTurn

SHAPE_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookChannel:
    """A webhook. ``secret`` signs the body; ``token`` is sent as a bearer token."""

    name: str
    policy: SendingPolicy
    site: SiteInfo
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

    async def send(self, message: Message) -> DeliveryResult:
        """Send one POST."""
        now = self.clock()
        body = json.dumps(payload(message, self.name, self.site), ensure_ascii=False).encode()
        headers = {**self.headers, **_build_headers(message.key, body, now, self.secret)}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return await post(self.url, body, headers, timeout_s=self.timeout_s, proxy=self.proxy, now=now)

    async def refresh(self, firing: Sequence[Firing]) -> DeliveryResult:
        """Do nothing: a webhook only receives changes."""
        del firing
        return DeliveryResult(is_accepted=True, text="")


def payload(message: Message, channel: str, site: SiteInfo) -> dict[str, Any]:
    """The body. Fields may be added within a version; existing fields never change their meaning."""
    return {
        "version": SHAPE_VERSION,
        "kind": message.kind.value,
        "key": message.key,
        "cluster": site.cluster,
        "channel": channel,
        "created_at": _iso(message.created_at),
        "page_url": site.page_url,
        "group": dict(message.group),
        "turns": [_plain_turn(turn, site) for turn in message.turns],
        "tallies": [_plain_tally(tally) for tally in message.tallies],
    }


def _plain_turn(turn: AlertTurn, site: SiteInfo) -> dict[str, Any]:
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
        "url": site.workload_url(turn.workload),
    }


def _plain_tally(tally: Tally) -> dict[str, Any]:
    return {
        "rule": {"key": tally.rule, "name": tally.rule_name, "severity": tally.severity.value},
        "started": tally.started,
        "stopped": tally.stopped,
        "first_at": _iso(tally.first_at),
        "last_at": _iso(tally.last_at),
    }


def _build_headers(key: str, body: bytes, now: UnixMs, secret: str | None) -> dict[str, str]:
    """Headers with the idempotency key under both common names, and the signature of standardwebhooks.com."""
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
    """The bytes of a secret: ``whsec_`` and base64, as in the standard, or any text."""
    if secret.startswith("whsec_"):
        try:
            return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        except binascii.Error:
            pass
    return secret.encode()


def _iso(at: UnixMs) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
