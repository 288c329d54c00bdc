"""Runs what-ifs in the background: start, progress, stop. Owns their thread; `WhatIfQuery` computes the answers."""

import logging
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from clusterscape.errors import ClusterScapeError, NotFoundError, StoppedError
from clusterscape.executors import FairWorker
from clusterscape.model.access import LOCAL_ADMIN, Viewer
from clusterscape.query.ownership import check_starter, is_owner
from clusterscape.query.scheduling.whatif import WhatIfQuery
from clusterscape.query.scheduling.whatif_answers import QueueWhatIf, WhatIfProgress
from clusterscape.settings.limits import WorkLimits

log = logging.getLogger(__name__)

KEPT_RUNS = 64
KEPT_RUNS_PER_USER = 8
"""Finished runs that can still be read."""


@dataclass(slots=True)
class _Run:
    """``started_by``: a login; ``scope``: code of the viewer scope in which it was started; ``user``: for per-user limits."""

    progress: WhatIfProgress
    job: Callable[[], None]
    started_by: str | None
    scope: str
    user: str


@dataclass(slots=True)
class _Board:
    """The runs of all viewers, and the one thread that simulates them."""

    worker: FairWorker
    lock: threading.Lock = field(default_factory=threading.Lock)
    runs: OrderedDict[str, _Run] = field(default_factory=OrderedDict)

    def add(self, run: _Run) -> None:
        """Adds a run; removes the oldest finished ones, first those of the same user."""
        with self.lock:
            self.runs[run.progress.run] = run
            self._drop([name for name, other in self._finished() if other.user == run.user], KEPT_RUNS_PER_USER)
            self._drop([name for name, _ in self._finished()], KEPT_RUNS)

    def change(self, name: str, **changes: object) -> bool:
        """Changes a running run; returns False if it is finished or unknown."""
        with self.lock:
            run = self.runs.get(name)
            if run is None or run.progress.state != "running":
                return False
            run.progress = replace(run.progress, **changes)  # type: ignore[arg-type]  # fields of one dataclass by name
            return True

    def _finished(self) -> list[tuple[str, _Run]]:
        return [(name, run) for name, run in self.runs.items() if run.progress.state != "running"]

    def _drop(self, names: list[str], most: int) -> None:
        for name in names[: max(0, len(names) - most)]:
            del self.runs[name]


class WhatIfRuns:
    """Thread-safe; one runs at a time. ``unscoped``: shares the thread and the limits with the runs of other viewers."""

    def __init__(
        self,
        what_if: WhatIfQuery,
        limits: WorkLimits,
        *,
        is_private: bool = False,
        scope: str = "",
        unscoped: "WhatIfRuns | None" = None,
    ) -> None:
        """``is_private``: runs of other users, or started in another scope, are hidden.

        ``scope``: code of the viewer scope of these runs; empty: all names are shown.
        """
        self._what_if = what_if
        self._is_private = is_private
        self._scope = scope
        worker = FairWorker("what-if", per_user=limits.simulations_per_user, waiting=limits.queued_simulations)
        self._board: _Board = _Board(worker) if unscoped is None else unscoped._board

    def start(self, what: QueueWhatIf, *, by: Viewer = LOCAL_ADMIN, user: str = "") -> WhatIfProgress:
        """Starts a simulation; raises QueryError if the change is invalid.

        ``user``: for per-user limits. Raises ThrottledError if the user has too many.
        """
        self._board.worker.check(user)
        self._what_if.check(what)
        progress = WhatIfProgress(run=secrets.token_hex(8), state="running", progress=0.0, problem=None, answer=None)
        run = _Run(progress, partial(self._simulate, progress.run, what), by.login, self._scope, user)
        self._board.add(run)
        try:
            self._board.worker.submit(user, run.job)
        except ClusterScapeError:
            self._board.change(progress.run, state="stopped")
            raise
        return progress

    def find(self, name: str, *, by: Viewer = LOCAL_ADMIN) -> WhatIfProgress:
        """The progress, and the answer once it is done."""
        return self._run(name, by).progress

    def stop(self, name: str, *, by: Viewer = LOCAL_ADMIN) -> WhatIfProgress:
        """Stops a run; a finished one is unchanged. Raises ForbiddenError if another user started it."""
        run = self._run(name, by)
        check_starter(run.started_by, by, "the what-if")
        self._board.change(name, state="stopped")
        self._board.worker.withdraw(run.user, run.job)
        return run.progress

    def _run(self, name: str, by: Viewer) -> _Run:
        with self._board.lock:
            run = self._board.runs.get(name)
        if run is None or (self._is_private and not self._may_see(run, by)):
            raise NotFoundError(f"no what-if {name!r}", hint="Start it again.")
        return run

    def _may_see(self, run: _Run, by: Viewer) -> bool:
        return is_owner(run.started_by, by) and self._scope in ("", run.scope)

    def _simulate(self, name: str, what: QueueWhatIf) -> None:
        change = self._board.change

        def report(share: float) -> None:
            if not change(name, progress=share):
                raise StoppedError("the what-if was stopped")

        try:
            report(0.0)
            change(name, answer=self._what_if.ask(what, report), progress=1.0, state="done")
        except StoppedError:
            return
        except ClusterScapeError as error:
            change(name, state="failed", problem=error.public_message)
        except Exception:
            # A pool thread swallows exceptions, so the failure is recorded for the client that polls.
            log.exception("a what-if failed")
            change(name, state="failed", problem="the simulation failed; see the server's log")
