"""Alertmanager, API v2: one alert per (rule, workload), repeated while it fires, resolved when it stops."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from clusterscape.model.ids import UnixMs
from clusterscape.watch.alerts.channels.http import post
from clusterscape.watch.alerts.channels.site_info import SiteInfo
from clusterscape.watch.alerts.contract import DeliveryResult, Firing, Message, MessageKind, SendingPolicy
from clusterscape.watch.alerts.turns import AlertTurn

_TEST_ALERT_MS = 60_000
_BATCH = 500
"""Alerts in one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertmanagerChannel:
    """An Alertmanager. It resolves alerts that are not repeated within ``resolve_timeout_ms``."""

    name: str
    policy: SendingPolicy
    site: SiteInfo
    clock: Callable[[], UnixMs]
    url: str
    token: str | None = None
    labels: Mapping[str, str]
    resolve_timeout_ms: int = 300_000
    timeout_s: float = 10.0
    proxy: str | None = None
    kind: str = "alertmanager"

    @property
    def refresh_every_ms(self) -> int:
        """A third of the resolve timeout, so that two repetitions may be lost."""
        return self.resolve_timeout_ms // 3

    def can_reach(self, turn: AlertTurn) -> bool:
        """Always: Alertmanager routes alerts itself."""
        del turn
        return True

    async def send(self, message: Message) -> DeliveryResult:
        """Post the new state of the message's subjects. Idempotent."""
        now = self.clock()
        if message.kind is MessageKind.TEST:
            return await self._post([self._test_alert(now)], now)
        stopped_at = {turn.subject: turn.at for turn in message.turns if not turn.is_start}
        alerts = [
            self._alert(firing, now, None if firing.parts else stopped_at.get(subject, now))
            for subject, firing in message.firing.items()
        ]
        return await self._post(alerts, now)

    async def refresh(self, firing: Sequence[Firing]) -> DeliveryResult:
        """Post all firing alerts again."""
        now = self.clock()
        return await self._post([self._alert(alert, now, None) for alert in firing], now)

    async def _post(self, alerts: Sequence[dict[str, Any]], now: UnixMs) -> DeliveryResult:
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        address = f"{self.url.rstrip('/')}/api/v2/alerts"
        result = DeliveryResult(is_accepted=True, text="nothing to send")
        for first in range(0, len(alerts), _BATCH):
            body = json.dumps(alerts[first : first + _BATCH], ensure_ascii=False).encode()
            result = await post(address, body, headers, timeout_s=self.timeout_s, proxy=self.proxy, now=now)
            if not result.is_accepted:
                break
        return result

    def _alert(self, firing: Firing, now: UnixMs, ended_at: UnixMs | None) -> dict[str, Any]:
        """Labels identify the alert, so they come from its first turn, even if properties changed later."""
        turn = firing.first
        labels = {
            "alertname": turn.rule,
            "severity": turn.severity.value,
            "workload": turn.workload,
            "cluster": self.site.cluster,
            "user": turn.user,
            "project": turn.project,
            "partition": turn.partition,
        }
        annotations = {
            "summary": f"{turn.rule_name}: {turn.workload}",
            "description": turn.reason,
            "units": ", ".join(sorted(part for part in firing.parts if part)),
            "values": turn.readings,
        }
        ends_at = now + self.resolve_timeout_ms if ended_at is None else ended_at
        alert: dict[str, Any] = {
            "labels": {**{key: value for key, value in labels.items() if value}, **self.labels},
            "annotations": {key: value for key, value in annotations.items() if value},
            "startsAt": _iso(min(turn.since, ends_at)),
            "endsAt": _iso(ends_at),
        }
        url = self.site.workload_url(turn.workload)
        return alert if url is None else {**alert, "generatorURL": url}

    def _test_alert(self, now: UnixMs) -> dict[str, Any]:
        labels = {"alertname": "ClusterScapeTest", "severity": "info", "cluster": self.site.cluster}
        return {
            "labels": {**labels, **self.labels},
            "annotations": {"summary": "Test message: alerts of ClusterScape are delivered here"},
            "startsAt": _iso(now),
            "endsAt": _iso(now + _TEST_ALERT_MS),
        }


def _iso(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
