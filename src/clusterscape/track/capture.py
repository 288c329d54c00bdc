"""What a PyTorch training script says of itself while it is profiled: ``clusterscape.trace.capture``.

Starts torch's profiler and writes, per rank, its trace and beside it a capture file (``capture_places.py``) that is read with the
trace (``collect/traces/captures.py``). Imports torch only when called; draws no conclusions.
"""

import json
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from clusterscape.errors import ClusterScapeError

if TYPE_CHECKING:
    import torch
    from torch.distributed.device_mesh import DeviceMesh
    from torch.profiler import profile

    from clusterscape.track.capture_modules import Calls

WARM_UP_STEPS = 1
"""The first steps pay for allocations and lazy imports: torch runs the profiler there and keeps nothing."""


class Removable(Protocol):
    """A hook that can be taken off again."""

    def remove(self) -> None:
        """Take it off."""


class Capture:
    """One profiled stretch of one rank; leaves with the ``with`` block, whatever has been written by then stays.

    ``files`` names what was written: the trace and the capture file.
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
        self._profile = self._make_profile(steps, skip_steps, record_shapes, records_memory)

    def __enter__(self) -> Self:
        from clusterscape.track.capture_modules import name_modules, record_calls

        for model in self._models:
            if self._names_modules:
                self._hooks += name_modules(model)
            hooks, calls = record_calls(model)
            self._hooks += hooks
            self._calls.append(calls)
        self._profile.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._profile.stop()
        finally:
            self._unhook()
        if error is None and not self.files:
            warnings.warn("nothing was captured: the block ended before the first step after warming up", stacklevel=2)

    def step(self) -> None:
        """To be called at the end of every training step."""
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
            self._models, profiled, self.folder, mesh=self._mesh, stage=self._stage, calls=self._calls
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
) -> tuple[Path, Path]:
    """Write the trace of a profiler one runs oneself, and the capture file: in its ``on_trace_ready``, or once it has stopped.

    ``calls``: of each model what ``record_calls`` saw.
    """
    from clusterscape.track.capture_places import describe_run

    document = describe_run(_as_list(model), mesh=mesh, stage=stage, calls=calls)
    into = Path(folder)
    into.mkdir(parents=True, exist_ok=True)
    trace = into / f"trace_rank{document['rank']}.json.gz"
    beside = into / f"capture_rank{document['rank']}.json"
    profiled.export_chrome_trace(str(trace))
    document["trace"] = trace.name
    whole = beside.with_name(f"{beside.name}.{os.getpid()}.part")
    whole.write_text(json.dumps(document), encoding="utf-8")
    whole.replace(beside)
    return trace, beside


def _as_list(model: "torch.nn.Module | Sequence[torch.nn.Module]") -> "list[torch.nn.Module]":
    """Several model chunks of one rank (interleaved pipelines) are as good as one."""
    return list(model) if isinstance(model, (list, tuple)) else [model]  # type: ignore[list-item]
