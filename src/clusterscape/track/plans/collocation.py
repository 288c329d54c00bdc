"""How the runs of a workload share a GPU: by time slicing, on MIG instances (``mig.py``), or through MPS.

The daemon of MPS lives as long as the workload.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from clusterscape.errors import ConfigError, SourceError
from clusterscape.track.devices import CPU
from clusterscape.track.places import make_private_folder
from clusterscape.track.plans.mig import parse_profile

NONE = "-"
MPS = "mps"
MIG = "mig"
_CONTROL = "nvidia-cuda-mps-control"
_TIMEOUT_S = 30.0


class Collocation(NamedTuple):
    """``share_percent``: of the GPU's threads, for each run under MPS; None lets it use all. ``profile``: of its MIG instance."""

    kind: str = NONE
    share_percent: int | None = None
    profile: str | None = None

    def __str__(self) -> str:
        if self.profile is not None:
            return self.profile
        return self.kind if self.share_percent is None else f"{self.kind}={self.share_percent}"


def parse_collocation(text: str) -> Collocation:
    """``-`` or nothing, ``mps``, ``mps=50``, or a MIG profile such as ``3g.20gb``."""
    word = text.strip().lower()
    if word in ("", NONE, "none", "nan"):
        return Collocation()
    kind, _, share = word.partition("=")
    if kind == MPS:
        if share and not (share.isdigit() and 1 <= int(share) <= 100):
            raise ConfigError(f"`{text}` is no share of threads", hint="Give percent: mps=50.")
        return Collocation(MPS, int(share) if share else None)
    if (profile := parse_profile(word)) is not None:
        return Collocation(MIG, profile=profile)
    raise ConfigError(
        f"unknown collocation `{text}`",
        hint="There are: - (time slicing), mps, mps=PERCENT, and MIG profiles such as 3g.20gb.",
    )


@contextmanager
def collocate(kind: str, devices: Sequence[str], state: Path) -> Iterator[dict[str, str]]:
    """Set up sharing for one workload; yields the variables its runs need. On ``cpu`` there is nothing to set up."""
    gpus = sorted({device for device in devices if device != CPU})
    if kind != MPS or not gpus:
        yield {}
        return
    if shutil.which(_CONTROL) is None:
        raise SourceError(f"{_CONTROL} is not installed", hint="It comes with the driver; or use collocation -.")
    make_private_folder(state)
    # A socket's path may have 108 bytes: the state folder can be too deep for it.
    with tempfile.TemporaryDirectory(prefix="clusterscape-mps-") as folder:
        environ = {
            "CUDA_MPS_PIPE_DIRECTORY": f"{folder}/pipe",
            "CUDA_MPS_LOG_DIRECTORY": f"{folder}/log",
        }
        for path in environ.values():
            Path(path).mkdir(mode=0o700)
        inner = {**os.environ, **environ, "CUDA_VISIBLE_DEVICES": ",".join(gpus), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        _control(["-d"], inner, None)
        try:
            yield environ
        finally:
            _control([], inner, "quit\n")


def _control(words: Sequence[str], environ: dict[str, str], told: str | None) -> None:
    try:
        done = subprocess.run(
            [_CONTROL, *words],
            env=environ,
            input=told,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceError(f"{_CONTROL} failed: {error}", hint="`nvidia-smi` shows who uses the GPU.") from None
    if done.returncode and told is None:
        message = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
        raise SourceError(f"MPS did not start: {message}", hint="Is another MPS daemon running on these GPUs?")
