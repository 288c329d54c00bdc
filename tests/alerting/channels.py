"""An in-process channel with scripted answers, for tests of what happens before and after sending."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from clusterscape.watch.alerts import DeliveryResult, Message, SendingPolicy
from clusterscape.watch.alerts.contract import Firing
from clusterscape.watch.alerts.turns import AlertTurn

OK = DeliveryResult(is_accepted=True, text="200 OK")
DOWN = DeliveryResult(is_accepted=False, text="cannot reach it")
FORBIDDEN = DeliveryResult(is_accepted=False, text="403 Forbidden", is_lasting=True)


@dataclass
class PaperChannel:
    """Records messages. ``answers`` are used first, then everything is accepted."""

    policy: SendingPolicy = field(default_factory=SendingPolicy)
    answers: list[DeliveryResult] = field(default_factory=list)
    name: str = "paper"
    kind: str = "paper"
    refresh_every_ms: int | None = None
    hangs: asyncio.Event | None = None  # set when a message arrives, which is then never answered
    received: list[Message] = field(default_factory=list)
    tried: list[Message] = field(default_factory=list)
    refreshed: list[Sequence[Firing]] = field(default_factory=list)

    def can_reach(self, turn: AlertTurn) -> bool:
        return True

    async def send(self, message: Message) -> DeliveryResult:
        self.tried.append(message)
        if self.hangs is not None:
            self.hangs.set()
            await asyncio.Event().wait()
        answer = self.answers.pop(0) if self.answers else OK
        if answer.is_accepted:
            self.received.append(message)
        return answer

    async def refresh(self, firing: Sequence[Firing]) -> DeliveryResult:
        self.refreshed.append(firing)
        return OK

    def delivered(self) -> list[tuple[str, str]]:
        """(turn, workload) of all that was received, in order."""
        return [(turn.turn.value, turn.workload) for message in self.received for turn in message.turns]
