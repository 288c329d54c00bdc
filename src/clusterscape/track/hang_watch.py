"""Notices that a run no longer makes steps, and looks twice at all its ranks on this machine.

Progress is what the script logs. How long it may be silent is learned from its own rhythm. Until then the watch only asks for
the sizes of the run's files; nothing is attached to the run's processes. On other machines of a distributed job nobody may log:
their trackers look when the server says that another one of the job has looked.
"""

import contextlib
import os
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from clusterscape.track.hang_looks import LOOK_S, Looker
from clusterscape.track.processes import MemoryKills, ProcessTree

POLL_S = 0.5
LEAST_GAPS = 4
"""Fewer pauses between logged steps do not make a rhythm: then eight of the longest may pass, and a minute."""
WITHOUT_RHYTHM_S = 60.0
WARM_UP_GAPS, SETTLED_GAPS = 3, 20
"""The first pauses compile, fill caches and connect: they count as long ones only until there are enough others."""
LEAST_SILENCE_S = 5.0
"""Shorter pauses are not a hang, whatever the rhythm: the kernel, a disk or a neighbour may take that long."""
MOST_SILENT_STEPS_S = 10.0
KEPT_GAPS = 512
LEAST_APART_S = 1.0
CONFIRM_S = 5.0
"""A cause that may pass by itself (a slow network, a long kernel) must still be there this much later."""
LEAST_DOUBTFUL_S = 12.0
"""How long a run is silent at least before a verdict that admits `slow` is shown."""
WHOLE_WITHIN_S = 30.0
"""How long the machine that looked first waits for the verdict on all."""
MEMBERS_EVERY_S = 5.0


class HangFinding(NamedTuple):
    """A verdict as the run's event, and the lines for the terminal.

    ``is_hang``: surely more than slow. ``is_settled``: of a cause that does not pass by itself. ``is_doubtful``: ranks wait for
    one that works: a hang, or only slow. ``looks``: what a server needs to judge the ranks of all machines together; empty if it
    would learn nothing. ``is_partial``: ranks of other machines were not looked at.
    """

    event: Mapping[str, Any]
    lines: Sequence[str]
    is_hang: bool
    looks: Sequence[Mapping[str, Any]] = ()
    is_partial: bool = False
    is_settled: bool = True
    is_doubtful: bool = False

    @property
    def about(self) -> tuple[object, object]:
        """What must be equal in a later verdict that confirms this one."""
        return (self.event.get("kind"), self.event.get("ranks"))


Judge = Callable[[Sequence[Path]], HangFinding | None]
"""The verdict on folders of looks, the oldest first; None if there is none."""


class HangServer:
    """What a server adds to the watch of one machine: the looks of the others. This one has none."""

    def looked_elsewhere(self, folder: Path) -> int | None:
        """When another machine of the job last looked at a stall that lasts (Unix ms); None: none did."""
        del folder
        return None

    def hurry(self) -> None:
        """Send at once what was written."""

    def judge_all(self, folder: Path) -> HangFinding | None:
        """The verdict on the ranks of all machines; None while it is not known."""
        del folder
        return None


class Rhythm:
    """Pauses between logged steps.

    A pause may last half as long again as the longest so far, and eight usual ones; of these at most 10 s, unless one and a half
    last longer: what the processes do, not a timeout, tells a hang from a slow step.
    """

    def __init__(self) -> None:
        self._gaps: deque[float] = deque(maxlen=KEPT_GAPS)
        self._count = 0
        self._longest = 0.0
        self._longest_of_warm_up = 0.0

    def add(self, gap_s: float) -> None:
        """A pause has ended."""
        self._gaps.append(gap_s)
        self._count += 1
        if self._count <= WARM_UP_GAPS:
            self._longest_of_warm_up = max(self._longest_of_warm_up, gap_s)
        else:
            self._longest = max(self._longest, gap_s)

    @property
    def usual_s(self) -> float:
        """The median pause (s); 0 before the first."""
        return statistics.median(self._gaps) if self._gaps else 0.0

    @property
    def tolerance_s(self) -> float | None:
        """The longest pause that is not a stall (s); None before the first one."""
        if not self._gaps:
            return None
        longest = self._longest if self._count > SETTLED_GAPS else max(self._longest, self._longest_of_warm_up)
        if self._count < LEAST_GAPS:
            return max(8 * longest, WITHOUT_RHYTHM_S)
        usual = self.usual_s
        return max(1.5 * longest, min(8 * usual, max(1.5 * usual, MOST_SILENT_STEPS_S)), LEAST_SILENCE_S)


