"""Sharing of a GPU by the runs of a workload (time slicing, MIG instances of ``mig.py``, or MPS), and the resources that are
held while they run together.

The MPS daemon runs as long as the workload.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from clusterscape.errors import ConfigError, SourceError
from clusterscape.track.devices import CPU, MigInstance, reserve
from clusterscape.track.places import make_private_folder
from clusterscape.track.plans.mig import MigDriver, NvmlMig, check_profiles, hold_instances, parse_profile

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
            raise ConfigError(f"`{text}` is not a share of threads", hint="Give percent: mps=50.")
        return Collocation(MPS, int(share) if share else None)
    if (profile := parse_profile(word)) is not None:
        return Collocation(MIG, profile=profile)
    raise ConfigError(
        f"unknown collocation `{text}`",
        hint="There are: - (time slicing), mps, mps=PERCENT, and MIG profiles such as 3g.20gb.",
    )


@contextmanager
def collocate(kind: str, devices: Sequence[str], state: Path) -> Iterator[dict[str, str]]:
    """Set up sharing for one workload; yields the environment variables of its runs. Does nothing for ``cpu``."""
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


def _control(words: Sequence[str], environ: dict[str, str], text: str | None) -> None:
    try:
        done = subprocess.run(
            [_CONTROL, *words],
            env=environ,
            input=text,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceError(f"{_CONTROL} failed: {error}", hint="`nvidia-smi` shows who uses the GPU.") from None
    if done.returncode and text is None:
        message = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
        raise SourceError(f"MPS did not start: {message}", hint="Is another MPS daemon running on these GPUs?")


class Seat(NamedTuple):
    """Resources that one run requests. All runs of a workload use the same kind of collocation."""

    devices: tuple[str, ...]
    collocation: Collocation


class HeldSeat(NamedTuple):
    """Resources of one run: its environment variables, and the MIG instances that replace its devices."""

    environ: dict[str, str]
    instances: tuple[MigInstance, ...]


@contextlib.contextmanager
def hold_seats(
    seats: Sequence[Seat],
    state: Path,
    *,
    wait_s: float | None,
    on_wait: Callable[[str], None],
    make_driver: Callable[[], MigDriver] = NvmlMig,
) -> Iterator[list[HeldSeat]]:
    """Hold all resources, and release them in any case. Waits for devices that other plans use."""
    devices = sorted({device for seat in seats for device in seat.devices})
    with contextlib.ExitStack() as stack:
        stack.enter_context(reserve(devices, state, wait_s=wait_s, on_wait=on_wait))
        environ = stack.enter_context(collocate(seats[0].collocation.kind, devices, state))
        wanted = [wanted_instances(seat) for seat in seats]
        held: list[list[MigInstance]] = [[] for _ in seats]
        if any(wanted):
            driver = stack.enter_context(contextlib.closing(make_driver()))
            held = stack.enter_context(hold_instances(wanted, state, driver))
        yield [
            HeldSeat(environ | _share(seat.collocation), tuple(instances))
            for seat, instances in zip(seats, held, strict=True)
        ]


def wanted_instances(seat: Seat) -> list[tuple[int, str]]:
    """GPU and MIG profile of each instance that a run requests."""
    if seat.collocation.kind != MIG or seat.collocation.profile is None:
        return []
    return [(int(device), seat.collocation.profile) for device in seat.devices if device.isdigit()]


def check_instances(seats: Sequence[Seat]) -> None:
    """Raise ConfigError if a GPU does not offer a requested profile; queries the driver only if profiles are requested."""
    wanted = [pair for seat in seats for pair in wanted_instances(seat)]
    if wanted:
        with contextlib.closing(NvmlMig()) as driver:
            check_profiles(wanted, driver)


def _share(collocation: Collocation) -> dict[str, str]:
    if collocation.kind != MPS or collocation.share_percent is None:
        return {}
    return {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(collocation.share_percent)}
