"""What the kernel's scheduler counts of a thread: time on a core, time ready without one, switches. Standard library only."""

import os
import resource
import threading
import time


class ThreadScheduling:
    """Counts of the thread that made it. ``core_wait_s`` is missing where the kernel does not count it."""

    def __init__(self) -> None:
        try:
            self._fd: int | None = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
        except OSError:
            self._fd = None

    def read(self) -> dict[str, float]:
        """Seconds on a core (``cpu_s``) and ready without one (``core_wait_s``), switches, page faults: since the thread
        started.
        """
        usage = resource.getrusage(resource.RUSAGE_THREAD)
        counts: dict[str, float] = {
            "voluntary_switches": usage.ru_nvcsw, "involuntary_switches": usage.ru_nivcsw, "major_faults": usage.ru_majflt,
            "time_s": time.monotonic(), "cpu_s": usage.ru_utime + usage.ru_stime,
        }  # fmt: skip
        if self._fd is not None:
            ran_ns, waited_ns, _ = (int(part) for part in os.pread(self._fd, 200, 0).split())
            counts |= {"cpu_s": ran_ns / 1e9, "core_wait_s": waited_ns / 1e9}
        return counts

    def close(self) -> None:
        """Close the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def subtract_counts(after: dict[str, float], before: dict[str, float]) -> dict[str, float]:
    """What was counted in between."""
    return {name: count - before[name] for name, count in after.items()}
