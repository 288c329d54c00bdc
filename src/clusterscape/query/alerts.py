"""How the channels do that people are alerted through."""

from clusterscape.query.rule_answers import AlertState, ChannelAnswer
from clusterscape.watch.watcher import Watch


class AlertQuery:
    """Questions about alerts. Without any channel the answer is empty."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def state(self) -> AlertState:
        """Every channel that is configured or that something still waits for."""
        alerts = self._watch.alerts
        if alerts is None:
            return AlertState(channels=[], unposted=0)
        configured = alerts.names
        channels = [
            ChannelAnswer(
                name=each.name,
                kind=each.kind,
                is_configured=each.name in configured,
                waiting=each.waiting,
                waiting_turns=each.waiting_turns,
                delivered=each.delivered,
                delivered_at=each.delivered_at,
                failing_since=each.failing_since,
                last_error=each.last_error,
                is_lasting=each.is_lasting,
                attempts=each.attempts,
                next_attempt_at=each.next_attempt_at,
            )
            for each in alerts.state()
        ]
        shown = [each for each in channels if each.is_configured or each.waiting or each.waiting_turns]
        return AlertState(channels=shown, unposted=self._watch.unposted)
