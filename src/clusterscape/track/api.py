"""``clusterscape.run()``: logs metrics, params and tags from a script. Never waits for disk or network."""

import atexit
import fcntl
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from clusterscape.track.places import LOCK_FILE, RUN_VARIABLE, make_run_folder, state_folder
from clusterscape.track.redaction import Redactor
from clusterscape.track.spool import RunClock, Spool

_INT64_LIMIT = 2**63


class Run:
    """The run of this process; a process that is not tracked gets its own run."""

    def __init__(self, folder: Path, clock: RunClock, *, is_own: bool) -> None:
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
        """Log numbers by name, with the current time and optionally a step. Never blocks; NaN and ±inf are kept."""
        if step is not None and not -_INT64_LIMIT < step < _INT64_LIMIT:
            raise ValueError(f"step {step} does not fit into 64 bits")
        for value in metrics.values():
            if type(value) is not float:
                metrics = {str(name): _number(name, number) for name, number in metrics.items()}
                break
        if self._is_open:
            self._spool.add(self._clock.now_us(), step, metrics)

    def params(self, params: Mapping[str, object]) -> None:
        """Log parameters of the run, such as its learning rate."""
        self._event("params", params={str(name): str(value) for name, value in params.items()})

    def tag(self, **tags: object) -> None:
        """Set tags of the run."""
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
        """Flush and close the run. Called automatically at exit."""
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
            )  # before truncation: a truncated secret is not recognized
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
        """A forked child writes its own file; only the parent writes the end."""
        if self._is_open:
            self._spool.abandon()
            self._is_own = False
            self._open_spool()


_current: Run | None = None


def run(*, name: str | None = None, experiment: str | None = None) -> Run:
    """The run this process belongs to. Outside ``clusterscape run``, a new run is started."""
    global _current  # a process belongs to one run
    if _current is not None and _current._is_open:
        return _current
    variable = os.environ.get(RUN_VARIABLE, "")
    anchor, _, folder = variable.partition(":")
    if folder and Path(folder).is_dir():
        _current = Run(Path(folder), RunClock(int(anchor)), is_own=False)
        if name is not None:
            _current.tag(name=name)
    else:
        _current = _begin_own(name, experiment)
    return _current


def _begin_own(name: str | None, experiment: str | None) -> Run:
    import getpass
    import socket

    clock = RunClock()
    folder = make_run_folder(state_folder())
    # The lock marks the run as running; it is released when the process ends, however it ends.
    fcntl.flock(os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), fcntl.LOCK_EX)
    own_run = Run(folder, clock, is_own=True)
    own_run._event(
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
    own_run._event("moment", moment="running", at=clock.now_ms())
    return own_run


def _number(name: str, value: object) -> float:
    """The value as a float, also of numpy and torch scalars; read at once, because they may change later."""
    if isinstance(value, str | bytes) or value is None:
        raise TypeError(f"metric {name!r} is {value!r}, not a number")
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError(f"metric {name!r} is {value!r}, not a number") from None


def _rank() -> int | None:
    rank = os.environ.get("RANK") or os.environ.get("SLURM_PROCID")
    return int(rank) if rank and rank.isdigit() else None
