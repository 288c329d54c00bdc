"""What-ifs that take a while: begun, looked after, stopped. Owns the thread they run in; the answers are `WhatIfQuery`'s."""

import logging
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from clusterscape.errors import ClusterScapeError, NotFoundError, StoppedError
from clusterscape.model.viewers import ANYONE_HERE, Viewer
from clusterscape.query.fair_queue import FairWorker
from clusterscape.query.ownership import check_began, is_owner
from clusterscape.query.scheduling.whatif import WhatIfQuery
from clusterscape.query.scheduling.whatif_answers import QueueWhatIf, WhatIfProgress
from clusterscape.settings.limits import WorkLimits

log = logging.getLogger(__name__)

KEPT_RUNS = 64
KEPT_RUNS_PER_USER = 8
"""Runs that are over and still readable."""


@dataclass(slots=True)
class _Run:
    """``began``: login of who began it; ``scope``: code of whose names they read then; ``user``: whom it counts for in limits."""

    progress: WhatIfProgress
    job: Callable[[], None]
    began: str | None
    scope: str
    user: str


@dataclass(slots=True)
class _Board:
    """The runs of all viewers, and the one thread that simulates them."""

    worker: FairWorker
    lock: threading.Lock = field(default_factory=threading.Lock)
    runs: OrderedDict[str, _Run] = field(default_factory=OrderedDict)

    def add(self, run: _Run) -> None:
        """Remember a run; the oldest that are over go, first the user's own."""
        with self.lock:
            self.runs[run.progress.run] = run
            self._drop([name for name, each in self._over() if each.user == run.user], KEPT_RUNS_PER_USER)
            self._drop([name for name, _ in self._over()], KEPT_RUNS)

    def change(self, name: str, **changes: object) -> bool:
        """Change a run that goes on; False where it is over or forgotten."""
        with self.lock:
            run = self.runs.get(name)
            if run is None or run.progress.state != "running":
                return False
            run.progress = replace(run.progress, **changes)  # type: ignore[arg-type]  # fields of one dataclass by name
            return True

    def _over(self) -> list[tuple[str, _Run]]:
        return [(name, run) for name, run in self.runs.items() if run.progress.state != "running"]

    def _drop(self, names: list[str], most: int) -> None:
        for name in names[: max(0, len(names) - most)]:
            del self.runs[name]


class WhatIfRuns:
    """Thread-safe; one runs at a time. ``whole``: shares the thread and the limits with the runs of other viewers."""

    def __init__(
        self,
        what_if: WhatIfQuery,
        limits: WorkLimits,
        *,
        is_private: bool = False,
        scope: str = "",
        whole: "WhatIfRuns | None" = None,
    ) -> None:
        """``is_private``: runs of others, or begun in another scope, do not exist for a viewer.

        ``scope``: code of the viewer scope of these runs; empty: every name is shown.
        """
        self._what_if = what_if
        self._is_private = is_private
        self._scope = scope
        worker = FairWorker("what-if", per_user=limits.runs_per_user, waiting=limits.runs_waiting)
        self._board: _Board = _Board(worker) if whole is None else whole._board

    def start(self, what: QueueWhatIf, *, by: Viewer = ANYONE_HERE, user: str = "") -> WhatIfProgress:
        """Begin to simulate; raises QueryError at once where a change names what is not there.

        ``user``: whom it counts for. Raises ThrottledError where they have too many already.
        """
        self._board.worker.check(user)
        self._what_if.check(what)
        progress = WhatIfProgress(run=secrets.token_hex(8), state="running", progress=0.0, problem=None, answer=None)
        run = _Run(progress, partial(self._play, progress.run, what), by.login, self._scope, user)
        self._board.add(run)
        try:
            self._board.worker.submit(user, run.job)
        except ClusterScapeError:
            self._board.change(progress.run, state="stopped")
            raise
        return progress

    def find(self, name: str, *, by: Viewer = ANYONE_HERE) -> WhatIfProgress:
        """How far it is, and the answer once it is done."""
        return self._run(name, by).progress

    def stop(self, name: str, *, by: Viewer = ANYONE_HERE) -> WhatIfProgress:
        """Do not go on with it; one that is over is left as it is. Raises ForbiddenError where somebody else began it."""
        run = self._run(name, by)
        check_began(run.began, by, "the what-if")
        self._board.change(name, state="stopped")
        self._board.worker.withdraw(run.user, run.job)
        return run.progress

    def _run(self, name: str, by: Viewer) -> _Run:
        with self._board.lock:
            run = self._board.runs.get(name)
        if run is None or (self._is_private and not self._may_see(run, by)):
            raise NotFoundError(f"there is no what-if {name!r}", hint="Ask for it again.")
        return run

    def _may_see(self, run: _Run, by: Viewer) -> bool:
        return is_owner(run.began, by) and self._scope in ("", run.scope)

    def _play(self, name: str, what: QueueWhatIf) -> None:
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
            # A thread of a pool keeps what it raises to itself: whoever waits must hear of it.
            log.exception("a what-if failed")
            change(name, state="failed", problem="the simulation failed; the server's log says why")
