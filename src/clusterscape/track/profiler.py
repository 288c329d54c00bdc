"""NVIDIA's profilers in front of a run's command; their reports lie in its folder. A profiled run is slower, and says so."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from clusterscape.errors import ConfigError

_WORDS = {
    "nsys": ("profile", "--trace=cuda,nvtx", "--sample=none", "--force-overwrite=true", "--output={report}"),
    "ncu": ("--target-processes=all", "--force-overwrite", "--export={report}"),
}
PROFILERS = tuple(_WORDS)
REPORT = "profile"
"""The report's name in the run's folder, without its ending."""


def check_profiler(name: str) -> str:
    """The name; raises ConfigError where there is no such profiler, or not on this machine."""
    if name not in _WORDS:
        raise ConfigError(f"unknown profiler `{name}`", hint=f"There are: {', '.join(PROFILERS)}.")
    if shutil.which(name) is None:
        raise ConfigError(f"{name} is not installed", hint="It comes with NVIDIA Nsight; put its folder on PATH.")
    return name


def wrap(words: Sequence[str], profiler: str | None, folder: Path) -> list[str]:
    """The command with the profiler in front."""
    if profiler is None:
        return list(words)
    return [profiler, *(word.format(report=folder / REPORT) for word in _WORDS[profiler]), *words]
