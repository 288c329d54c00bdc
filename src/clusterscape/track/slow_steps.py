"""Records the steps of a PyTorch script that are slower than usual: a cause that acts in one of twenty steps is in no trace of
three. ``clusterscape run --record-slow-steps`` loads this file by path into the script's Python; standard library and torch only.

Until a step takes more than 1.3 times the running median, only lengths of steps are kept. Then the profiler runs, a few steps at
a time, and its recording is kept only if one of them is slow again. Ranks agree over the store of their process group: all of
them start, keep and drop the recording of the same steps. A step ends with ``step()`` of the first optimizer.
"""

import atexit
import bisect
import contextlib
import functools
import json
import os
import sys
import time
from collections import deque
from typing import Any

SLOW_RATIO = float(os.environ.get("CLUSTERSCAPE_SLOW_RATIO", "1.3"))
"""Medians from which a step is slow."""
KEPT_LENGTHS = 101
LEAST_LENGTHS = 10
CHUNK_STEPS = 8
"""Recorded at a time, so that the memory for them is bounded."""
ARMED_CHUNKS = 16
"""So long the profiler waits for the next slow step."""
MOST_KEPT = 3
MOST_WRITTEN = 20
"""Recordings of a run: the slowest are kept, and then only slower steps count as slow."""
PATIENCE_S = 30.0
POLL_S = 0.002
KEY = "clusterscape/slow"
FOLDER = "slow-steps"


