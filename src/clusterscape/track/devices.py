"""Which GPUs and MIG instances a run may use, and the locks that keep two plans of a user from using the same ones at the
same time.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from clusterscape.errors import ConfigError, StoreBusyError
from clusterscape.track.places import make_private_folder


class MigInstance(NamedTuple):
    """A MIG instance of a GPU. ``uuid``: its name in CUDA_VISIBLE_DEVICES."""

    gpu: int
    instance: int
    profile: str
    uuid: str


CPU = "cpu"
_GPUS = Path("/proc/driver/nvidia/gpus")
_DEVICES = Path("/dev")


def parse_devices(text: str) -> tuple[str, ...]:
    """``0``, ``1+2``, ``cpu``; empty or ``-`` leaves the choice to the command."""
    words = [word.strip().lower() for word in text.replace(",", "+").split("+") if word.strip() not in ("", "-")]
    for word in words:
        if word != CPU and not word.isdigit():
            raise ConfigError(
                f"unknown device `{word}`", hint="Devices are GPU indices joined by +, or cpu: 0, 1+2, cpu."
            )
    if CPU in words and len(words) > 1:
        raise ConfigError(f"devices `{text}` are GPUs and cpu at once", hint="Give one or the other.")
    return tuple(dict.fromkeys(words))


def check_devices(devices: Iterable[str], *, gpu_count: Callable[[], int] | None = None) -> None:
    """Raise ConfigError if this machine does not have the devices."""
    gpus = {int(device) for device in devices if device != CPU}
    if not gpus:
        return
    count = (gpu_count or count_gpus)()
    missing = sorted(gpu for gpu in gpus if gpu >= count)
    if missing:
        have = f"it has {count}" if count else "it has no NVIDIA GPU"
        raise ConfigError(
            f"this machine has no GPU {', '.join(map(str, missing))}: {have}", hint="Use other devices, or cpu."
        )


def count_gpus() -> int:
    """Number of GPUs: from the driver's /proc files, device files (some containers have only these), or else NVML."""
    listed = len(list(_GPUS.iterdir())) if _GPUS.is_dir() else 0
    return (
        max(listed, sum(path.name.removeprefix("nvidia").isdigit() for path in _DEVICES.glob("nvidia*")))
        or _count_by_nvml()
    )


def _count_by_nvml() -> int:
    try:
        import pynvml

        pynvml.nvmlInit()
        count = int(pynvml.nvmlDeviceGetCount())
        pynvml.nvmlShutdown()
    except Exception:  # no library or no working driver: no GPU
        return 0
    return count


@contextmanager
def reserve(
    devices: Iterable[str], state: Path, *, wait_s: float | None, on_wait: Callable[[str], None]
) -> Iterator[None]:
    """Lock devices against other plans; waits at most ``wait_s`` for devices in use (None: unlimited)."""
    folder = state / "devices"
    make_private_folder(folder)
    deadline = None if wait_s is None else time.monotonic() + wait_s
    with ExitStack() as held:
        for device in sorted(set(devices)):  # always in the same order, to avoid deadlocks between plans
            fd = os.open(folder / f"{device}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            held.callback(os.close, fd)
            _lock(fd, device, deadline, on_wait)
        yield


def _lock(fd: int, device: str, deadline: float | None, on_wait: Callable[[str], None]) -> None:
    is_notified = False
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if deadline is not None and time.monotonic() >= deadline:
                raise StoreBusyError(
                    f"another plan uses device {device}", hint="Wait for it, or choose another device."
                ) from None
            if not is_notified:
                on_wait(device)
                is_notified = True
            time.sleep(0.2)
        else:
            return
