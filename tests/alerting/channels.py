"""A channel inside the test that answers as told; for what happens before and after sending, not for sending itself."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from clusterscape.watch.alerts import Answer, Message, Policy
from clusterscape.watch.alerts.contract import Firing
from clusterscape.watch.alerts.turns import AlertTurn

OK = Answer(is_accepted=True, text="200 OK")
DOWN = Answer(is_accepted=False, text="cannot reach it")
FORBIDDEN = Answer(is_accepted=False, text="403 Forbidden", is_lasting=True)


@dataclass
class PaperChannel:
    """Writes down what it is sent. ``answers`` are used up first, then everything is accepted."""

    policy: Policy = field(default_factory=Policy)
    answers: list[Answer] = field(default_factory=list)
    name: str = "paper"
    kind: str = "paper"
    refresh_every_ms: int | None = None
    hangs: asyncio.Event | None = None  # set when a message arrives, which is then never answered
    received: list[Message] = field(default_factory=list)
    tried: list[Message] = field(default_factory=list)
    refreshed: list[Sequence[Firing]] = field(default_factory=list)

    def can_reach(self, turn: AlertTurn) -> bool:
        return True

    async def send(self, message: Message) -> Answer:
        self.tried.append(message)
        if self.hangs is not None:
            self.hangs.set()
            await asyncio.Event().wait()
        answer = self.answers.pop(0) if self.answers else OK
        if answer.is_accepted:
            self.received.append(message)
        return answer

    async def refresh(self, firing: Sequence[Firing]) -> Answer:
        self.refreshed.append(firing)
        return OK

    def told(self) -> list[tuple[str, str]]:
        """(turn, workload) of all that was received, in order."""
        return [(turn.turn.value, turn.workload) for message in self.received for turn in message.turns]
