"""Runs commands together and follows them to their end: barrier, listeners, signals, outcome.

Writes only to the state folder, never to the user's code folder.
"""

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from clusterscape.track.hang_watch import HangServer, HangWatch, Judge
from clusterscape.track.listeners.contract import ListenedRun, ListenerContext
from clusterscape.track.listeners.ticker import Ticker
from clusterscape.track.places import host_folder
from clusterscape.track.processes import (
    Barrier,
    MemoryKills,
    ProcessTree,
    RunOutcome,
    judge_outcome,
    not_started,
    wait_started,
)
from clusterscape.track.reproduce import RECORDED_VARIABLES
from clusterscape.track.spool import RunClock
from clusterscape.track.tracked_run import CPU, RunRequest, TrackedRun, host_name

GRACE_S = 10.0
LISTENER_END_S = 2.0
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class TrackOptions(NamedTuple):
    """Options of a tracker. ``start_background`` starts work during the runs, such as uploads."""

    state: Path
    grace_s: float = GRACE_S
    ends_leftovers: bool = False  # kill processes that outlive the main process of their run
    start_background: Callable[[Sequence[Path]], "BackgroundWork | None"] | None = None
    announce: Callable[[Sequence[RunRequest]], None] | None = None  # called before anything is started
    variables: Sequence[str] = RECORDED_VARIABLES  # patterns of environment variables that are recorded
    judge_hang: Judge | None = None  # judges looks at a run that makes no steps; None: runs are not watched for hangs
    tell: Callable[[Sequence[str]], None] | None = None  # shows lines on a hang to the user


class BackgroundWork(HangServer):
    """Background work during the runs, such as uploads."""

    def finish(self) -> None:
        """Called when the runs have ended and all files are written."""


class Followed(NamedTuple):
    """A run with its processes."""

    run: TrackedRun
    tree: ProcessTree
    listened: ListenedRun
    pidfd: int


def track(requests: Sequence[RunRequest], options: TrackOptions) -> list[TrackedRun]:
    """Run all of ``requests`` at the same time; returns when every one has ended and is written. Call from the main thread."""
    if options.announce is not None:
        options.announce(requests)
    clock = RunClock()
    memory = MemoryKills()
    runs = [TrackedRun(request, options.state, clock) for request in requests]
    stopper = _Stopper(options.grace_s)
    barrier = Barrier()
    children = [barrier.place(run.command()) for run in runs]
    for run, child in zip(runs, children, strict=True):
        run.pid = child.pid
        run.moment("barrier")
    followed_runs = [_follow(run) for run in runs]
    stopper.trees = [followed.tree for followed in followed_runs]
    with stopper:
        barrier.release()
        failures = wait_started(children)
        for run in runs:
            run.moment("running")
        _Following(followed_runs, options, clock, stopper, memory).until_end(failures)
    return runs


def _follow(run: TrackedRun) -> Followed:
    tree = ProcessTree(run.pid)
    gpus = tuple(int(device) for device in run.request.devices if device != CPU)
    listened = ListenedRun(run.id, run.spool, tree, gpus, run.request.instances)
    return Followed(run, tree, listened, os.pidfd_open(run.pid))


