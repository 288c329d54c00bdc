"""What the kernel says that a process does and waits for: state, wait channel, system call, and counters of its progress."""

import os
import platform
import re
from pathlib import Path
from typing import Any

from clusterscape.track.processes import read_stat

_CALLS = {
    "x86_64": {0: "read", 1: "write", 17: "read", 18: "write", 19: "read", 20: "write", 45: "read", 47: "read", 44: "write",
               46: "write", 72: "lock", 73: "lock", 74: "sync", 75: "sync"},
    "aarch64": {63: "read", 64: "write", 65: "read", 66: "write", 67: "read", 68: "write", 207: "read", 212: "read",
                206: "write", 211: "write", 25: "lock", 32: "lock", 82: "sync", 83: "sync"},
}  # fmt: skip
"""System calls with a file descriptor as first argument that may wait: read, pread64, readv, recvfrom, recvmsg and their like."""
MOST_THREADS = 512
_SWITCHES = re.compile(rb"^voluntary_ctxt_switches:\s*(\d+)", re.MULTILINE)


def observe_process(pid: int) -> dict[str, Any]:
    """State and counters of a process, as ``collect/hangs`` reads them; what may not be read is None."""
    stat = read_stat(pid)
    return {
        "pid": pid,
        "state": stat.state if stat else "X",
        "wait_channel": _channel(pid),
        "waits_on": _waits_on(pid, str(pid)),
        "is_thread_in_socket": _is_thread_in_socket(pid),
        "cpu_ticks": stat.cpu_ticks if stat else None,
        "io_bytes": _io_bytes(pid),
        "wanted_ms": _wanted_ms(pid),
        "switches": _switches(pid),
    }


def catches_signal(pid: int, number: int) -> bool:
    """Whether the process has a handler for the signal."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    mask = next((int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:")), 0)
    return bool(mask >> (number - 1) & 1)


def read_name(pid: int) -> str | None:
    """The name of the process's program."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return None


def _channel(pid: int) -> str | None:
    """The function of the kernel that the main thread sleeps in."""
    try:
        return Path(f"/proc/{pid}/wchan").read_text()
    except OSError:
        return None


def _is_thread_in_socket(pid: int) -> bool:
    """Whether a thread other than the main one reads or writes a socket. Those of PyTorch's backends poll theirs."""
    try:
        with os.scandir(f"/proc/{pid}/task") as entries:
            threads = [entry.name for _, entry in zip(range(MOST_THREADS), entries, strict=False)]
    except OSError:
        return False
    return any((_waits_on(pid, thread) or "").endswith(" a socket") for thread in threads if thread != str(pid))


def _waits_on(pid: int, thread: str) -> str | None:
    """The call and the file that a thread waits in: ``read /data/shard``, ``read a socket``, ``read standard input``."""
    try:
        words = Path(f"/proc/{pid}/task/{thread}/syscall").read_text().split()
        call = _CALLS.get(platform.machine(), {}).get(int(words[0]))
        if call is None or len(words) < 2:
            return None
        descriptor = int(words[1], 16)
        target = os.readlink(f"/proc/{pid}/fd/{descriptor}")  # noqa: PTH115
    except (OSError, ValueError, IndexError):
        return None
    is_terminal = target.startswith(("/dev/pts/", "/dev/tty"))
    if call == "read" and (is_terminal or (descriptor == 0 and target.startswith("pipe:"))):
        return "read standard input"
    kind = target.partition(":")[0]
    return f"{call} {'a ' + kind if kind in ('pipe', 'socket') else target}"[:500]


def _io_bytes(pid: int) -> int | None:
    """Bytes of all reads and writes, also those that the page cache answered."""
    try:
        counters = dict(line.split(b": ") for line in Path(f"/proc/{pid}/io").read_bytes().splitlines())
        return int(counters[b"rchar"]) + int(counters[b"wchar"])
    except (OSError, KeyError, ValueError):
        return None


def _wanted_ms(pid: int) -> float | None:
    """How long the main thread ran, or waited for a core that others had."""
    try:
        ran_ns, delayed_ns = Path(f"/proc/{pid}/schedstat").read_text().split()[:2]
        return (int(ran_ns) + int(delayed_ns)) / 1e6
    except (OSError, ValueError):
        return None


def _switches(pid: int) -> int | None:
    """How often the main thread gave up the CPU to wait."""
    try:
        match = _SWITCHES.search(Path(f"/proc/{pid}/status").read_bytes())
    except OSError:
        return None
    return int(match[1]) if match else None
