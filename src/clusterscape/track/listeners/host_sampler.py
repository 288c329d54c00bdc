"""One sampler for all runs of a user on a host: the leader holds the lock, reads the driver and publishes; others follow."""

import contextlib
import fcntl
import json
import os
from collections.abc import Collection
from pathlib import Path

from clusterscape.track.listeners.nvml_reading import GpuReading, InstanceReading, NvmlReader, Part, ProcessReading
from clusterscape.track.places import make_private_folder

_STALE_TICKS = 3
_TOO_SLOW = 1.5
"""A follower reads for itself if the leader's period is longer than this many of its own."""


class HostSampler:
    """Publishes each reading as a small file, replaced atomically. The lock is released when the process ends."""

    def __init__(self, folder: Path, period_s: float) -> None:
        self._folder = folder
        self._file = folder / "nvml.json"
        self._period_s = period_s
        self._reader: NvmlReader | None = None
        self._lock_fd: int | None = None
        self._follow_fd: int | None = None
        self._has_followers = False
        self._last_number = -1
        self._number = 0
        self._silent_ticks = 0

    def open(self) -> None:
        """Open the driver; raises pynvml's error if there is none."""
        make_private_folder(self._folder)
        if not self._lead():
            # Followers also find out here whether there is a driver.
            probe = NvmlReader()
            probe.close()
            self._follow_fd = self._open_lock("followers")
            fcntl.flock(self._follow_fd, fcntl.LOCK_SH)

    def read(self, parts: Part, gpus: Collection[int] | None = None) -> list[GpuReading]:
        """The newest reading, at least of the named GPUs; empty if the leader published nothing since the last call."""
        if self._reader is None and not self._follow_or_lead():
            published = self._read_published()
            if published is not None:
                return published
        assert self._reader is not None
        if Part.STATE in parts:
            self._has_followers = self._lock_fd is not None and self._is_followed()
        if not self._has_followers:
            return self._reader.read(parts, gpus)
        readings = self._reader.read(parts)
        self._publish(readings)
        return readings

    def close(self) -> None:
        """Release the lock, so that another process can lead."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        for fd in (self._lock_fd, self._follow_fd):
            if fd is not None:
                os.close(fd)
        self._lock_fd = self._follow_fd = None

    def _lead(self) -> bool:
        fd = self._open_lock("leader")
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        try:
            self._reader = NvmlReader()
        except BaseException:
            os.close(fd)
            raise
        self._lock_fd = fd
        if self._follow_fd is not None:
            os.close(self._follow_fd)
            self._follow_fd = None
        return True

    def _is_followed(self) -> bool:
        """Whether there are followers, which share this lock."""
        fd = self._open_lock("followers")
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def _open_lock(self, name: str) -> int:
        return os.open(self._folder / f"nvml-{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _follow_or_lead(self) -> bool:
        """Become the leader if it has ended; called only after it was silent for some ticks."""
        if self._silent_ticks < _STALE_TICKS:
            return False
        self._silent_ticks = 0
        return self._lead()

    def _publish(self, readings: list[GpuReading]) -> None:
        self._number += 1
        document = {"leader": os.getpid(), "number": self._number, "period_s": self._period_s, "gpus": readings}
        temporary = self._file.with_suffix(".new")
        with contextlib.suppress(OSError):  # followers miss a tick, runs of this process do not
            temporary.write_text(json.dumps(document))
            temporary.replace(self._file)

    def _read_published(self) -> list[GpuReading] | None:
        """The published reading; None if the leader's rate is too low: from then on this process reads for itself."""
        try:
            document = json.loads(self._file.read_text())
            number = hash((document["leader"], document["number"]))
            is_too_slow = document["period_s"] > _TOO_SLOW * self._period_s
        except (OSError, ValueError, KeyError):
            self._silent_ticks += 1
            return []
        if number == self._last_number:
            self._silent_ticks += 1
            return []
        if is_too_slow:
            self._reader = NvmlReader()
            return None
        self._silent_ticks = 0
        self._last_number = number
        return [_reading_of(*fields) for fields in document["gpus"]]


def _reading_of(
    gpu: int,
    values: dict[str, float],
    processes: list[tuple[int, int | None, float | None]] | None,
    instances: list[tuple[int, dict[str, float]]],
) -> GpuReading:
    """The reading of a published file."""
    return GpuReading(
        gpu,
        values,
        None if processes is None else [ProcessReading(*process) for process in processes],
        [InstanceReading(*instance) for instance in instances],
    )
