"""Whether the compiled parts of a server can be used yet.

A server has its numeric kernels compiled in a process of its own (``runtime/compile_kernels.py``), so that it answers meanwhile.
Background work waits for its area; requests get WarmingUpError with the time left. Light to import.
"""

import threading
import time
from collections.abc import Callable, Mapping
from enum import StrEnum

from clusterscape.errors import WarmingUpError


class Area(StrEnum):
    """Parts that are compiled one after another, in this order."""

    RULES = "rules"
    QUEUE = "queue"
    DIAGNOSIS = "diagnosis"
    WHAT_IF = "what-if"


ESTIMATES_S: Mapping[Area, float] = {Area.RULES: 10.0, Area.QUEUE: 5.0, Area.DIAGNOSIS: 20.0, Area.WHAT_IF: 30.0}
"""Seconds to compile each on one free core; what is said of the time left is scaled by how long the first ones took."""


class WarmUp:
    """What is compiled. Where nothing is begun, everything counts as ready: it is compiled where it is first used."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._ready = {area: threading.Event() for area in Area}
        self._began_at = self._step_began_at = 0.0
        self._pace = 1.0
        for event in self._ready.values():
            event.set()

    def begin(self) -> None:
        """Mark all areas as not compiled. Call it before the first request."""
        self._began_at = self._step_began_at = self._monotonic()
        self._pace = 1.0
        for event in self._ready.values():
            event.clear()

    def finish(self, area: Area) -> None:
        """``area`` can be used from now on."""
        self._step_began_at = self._monotonic()
        self._ready[area].set()
        estimated_s = sum(ESTIMATES_S[done] for done in Area if self.is_ready(done))
        self._pace = (self._step_began_at - self._began_at) / estimated_s

    def finish_all(self) -> None:
        """No more is compiled ahead: what is left is compiled where it is first used."""
        for area in Area:
            self.finish(area)

    def is_ready(self, area: Area) -> bool:
        """Whether ``area`` can be used without compiling."""
        return self._ready[area].is_set()

    def wait(self, area: Area, timeout_s: float | None = None) -> bool:
        """Wait until ``area`` is ready; False where ``timeout_s`` passed first."""
        return self._ready[area].wait(timeout_s)

    def remaining_s(self, until: Area | None = None) -> float:
        """Estimated seconds until ``until`` (None: everything) is ready; 0 where it is, at least 1 where it is not."""
        areas = list(Area)
        wanted = areas if until is None else areas[: areas.index(until) + 1]
        missing = [area for area in wanted if not self.is_ready(area)]
        if not missing:
            return 0.0
        spent = self._monotonic() - self._step_began_at
        return max(1.0, self._pace * sum(ESTIMATES_S[area] for area in missing) - spent)

    def require(self, area: Area) -> None:
        """Raises WarmingUpError where ``area`` is not ready."""
        if not self.is_ready(area):
            left_s = round(self.remaining_s(area))
            raise WarmingUpError(
                f"the server has just started and is warming up: about {left_s} s left until this can be answered",
                retry_after_s=max(1, min(left_s, 5)),
                hint="Ask again then; the page and the commands do so by themselves.",
            )
