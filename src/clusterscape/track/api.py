"""``clusterscape.run()``: what a script calls to say more than its hardware tells. Nothing here waits for a disk or a network."""

import atexit
import fcntl
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from clusterscape.track.clock import SteadyClock
from clusterscape.track.places import LOCK_FILE, RUN_VARIABLE, make_run_folder, state_folder
from clusterscape.track.redaction import Redactor
from clusterscape.track.spool import Spool

_INT64_LIMIT = 2**63


class Run:
    """A handle on the run this process belongs to, or on one of its own where nobody tracks the process."""

    def __init__(self, folder: Path, clock: SteadyClock, *, is_own: bool) -> None:
        self.id = folder.name
        self.folder = folder
        self._clock = clock
        self._is_own = is_own
        self._is_open = True
        self.redactor = Redactor(os.environ, sys.orig_argv)
        self._open_spool()
        os.register_at_fork(after_in_child=self._forked)
        atexit.register(self.close)

    def log(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Numbers by name, at this moment and, where given, this step. Never waits; NaN and ±inf are kept."""
        if step is not None and not -_INT64_LIMIT < step < _INT64_LIMIT:
            raise ValueError(f"step {step} does not fit into 64 bits")
        for value in metrics.values():
            if type(value) is not float:
                metrics = {str(name): _number(name, number) for name, number in metrics.items()}
                break
        if self._is_open:
            self._spool.add(self._clock.now_us(), step, metrics)

    def params(self, params: Mapping[str, object]) -> None:
        """What the run was told to do, such as its learning rate."""
        self._event("params", params={str(name): str(value) for name, value in params.items()})

    def tag(self, **tags: object) -> None:
        """Words to find the run by."""
        self._event("tags", tags={name: str(value) for name, value in tags.items()})

    def epoch(self, number: int) -> None:
        """Epoch ``number`` begins now."""
        self._event("mark", kind="epoch", name=str(number), at=self._clock.now_ms())

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """What happens inside is phase ``name``, such as ``validation``."""
        self._event("mark", kind="phase", name=name, at=self._clock.now_ms())
        try:
            yield
        finally:
            self._event("mark", kind="phase_end", name=name, at=self._clock.now_ms())

    def close(self) -> None:
        """Write what waits. Called by itself at the end of the process."""
        self._finish("completed", None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self._finish("completed", None)
        elif isinstance(error, KeyboardInterrupt):
            self._finish("cancelled", "interrupted")
        else:
            cause = self.redactor.text(
                f"{type(error).__name__}: {error}"
            )  # before it is cut: half a secret has no shape
            self._finish("failed", cause[:2000])

    def _finish(self, state: str, cause: str | None) -> None:
        if not self._is_open:
            return
        self._is_open = False
        if self._is_own:
            self._spool.flush()
            self._spool.event("end", state=state, cause=cause, at=self._clock.now_ms())
        self._spool.close()
        atexit.unregister(self.close)

    def _event(self, event: str, **fields: object) -> None:
        if self._is_open:
            self._spool.event(event, **fields)

    def _open_spool(self) -> None:
        self._spool = Spool(self.folder / f"script-{os.getpid()}.spool", self.redactor)
        self._spool.event("process", pid=os.getpid(), rank=_rank())
        self._spool.start()

    def _forked(self) -> None:
        """A child has a file of its own, and the end is its parent's to tell."""
        if self._is_open:
            self._spool.abandon()
            self._is_own = False
            self._open_spool()


_current: Run | None = None


def run(*, name: str | None = None, experiment: str | None = None) -> Run:
    """The run this process belongs to. Outside ``clusterscape run`` a new one begins, spooled like any other."""
    global _current  # a process belongs to one run
    if _current is not None and _current._is_open:
        return _current
    told = os.environ.get(RUN_VARIABLE, "")
    anchor, _, folder = told.partition(":")
    if folder and Path(folder).is_dir():
        _current = Run(Path(folder), SteadyClock(int(anchor)), is_own=False)
        if name is not None:
            _current.tag(name=name)
    else:
        _current = _begin_own(name, experiment)
    return _current


def _begin_own(name: str | None, experiment: str | None) -> Run:
    import getpass
    import socket

    clock = SteadyClock()
    folder = make_run_folder(state_folder())
    # Held until the process ends, however it ends: it says that the run goes on.
    fcntl.flock(os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), fcntl.LOCK_EX)
    begun = Run(folder, clock, is_own=True)
    begun._event(
        "run",
        run=folder.name,
        name=name or Path(sys.argv[0]).name or "python",
        experiment=experiment,
        user=getpass.getuser(),
        host=socket.gethostname().partition(".")[0],
        pid=os.getpid(),
        command=[sys.executable, *sys.argv],
        cwd=str(Path.cwd()),
        queued_at=clock.now_ms(),
    )
    begun._event("moment", moment="running", at=clock.now_ms())
    return begun


def _number(name: str, value: object) -> float:
    """Also numpy's and torch's scalars, read now: they may change later."""
    if isinstance(value, str | bytes) or value is None:
        raise TypeError(f"metric {name!r} is {value!r}, not a number")
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError(f"metric {name!r} is {value!r}, not a number") from None


def _rank() -> int | None:
    told = os.environ.get("RANK") or os.environ.get("SLURM_PROCID")
    return int(told) if told and told.isdigit() else None