class HangWatch:
    """Watches one run in a thread. ``note`` writes an event of the run, ``tell`` lines to the terminal."""

    def __init__(
        self,
        folder: Path,
        tree: ProcessTree,
        judge: Judge,
        note: Callable[..., object],
        tell: Callable[[Sequence[str]], None],
        now_ms: Callable[[], int],
        memory: MemoryKills | None = None,
        server: HangServer | None = None,
    ) -> None:
        self._folder = folder
        self._server = server or HangServer()
        self._answered = 0  # the newest look of another machine that was followed
        self._judge = judge
        self._note = note
        self._tell = tell
        self._now_ms = now_ms
        self._looker = Looker(folder, tree, now_ms, memory)
        self._rhythm = Rhythm()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hang watch", daemon=True)
        self._announced = False  # looks were noted that last until the run makes steps again
        self._is_final = False  # no further look would say more
        self._doubted: tuple[object, object] | None = None  # what a former look in this silence was about
        self._shown: tuple[object, object] | None = None  # what the shown verdict is about

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching, and remove what was looked at."""
        self._stop.set()
        self._thread.join(LOOK_S + 1)
        self._looker.clear()

    def _run(self) -> None:
        size, last, looked_at = _logged_bytes(self._folder), time.monotonic(), 0.0
        has_logged = size > 0
        members_at = 0.0
        while not self._stop.wait(POLL_S):
            now, new_size = time.monotonic(), _logged_bytes(self._folder)
            if new_size != size:
                if has_logged:
                    self._rhythm.add(now - last)
                if self._announced:
                    self._note("hang_end", at=self._now_ms())
                    self._tell([f"the run logs steps again after {now - last:.0f} s"])
                self._announced = self._is_final = False
                self._doubted = self._shown = None
                size, last, looked_at, has_logged = new_size, now, 0.0, True
                continue
            if now - members_at > MEMBERS_EVERY_S:
                members_at = now
                if self._looker.find_ranks():
                    self._note("ranks", **self._looker.describe_ranks())
            if self._follow_others(size):
                continue
            tolerance = self._rhythm.tolerance_s
            # Once looked at, look again only when it lasts twice as long.
            if tolerance is not None and now - last > max(tolerance, 2 * looked_at):
                looked_at = now - last
                with contextlib.suppress(OSError):  # a full disk, or processes that end meanwhile
                    self._look_twice(size, silent_s=now - last)

    def _follow_others(self, size: int) -> bool:
        """Look if another machine of the job did, and withdraw the verdict when it made steps again; whether it looked."""
        at = self._server.looked_elsewhere(self._folder)
        if at is None:
            if self._answered and self._announced:
                self._announced = self._is_final = False
                self._shown = None
                self._note("hang_end", at=self._now_ms())
            self._answered = 0
            return False
        if at <= self._answered:
            return False
        self._answered = at
        with contextlib.suppress(OSError):
            self._look_twice(size, is_asked=True)
        return True

    def _look_twice(self, size: int, *, is_asked: bool = False, silent_s: float = 0.0) -> None:
        if self._is_final or not self._looker.has_living:
            return
        first = self._looker.look(1)
        if self._pauses(max(LEAST_APART_S, 2 * self._rhythm.usual_s), size):
            return
        finding = self._judge([first, self._looker.look(2)])
        if finding is not None and not is_asked and not finding.is_settled and (finding.is_hang or finding.is_partial):
            earlier = finding
            if self._pauses(CONFIRM_S, size):
                return
            finding = self._judge([*self._looker.look_again()])
            if finding is not None and finding.about != earlier.about:
                finding = finding._replace(is_hang=False)
        if finding is None or _logged_bytes(self._folder) != size or self._stop.is_set():
            return
        is_shown = (finding.is_hang and finding.about != self._shown) or self._is_confirmed(finding, silent_s)
        if not (is_shown or is_asked or finding.is_partial):
            return
        for number, look in enumerate(finding.looks, start=1):
            self._note("hang_look", at=self._now_ms(), number=number, look=look)
        self._announced = True
        self._is_final = finding.is_hang and not finding.is_partial
        if is_shown:
            self._shown = finding.about
            self._note("hang", at=self._now_ms(), **finding.event)
            self._tell(finding.lines)
        self._server.hurry()
        if finding.is_partial and not is_asked:
            self._tell_of_all(size, finding)

    def _pauses(self, pause_s: float, size: int) -> bool:
        """Wait; whether the run made steps meanwhile, or the watch is to end."""
        return self._stop.wait(pause_s) or _logged_bytes(self._folder) != size

    def _is_confirmed(self, finding: HangFinding, silent_s: float) -> bool:
        """Whether a doubtful verdict is the same as the former one of this silence, and new to the user."""
        before, self._doubted = self._doubted, finding.about if finding.is_doubtful else None
        return finding.is_doubtful and before == finding.about and silent_s >= LEAST_DOUBTFUL_S and not self._announced

    def _tell_of_all(self, size: int, own: HangFinding) -> None:
        """Show the verdict on all machines as soon as the server has it, if it says something else."""
        deadline = time.monotonic() + WHOLE_WITHIN_S
        while time.monotonic() < deadline and _logged_bytes(self._folder) == size:
            finding = self._server.judge_all(self._folder)
            if finding is not None and not finding.is_partial:
                self._is_final = finding.is_hang
                if finding.is_hang and (not own.is_hang or finding.lines[0] != own.lines[0]):
                    self._tell(["on all machines:", *finding.lines])
                return
            if self._stop.wait(1.0):
                return


def _logged_bytes(folder: Path) -> int:
    """Total size of the files that the script's processes log to."""
    total = 0
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".spool") and entry.name != "tracker.spool":
                total += entry.stat().st_size
    return total
