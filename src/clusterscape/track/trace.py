"""``clusterscape.trace``: profiles a PyTorch training script and describes its model and ranks.

Starts torch's profiler and writes, per rank, its trace and with it a capture file (``capture.py``) that is read with the
trace (``collect/traces/captures.py``). Imports torch only when called.
"""

import json
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from clusterscape.errors import ClusterScapeError
from clusterscape.track.scheduling import ThreadScheduling, subtract_counts

if TYPE_CHECKING:
    import torch
    from torch.distributed.device_mesh import DeviceMesh
    from torch.profiler import profile

    from clusterscape.track.capture import Calls


KEPT_STEPS = 10_000
"""Of which the scheduler's counts are kept."""
WARM_UP_STEPS = 1
"""The first steps pay for allocations and lazy imports: torch runs the profiler there and keeps nothing."""


class Removable(Protocol):
    """A hook that can be removed."""

    def remove(self) -> None:
        """Remove the hook."""


class Capture:
    """The profiled steps of one rank; ends with the ``with`` block and keeps all files written by then.

    ``files``: the written files, the trace and the capture file.
    """

    def __init__(
        self,
        model: "torch.nn.Module | Sequence[torch.nn.Module]",
        *,
        steps: int | None = 3,
        folder: str | Path = "traces",
        skip_steps: int = 0,
        mesh: "DeviceMesh | None" = None,
        stage: int | None = None,
        names_modules: bool = True,
        record_shapes: bool = True,
        records_memory: bool = True,
    ) -> None:
        if steps is not None and steps < 1:
            raise ClusterScapeError(f"{steps} steps cannot be captured", hint="Capture at least 3 steps.")
        self.folder = Path(folder)
        self.files: tuple[Path, ...] = ()
        self._models = _as_list(model)
        self._mesh = mesh
        self._stage = stage
        self._names_modules = names_modules
        self._hooks: list[Removable] = []
        self._calls: list[Calls] = []
        self._scheduling: ThreadScheduling | None = None
        self._counts: dict[str, float] = {}
        self._steps: list[dict[str, float]] = []
        self._profile = self._make_profile(steps, skip_steps, record_shapes, records_memory)

    def __enter__(self) -> Self:
        from clusterscape.track.capture import name_modules, record_calls

        for model in self._models:
            if self._names_modules:
                self._hooks += name_modules(model)
            hooks, calls = record_calls(model)
            self._hooks += hooks
            self._calls.append(calls)
        self._profile.start()
        self._scheduling = ThreadScheduling()
        self._counts = self._scheduling.read()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._profile.stop()
        finally:
            self._unhook()
            if self._scheduling is not None:
                self._scheduling.close()
        if error is None and not self.files:
            warnings.warn("nothing was captured: the block ended before the first step after warming up", stacklevel=2)

    def step(self) -> None:
        """Call at the end of every training step."""
        if self._scheduling is not None:
            before, self._counts = self._counts, self._scheduling.read()
            self._steps.append({"step": self._profile.step_num, **subtract_counts(self._counts, before)})
            del self._steps[:-KEPT_STEPS]
        self._profile.step()

    def _make_profile(self, steps: int | None, skip_steps: int, record_shapes: bool, records_memory: bool) -> "profile":
        import torch
        from torch.profiler import ProfilerActivity, profile, schedule

        activities = [ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(ProfilerActivity.CUDA)
        plan = schedule(wait=0, warmup=WARM_UP_STEPS, active=steps, repeat=1, skip_first=skip_steps) if steps else None
        return profile(
            activities=activities,
            schedule=plan,
            on_trace_ready=self._write,
            record_shapes=record_shapes,
            profile_memory=records_memory,
            acc_events=True,
        )

    def _write(self, profiled: "profile") -> None:
        self._unhook()
        self.files = write_capture(
            self._models,
            profiled,
            self.folder,
            mesh=self._mesh,
            stage=self._stage,
            calls=self._calls,
            steps=self._steps,
        )

    def _unhook(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()


capture = Capture
"""``with clusterscape.trace.capture(model, steps=3, folder="traces") as capture: … capture.step()``"""


def write_capture(
    model: "torch.nn.Module | Sequence[torch.nn.Module]",
    profiled: "profile",
    folder: str | Path,
    *,
    mesh: "DeviceMesh | None" = None,
    stage: int | None = None,
    calls: "Sequence[Calls]" = (),
    steps: "Sequence[dict[str, float]]" = (),
) -> tuple[Path, Path]:
    """Write the trace and the capture file of your own profiler: call in its ``on_trace_ready``, or after it has stopped.

    ``calls``: the result of ``record_calls`` for each model; ``steps``: what the kernel's scheduler counted in each step.
    """
    from clusterscape.track.capture import describe_run

    document = describe_run(_as_list(model), mesh=mesh, stage=stage, calls=calls)
    into = Path(folder)
    into.mkdir(parents=True, exist_ok=True)
    trace = into / f"trace_rank{document['rank']}.json.gz"
    capture_file = into / f"capture_rank{document['rank']}.json"
    profiled.export_chrome_trace(str(trace))
    document["trace"] = trace.name
    document["steps"] = list(steps)
    temporary = capture_file.with_name(f"{capture_file.name}.{os.getpid()}.part")
    temporary.write_text(json.dumps(document), encoding="utf-8")
    temporary.replace(capture_file)
    return trace, capture_file


def _as_list(model: "torch.nn.Module | Sequence[torch.nn.Module]") -> "list[torch.nn.Module]":
    """A list of the model chunks of one rank (several with interleaved pipelines)."""
    return list(model) if isinstance(model, (list, tuple)) else [model]  # type: ignore[list-item]


__all__ = ["Capture", "capture", "write_capture"]