class StepLengths:
    """The lengths of the last steps and their median."""

    def __init__(self) -> None:
        self._lengths: deque[float] = deque()
        self._sorted: list[float] = []

    @property
    def median_s(self) -> float:
        """Of the last steps."""
        return self._sorted[len(self._sorted) // 2]

    def add(self, length_s: float) -> float:
        """Add a step; returns how many medians it took, 0 as long as there are too few steps."""
        ratio = length_s / self.median_s if len(self._sorted) >= LEAST_LENGTHS else 0.0
        if len(self._lengths) == KEPT_LENGTHS:
            del self._sorted[bisect.bisect_left(self._sorted, self._lengths.popleft())]
        self._lengths.append(length_s)
        bisect.insort(self._sorted, length_s)
        return ratio


class SlowStepRecorder:
    """Called after every step of the training."""

    def __init__(self, folder: str) -> None:
        self.folder = f"{folder}/{FOLDER}"
        self.written = 0
        self._kept: dict[str, float] = {}
        self._lengths = StepLengths()
        self._step = 0
        self._began: float | None = None
        self._slow: dict[int, float] = {}
        self._armed_until = -1
        self._profiler: Any = None
        self._flags: dict[int, float] = {}
        self._optimizer: int | None = None

    def after_step(self, optimizer: object) -> None:
        """A step of an optimizer has ended."""
        if self._optimizer is None:
            self._optimizer = id(optimizer)
        if id(optimizer) != self._optimizer or self.written >= MOST_WRITTEN:
            return
        try:
            self._end_step()
        except Exception as error:  # the script goes on
            self.written = MOST_WRITTEN
            sys.stderr.write(f"clusterscape: slow steps are not recorded any more: {error}\n")

    @property
    def threshold(self) -> float:
        """Medians from which a step is slow."""
        return min(self._kept.values()) if len(self._kept) == MOST_KEPT else SLOW_RATIO

    def close(self) -> None:
        """Stop recording: torch must not end while it records."""
        self.written = MOST_WRITTEN
        profiler, self._profiler = self._profiler, None
        if profiler is not None:
            profiler.stop()

    def _end_step(self) -> None:
        now = time.perf_counter()
        if self._began is not None and (ratio := self._lengths.add(now - self._began)) > self.threshold:
            self._slow[self._step] = ratio
        self._step += 1
        self._began = now
        if self._profiler is not None:
            self._profiler.step()
        if self._step % CHUNK_STEPS == 0:
            self._end_chunk(self._step // CHUNK_STEPS)

    def _end_chunk(self, chunk: int) -> None:
        slow, self._slow = self._slow, {}
        if slow:
            self._flag(chunk, max(slow.values()))
        if self._profiler is None:
            if self._find_slowness(chunk - 1) is None:
                return
            self._armed_until = chunk + ARMED_CHUNKS
        else:
            # Written before the next recording starts: torch keeps only one.
            profiler, self._profiler = self._profiler, None
            profiler.stop()
            self._wait_for_ranks(chunk)
            slowness = self._find_slowness(chunk)
            if slowness is not None:
                self._armed_until = chunk + ARMED_CHUNKS
                self._write(profiler, chunk * CHUNK_STEPS, slow, slowness)
        if chunk < self._armed_until and self.written < MOST_WRITTEN:
            self._profiler = self._start()
        # The next step also pays for this, on all ranks: it is not judged.
        self._began = None

    def _start(self) -> Any:
        import torch
        from torch.profiler import ProfilerActivity, profile

        activities = [ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(ProfilerActivity.CUDA)
        profiler = profile(
            activities=activities,
            schedule=_record_always,
            record_shapes=True,
            acc_events=True,
        )
        profiler.start()
        return profiler

    def _write(self, profiler: Any, last_step: int, slow: "dict[int, float]", slowness: float) -> None:
        rank, size, _ = _find_rank()
        folder = f"{self.folder}/{last_step - CHUNK_STEPS:08d}"
        os.makedirs(folder, 0o700, exist_ok=True)  # noqa: PTH103 - pathlib is slow to import
        trace = f"{folder}/trace_rank{rank}.json.gz"
        profiler.export_chrome_trace(trace)
        document = {
            "schema": "clusterscape_capture", "version": 1, "rank": rank, "world_size": size,
            "trace": trace.rpartition("/")[2], "slow_steps": slow, "median_step_s": self._lengths.median_s,
        }  # fmt: skip
        with open(f"{folder}/capture_rank{rank}.json", "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump(document, file)
        self.written += 1
        self._kept[folder] = slowness
        if len(self._kept) > MOST_KEPT:
            mildest = min(self._kept, key=lambda name: self._kept[name])
            del self._kept[mildest]
            self._remove(mildest, rank)
        if rank == 0 and folder in self._kept:
            sys.stderr.write(
                f"clusterscape: recorded steps {last_step - CHUNK_STEPS} to {last_step - 1}, of which one took {slowness:.1f} "
                f"times the median: clusterscape trace report {folder}\n"
            )

    @staticmethod
    def _remove(folder: str, rank: int) -> None:
        """Remove the files of this rank; the last rank also removes the folder."""
        for name in (f"trace_rank{rank}.json.gz", f"capture_rank{rank}.json"):
            with contextlib.suppress(OSError):
                os.remove(f"{folder}/{name}")  # noqa: PTH107
        with contextlib.suppress(OSError):
            os.rmdir(folder)  # noqa: PTH106

    def _flag(self, chunk: int, slowness: float) -> None:
        self._flags[chunk] = slowness
        store = _find_rank()[2]
        if store is not None:
            store.set(f"{KEY}/{chunk}", str(slowness))

    def _wait_for_ranks(self, chunk: int) -> None:
        """Until all ranks have recorded the chunk: a step that one rank finds slow is kept by all."""
        _, size, store = _find_rank()
        if store is None:
            return
        key, until = f"{KEY}/recorded/{chunk}", time.monotonic() + PATIENCE_S
        recorded = store.add(key, 1)
        while recorded < size:
            if time.monotonic() > until:
                raise TimeoutError("other ranks did not end the same steps")
            time.sleep(POLL_S)
            recorded = store.add(key, 0)

    def _find_slowness(self, chunk: int) -> float | None:
        """Medians that a slow step of the chunk took, as a rank saw it; None if none was. All ranks have ended the chunk, since
        they wait for each other in every step.
        """
        store = _find_rank()[2]
        if store is None:
            return self._flags.get(chunk)
        return float(store.get(f"{KEY}/{chunk}")) if store.check([f"{KEY}/{chunk}"]) else None


def _record_always(_: int) -> Any:
    """A schedule, so that the profiler marks steps."""
    return sys.modules["torch.profiler"].ProfilerAction.RECORD


def _find_rank() -> "tuple[int, int, Any]":
    """Rank, number of ranks, and the store over which they agree; None without a process group."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return int(os.environ.get("RANK", "0") or 0), int(os.environ.get("WORLD_SIZE", "1") or 1), None
    size = distributed.get_world_size()
    store = sys.modules["torch.distributed.distributed_c10d"]._get_default_store() if size > 1 else None
    return distributed.get_rank(), size, store


def start(optimizers: Any, folder: str) -> SlowStepRecorder:
    """Watch the steps of this process; ``optimizers`` is ``torch.optim.optimizer``.

    Torch's own hooks run within a mark of its profiler, which must not start or stop there: so the whole step is wrapped.
    """
    recorder = SlowStepRecorder(folder)
    atexit.register(recorder.close)
    wrap = optimizers.Optimizer.profile_hook_step

    def wrap_and_watch(function: Any) -> Any:
        step = wrap(function)

        @functools.wraps(step)
        def watched(optimizer: object, *arguments: Any, **named: Any) -> Any:
            result = step(optimizer, *arguments, **named)
            recorder.after_step(optimizer)
            return result

        return watched

    optimizers.Optimizer.profile_hook_step = staticmethod(wrap_and_watch)
    return recorder