class _Stopper:
    """Forwards signals to all processes of all runs; sends SIGKILL at the second signal, or after a grace period."""

    def __init__(self, grace_s: float) -> None:
        self.trees: list[ProcessTree] = []
        self.is_stopping = False
        self._grace_s = grace_s
        self._kill_at: float | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> None:
        for number in _FORWARDED:
            self._before[number] = signal.signal(number, self._stop)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type] # what signal() itself gave

    def _stop(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.is_stopping:
            self._send(signal.SIGKILL)
            return
        self.is_stopping = True
        self._kill_at = time.monotonic() + self._grace_s
        self._send(signal.Signals(number))

    def escalate(self) -> None:
        """Kill processes that have not ended within the grace period."""
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        for tree in self.trees:
            tree.send(number)


class _Following:
    """The time from the start of the commands to the last write."""

    def __init__(
        self,
        followed_runs: Sequence[Followed],
        options: TrackOptions,
        clock: RunClock,
        stopper: _Stopper,
        memory: MemoryKills,
    ) -> None:
        self._followed_runs = followed_runs
        self._options = options
        self._clock = clock
        self._stopper = stopper
        self._memory = memory
        self._tickers: list[Ticker] = []

    def until_end(self, failures: dict[int, int | None]) -> None:
        """Sample metrics, wait for the runs, and write their outcome."""
        for followed in self._followed_runs:
            followed.run.spool.start()
        self._tickers = self._start_tickers()
        describing = threading.Thread(target=self._describe, name="reproducibility", daemon=True)
        describing.start()
        folders = [followed.run.folder for followed in self._followed_runs]
        background = self._options.start_background(folders) if self._options.start_background else None
        watches = self._start_watches(background)
        self._wait(failures)
        for watch in watches:
            watch.stop()
        for ticker in self._tickers:
            ticker.stop(LISTENER_END_S)
        describing.join(LISTENER_END_S)
        for followed in self._followed_runs:
            followed.run.close()
        if background is not None:
            background.finish()

    def _start_tickers(self) -> list[Ticker]:
        """Start one ticker per listener, for all runs that use it."""
        choices = {choice: None for followed in self._followed_runs for choice in followed.run.request.listeners}
        host, folder = host_name(), host_folder(self._options.state)
        tickers = []
        for choice in choices:
            listened = [
                followed.listened for followed in self._followed_runs if choice in followed.run.request.listeners
            ]
            listener = choice.build(lambda argument: ListenerContext(host, folder, argument))
            tickers.append(Ticker(listener, self._clock, listened))
        for ticker in tickers:
            ticker.start()
        return tickers

    def _start_watches(self, server: HangServer | None) -> list[HangWatch]:
        judge = self._options.judge_hang
        if judge is None:
            return []
        watches = [
            HangWatch(
                followed.run.folder,
                followed.tree,
                judge,
                followed.run.spool.event,
                self._teller(followed.run.id),
                self._clock.now_ms,
                self._memory,
                server,
            )
            for followed in self._followed_runs
        ]
        for watch in watches:
            watch.start()
        return watches

    def _teller(self, run: str) -> Callable[[Sequence[str]], None]:
        tell = self._options.tell
        return (lambda lines: tell([f"run {run}:", *lines])) if tell is not None else (lambda _: None)

    def _describe(self) -> None:
        from clusterscape.track.reproduce import describe

        for followed in self._followed_runs:
            command = followed.run.command()
            description = describe(command.cwd, command.environ, command.words, self._options.variables)
            followed.run.spool.event("environment", **description)

    def _wait(self, failures: dict[int, int | None]) -> None:
        poller = select.poll()
        open_runs = {followed.pidfd: followed for followed in self._followed_runs}
        for fd in open_runs:
            poller.register(fd, select.POLLIN)
        while open_runs:
            for fd, _ in poller.poll(200):
                poller.unregister(fd)
                self._end(open_runs.pop(fd), failures)
            self._stopper.escalate()
        if self._stopper.is_stopping or self._options.ends_leftovers:
            self._end_leftovers()

    def _end(self, followed: Followed, failures: dict[int, int | None]) -> None:
        """Take the last samples while the system still lists the process."""
        for ticker in self._tickers:
            ticker.finish(followed.listened)
        _, status = os.waitpid(followed.run.pid, 0)
        os.close(followed.pidfd)
        error_number = failures.get(followed.run.pid)
        if error_number:
            outcome = not_started(followed.run.request.words[0], error_number)
        else:
            outcome = judge_outcome(
                status,
                followed.run.folder,
                was_stopped=self._stopper.is_stopping,
                memory_ran_out=self._memory.has_risen(),
            )
        followed.run.end(outcome)

    def _end_leftovers(self) -> None:
        """Handle processes that still run after their run has ended."""
        deadline = time.monotonic() + self._options.grace_s
        number = signal.SIGTERM
        count = {followed.run.id: followed.tree.send(number) for followed in self._followed_runs}
        for followed in self._followed_runs:
            if count[followed.run.id]:
                followed.run.spool.event("leftovers", count=count[followed.run.id], at=self._clock.now_ms())
        while any(followed.tree.living() for followed in self._followed_runs):
            if time.monotonic() >= deadline:
                for followed in self._followed_runs:
                    followed.tree.send(signal.SIGKILL)
            time.sleep(0.05)


def shell_code(outcomes: Sequence[RunOutcome]) -> int:
    """The exit code of the first failed run; 0 if none failed."""
    return next((outcome.shell_code for outcome in outcomes if outcome.state != "completed"), 0)
