"""Results of simulations, kept beyond the process that made them: the answer as an artifact, a line about it as a document.

Owns their names, how many are kept and how they are read again. Does not simulate.
"""

from dataclasses import asdict
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from clusterscape.errors import NotFoundError
from clusterscape.model import UnixMs
from clusterscape.model.viewers import Viewer
from clusterscape.query.context import QueryContext
from clusterscape.query.ownership import OWNER, check_owner
from clusterscape.query.scheduling.simulations_answers import SimulationAnswer, SimulationAsk, SimulationRow

KIND = "simulation"
PREFIX = "simulations"
KEPT = 40
KEPT_PER_OWNER = 10
"""Results that are kept, of all and of one owner; the oldest goes when another comes."""

_ANSWER = TypeAdapter(SimulationAnswer)
_ASK = TypeAdapter(SimulationAsk)


class KeptSimulations:
    """Thread-safe, as the stores are. Without a store of artifacts nothing is kept and nothing is found."""

    def __init__(self, context: QueryContext) -> None:
        self._context = context

    def keep(self, answer: SimulationAnswer, owner: str | None = None) -> None:
        """Keep a result, in place of the oldest where there are enough. ``owner``: who asked for it; None: it is everybody's."""
        artifacts, records = self._context.artifacts, self._context.records
        if artifacts is None:
            return
        artifacts.put(_key(answer.simulation), [orjson.dumps(answer)])
        body: dict[str, Any] = {"trace": answer.trace, "made_at": answer.made_at, "asked": asdict(answer.asked)}
        body[OWNER] = owner
        records.write_document(KIND, answer.simulation, body, at_ms=UnixMs(answer.made_at))
        for simulation in self._surplus(owner):
            records.remove_document(KIND, simulation)
            artifacts.delete(_key(simulation))

    def _surplus(self, owner: str | None) -> list[str]:
        """What goes: the owner's beyond their share, then the oldest of all. What operators keep has no share."""
        owners = {document.key: document.body.get(OWNER) for document in self._context.records.documents(KIND)}
        names = [row.simulation for row in self.rows()]
        own = [] if owner is None else [name for name in names if owners.get(name) == owner][KEPT_PER_OWNER:]
        return [*own, *[name for name in names if name not in own][KEPT:]]

    def remove(self, simulation: str, by: Viewer) -> None:
        """Forget a kept result. Raises NotFoundError where there is none, ForbiddenError where it is somebody else's."""
        document = self._context.records.document(KIND, simulation)
        if document is None:
            raise NotFoundError(
                f"no result of a simulation {simulation!r} is kept", hint="GET /api/v1/simulations lists them."
            )
        check_owner(document.body.get(OWNER), by, f"the result {simulation}")
        self._context.records.remove_document(KIND, simulation)
        if self._context.artifacts is not None:
            self._context.artifacts.delete(_key(simulation))

    def find(self, simulation: str) -> SimulationAnswer | None:
        """A kept result; None where there is none, or where another version wrote it in a shape that is not read any more."""
        artifacts = self._context.artifacts
        if artifacts is None or not simulation.isalnum():
            return None
        try:
            return _ANSWER.validate_json(artifacts.path(_key(simulation)).read_bytes())
        except (NotFoundError, FileNotFoundError, ValidationError):
            return None

    def rows(self) -> list[SimulationRow]:
        """What is kept, the newest first."""
        found = [_row(document.key, document.body) for document in self._context.records.documents(KIND)]
        return sorted((row for row in found if row is not None), key=lambda row: (-row.made_at, row.simulation))


def _key(simulation: str) -> str:
    return f"{PREFIX}/{simulation}.json"


def _row(simulation: str, body: Any) -> SimulationRow | None:
    try:
        asked = _ASK.validate_python(body["asked"])
        return SimulationRow(simulation=simulation, made_at=body["made_at"], trace=body["trace"], asked=asked)
    except (KeyError, ValidationError):
        return None
