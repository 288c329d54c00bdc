"""What-ifs that take a while: begun, looked after, stopped. Owns the thread they run in; the answers are `WhatIfQuery`'s."""

import logging
import secrets
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from clusterscape.errors import ClusterScapeError, NotFoundError, StoppedError
from clusterscape.query.scheduling.whatif import WhatIfQuery
from clusterscape.query.scheduling.whatif_answers import QueueWhatIf, WhatIfProgress

log = logging.getLogger(__name__)

KEPT_RUNS = 16


class WhatIfRuns:
    """Thread-safe; one runs at a time. The last ones are kept for those who still look at them."""

    def __init__(self, what_if: WhatIfQuery) -> None:
        self._what_if = what_if
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="what-if")
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, WhatIfProgress] = OrderedDict()

    def start(self, what: QueueWhatIf) -> WhatIfProgress:
        """Begin to simulate; raises QueryError at once where a change names what is not there."""
        self._what_if.check(what)
        run = WhatIfProgress(run=secrets.token_hex(8), state="running", progress=0.0, problem=None, answer=None)
        with self._lock:
            self._runs[run.run] = run
            while len(self._runs) > KEPT_RUNS:
                self._runs.popitem(last=False)
        self._pool.submit(self._play, run.run, what)
        return run

    def find(self, name: str) -> WhatIfProgress:
        """How far it is, and the answer once it is done."""
        with self._lock:
            found = self._runs.get(name)
        if found is None:
            raise NotFoundError(f"there is no what-if {name!r}", hint="Ask for it again.")
        return found

    def stop(self, name: str) -> WhatIfProgress:
        """Do not go on with it; one that is over is left as it is."""
        self._tell(name, state="stopped")
        return self.find(name)

    def _play(self, name: str, what: QueueWhatIf) -> None:
        def tell(share: float) -> None:
            if not self._tell(name, progress=share):
                raise StoppedError("the what-if was stopped")

        try:
            tell(0.0)
            self._tell(name, answer=self._what_if.ask(what, tell), progress=1.0, state="done")
        except StoppedError:
            return
        except ClusterScapeError as error:
            self._tell(name, state="failed", problem=error.message)
        except Exception:
            # A thread of a pool keeps what it raises to itself: whoever waits must hear of it.
            log.exception("a what-if failed")
            self._tell(name, state="failed", problem="the simulation failed; the server's log says why")

    def _tell(self, name: str, **changes: object) -> bool:
        """Change what is known of one that goes on; False where it is over, stopped or forgotten."""
        with self._lock:
            found = self._runs.get(name)
            if found is None or found.state != "running":
                return False
            self._runs[name] = replace(found, **changes)  # type: ignore[arg-type]  # fields of one dataclass by name
            return True
