"""Whether a rank works although it makes no collective call: a long checkpoint or evaluation must not be called a hang."""

import re
from dataclasses import dataclass

from clusterscape.model.hangs import HelperLook, ProcessLook, RankLook, StackFrame

TICKS_PER_S = 100
LEAST_BYTES_PER_S = 100_000
LEAST_CORES = 0.2
IDLE_CORES = 0.05
"""Below this share of a core a process counts as waiting."""
LEAST_SWITCHES_PER_S = 5
"""Of a main thread that waits for data again and again; less is a heartbeat."""
SLEEP_CHANNEL = re.compile(r"nanosleep")


@dataclass(frozen=True, slots=True)
class Progress:
    """What shows that a rank works. ``is_sure``: an endless loop would not look like this."""

    text: str
    is_sure: bool = True


def find_progress(
    now: RankLook,
    before: RankLook | None,
    stack: tuple[StackFrame, ...],
    earlier: tuple[StackFrame, ...],
    elapsed_s: float,
) -> Progress | None:
    """What a rank or its helpers did between two looks; None if nothing was seen."""
    process, then = now.process, before.process if before else None
    if process is None or then is None or process.pid != then.pid or process.state in ("T", "t", "X", "Z"):
        return None
    moved = _difference(process.io_bytes, then.io_bytes)
    if moved is not None and moved >= LEAST_BYTES_PER_S * elapsed_s:
        return Progress(f"it read and wrote {moved / 1e6:,.1f} MB between the looks")
    if worker := _find_working_helper(process, then, elapsed_s):
        return worker
    used = cores(process, then, elapsed_s)
    does_sleep = any(SLEEP_CHANNEL.search(look.wait_channel or "") for look in (process, then))
    if used is not None and used > IDLE_CORES and not does_sleep and _functions(stack) != _functions(earlier):
        return Progress("its functions changed between the looks")
    if not does_sleep and (rate := _wakes(process, then, elapsed_s)):
        return Progress(f"data arrives: it wakes {rate:.0f} times a second")
    wanted = _wanted_cores(process, then, elapsed_s)
    return Progress(f"it uses or waits for {wanted:.1f} cores", is_sure=False) if wanted > LEAST_CORES else None


def _wanted_cores(now: ProcessLook, before: ProcessLook, elapsed_s: float) -> float:
    """Cores that a process used, or its main thread waited for: other work may keep all of them busy."""
    wanted_ms = 0.0 if now.wanted_ms is None or before.wanted_ms is None else now.wanted_ms - before.wanted_ms
    return max(cores(now, before, elapsed_s) or 0.0, wanted_ms / 1000 / elapsed_s)


def cores(now: ProcessLook | None, before: ProcessLook | None, elapsed_s: float | None) -> float | None:
    """Cores that a process used between the looks."""
    ticks = _difference(now.cpu_ticks, before.cpu_ticks) if now and before else None
    return None if ticks is None or not elapsed_s else ticks / TICKS_PER_S / elapsed_s


def _find_working_helper(now: ProcessLook, before: ProcessLook, elapsed_s: float) -> Progress | None:
    earlier = {helper.pid: helper for helper in before.helpers}
    for helper in now.helpers:
        then = earlier.get(helper.pid)
        wanted = _wanted_cores(helper.process, then.process, elapsed_s) if then else 0.0
        if wanted > LEAST_CORES:
            return Progress(f"{name_helper(helper)} uses or waits for {wanted:.1f} cores")
        moved = _difference(helper.process.io_bytes, then.process.io_bytes) if then else None
        if moved is not None and moved >= LEAST_BYTES_PER_S * elapsed_s:
            return Progress(f"{name_helper(helper)} read and wrote {moved / 1e6:,.1f} MB between the looks")
    return None


def name_helper(helper: HelperLook) -> str:
    """``its process 4711 (python)``."""
    return f"its process {helper.pid}" + (f" ({helper.name})" if helper.name else "")


def _wakes(now: ProcessLook, before: ProcessLook, elapsed_s: float) -> float | None:
    """How often a second the main thread is woken that waits for data, if that is often."""
    rate = (_difference(now.switches, before.switches) or 0) / elapsed_s
    return rate if rate >= LEAST_SWITCHES_PER_S else None


def _difference(now: int | None, before: int | None) -> int | None:
    return None if now is None or before is None else max(0, now - before)


def _functions(frames: tuple[StackFrame, ...]) -> list[tuple[str, str]]:
    return [(frame.function, frame.file) for frame in frames]
