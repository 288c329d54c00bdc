"""How a run ended, and why: from its exit status, what its Python said last, and whether memory ran out."""

import json
import os
import signal
from pathlib import Path
from typing import NamedTuple

EXCEPTIONS_FILE = "exceptions.jsonl"
_OUT_OF_MEMORY_TYPES = ("MemoryError", "OutOfMemoryError", "CUDAOutOfMemoryError")


class Outcome(NamedTuple):
    """``state`` is a WorkloadState's value. ``cause`` is None only for a completed run."""

    state: str
    cause: str | None
    exit_code: int | None
    exit_signal: int | None

    @property
    def shell_code(self) -> int:
        """What a shell would show."""
        return 128 + self.exit_signal if self.exit_signal else self.exit_code or 0


class MemoryKills:
    """How often the kernel has killed for memory in this process's control group; None where it does not say."""

    def __init__(self) -> None:
        self._file = _events_file()
        self._before = self._read()

    def has_risen(self) -> bool:
        """Whether it killed since this was made."""
        now = self._read()
        return now is not None and self._before is not None and now > self._before

    def _read(self) -> int | None:
        if self._file is None:
            return None
        try:
            told = dict(line.split() for line in self._file.read_text().splitlines())
            return int(told["oom_kill"])
        except (OSError, KeyError, ValueError):
            return None


def _events_file() -> Path | None:
    try:
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            number, _, path = line.split(":", 2)
            if number == "0":
                file = Path(f"/sys/fs/cgroup{path}/memory.events")
                return file if file.is_file() else None
    except (OSError, ValueError):
        pass
    return None


def judge(status: int, folder: Path, *, was_stopped: bool, memory_ran_out: bool) -> Outcome:
    """From a wait status."""
    code = os.waitstatus_to_exitcode(status)
    number = -code if code < 0 else None
    told = _last_exception(folder)
    if code == 0:
        return Outcome("completed", None, 0, None)
    if was_stopped:
        return Outcome("cancelled", "stopped from outside", code if number is None else None, number)
    if number is not None:
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        if number == signal.SIGKILL and memory_ran_out:
            return Outcome("out_of_memory", "killed by the kernel: out of memory", None, number)
        return Outcome("failed", f"killed by signal {name}", None, number)
    if told is not None:
        kind, text = told
        state = "out_of_memory" if kind.rpartition(".")[2] in _OUT_OF_MEMORY_TYPES else "failed"
        return Outcome(state, f"{kind}: {text}" if text else kind, code, None)
    if memory_ran_out and code == 128 + signal.SIGKILL:  # a child of the command was killed, and it passed that on
        return Outcome("out_of_memory", "a process was killed by the kernel: out of memory", code, None)
    return Outcome("failed", f"exit code {code}", code, None)


def not_started(words: str, error_number: int) -> Outcome:
    """The command could not be run at all."""
    return Outcome(
        "failed", f"cannot run {words}: {os.strerror(error_number)}", 127 if error_number == 2 else 126, None
    )


def _last_exception(folder: Path) -> tuple[str, str] | None:
    try:
        lines = (folder / EXCEPTIONS_FILE).read_text("utf-8", "replace").splitlines()
        last = json.loads(lines[-1])
        return str(last["type"]), str(last["message"])
    except (OSError, ValueError, IndexError, KeyError):
        return None
