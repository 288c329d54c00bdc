"""Notices that a run no longer makes steps, and looks twice at all its ranks on this machine.

Progress is what the script logs. How long it may be silent is learned from its own rhythm. Until then the watch only asks for
the sizes of the run's files; nothing is attached to the run's processes. On other machines of a distributed job nobody may log:
their trackers look when the server says that another one of the job has looked.
"""

import contextlib
import json
import os
import signal
import socket
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from clusterscape.track.processes import MemoryKills, ProcessStat, ProcessTree, iter_descendants, read_stat
from clusterscape.track.startup import _clusterscape_looks as offered

POLL_S = 0.5
LEAST_GAPS = 4
"""Fewer pauses between logged steps are no rhythm."""
LEAST_SILENCE_S = 5.0
"""Shorter pauses are no hang, whatever the rhythm: the kernel, a disk or a neighbour may take that long."""
MOST_SILENT_STEPS_S = 20.0
KEPT_GAPS = 512
LOOK_S = 2.0
"""The longest that one look waits for answers of processes."""
LEAST_APART_S = 1.0
WHOLE_WITHIN_S = 30.0
"""How long the machine that looked first waits for the verdict on all."""
MEMBERS_EVERY_S = 5.0
MOST_STACK_BYTES = 4 << 20


class HangFinding(NamedTuple):
    """A verdict as the run's event, and the lines for the terminal. ``is_hang``: not only slow, and not unknown.

    ``looks``: what a server needs to judge the ranks of all machines together; empty if it would learn nothing.
    ``is_partial``: ranks of other machines were not looked at.
    """

    event: Mapping[str, Any]
    lines: Sequence[str]
    is_hang: bool
    looks: Sequence[Mapping[str, Any]] = ()
    is_partial: bool = False


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

    A pause may last half as long again as the longest so far, and eight usual ones; of these at most 20 s, unless one and a half
    last longer: two looks, not a timeout, tell a hang from a slow step.
    """

    def __init__(self) -> None:
        self._gaps: deque[float] = deque(maxlen=KEPT_GAPS)
        self._longest = 0.0

    def add(self, gap_s: float) -> None:
        """A pause has ended."""
        self._gaps.append(gap_s)
        self._longest = max(self._longest, gap_s)

    @property
    def usual_s(self) -> float:
        """The median pause (s); 0 before the first."""
        return statistics.median(self._gaps) if self._gaps else 0.0

    @property
    def tolerance_s(self) -> float | None:
        """The longest pause that is no stall (s); None while there is no rhythm."""
        if len(self._gaps) < LEAST_GAPS:
            return None
        usual = self.usual_s
        return max(1.5 * self._longest, min(8 * usual, max(1.5 * usual, MOST_SILENT_STEPS_S)), LEAST_SILENCE_S)


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
        self._announced = False

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
                    self._announced = False
                    self._note("hang_end", at=self._now_ms())
                    self._tell([f"the run logs steps again after {now - last:.0f} s"])
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
                    self._look_twice(size)

    def _follow_others(self, size: int) -> bool:
        """Look if another machine of the job did, and withdraw the verdict when it made steps again; whether it looked."""
        at = self._server.looked_elsewhere(self._folder)
        if at is None:
            if self._answered and self._announced:
                self._announced = False
                self._note("hang_end", at=self._now_ms())
            self._answered = 0
            return False
        if at <= self._answered or self._announced:
            return False
        self._answered = at
        with contextlib.suppress(OSError):
            self._look_twice(size, is_asked=True)
        return True

    def _look_twice(self, size: int, *, is_asked: bool = False) -> None:
        first = self._looker.look(1)
        if self._stop.wait(max(LEAST_APART_S, 2 * self._rhythm.usual_s)) or _logged_bytes(self._folder) != size:
            return
        second = self._looker.look(2)
        finding = self._judge([first, second])
        if finding is None or self._announced or _logged_bytes(self._folder) != size:
            return
        if not (finding.is_hang or is_asked or finding.is_partial):
            return
        for number, look in enumerate(finding.looks, start=1):
            self._note("hang_look", at=self._now_ms(), number=number, look=look)
        self._announced = True
        if finding.is_hang:
            self._note("hang", at=self._now_ms(), **finding.event)
            self._tell(finding.lines)
        self._server.hurry()
        if finding.is_partial and not is_asked:
            self._tell_of_all(size, finding)

    def _tell_of_all(self, size: int, own: HangFinding) -> None:
        """Show the verdict on all machines as soon as the server has it, if it says something else."""
        deadline = time.monotonic() + WHOLE_WITHIN_S
        while time.monotonic() < deadline and _logged_bytes(self._folder) == size:
            finding = self._server.judge_all(self._folder)
            if finding is not None and not finding.is_partial:
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


class Looker:
    """Records the state of a run's processes, as files that ``collect/hangs`` reads."""

    def __init__(
        self,
        folder: Path,
        tree: "ProcessTree | ChosenProcesses",
        now_ms: Callable[[], int],
        memory: MemoryKills | None = None,
    ) -> None:
        self._folder = folder / offered.FOLDER
        self._tree = tree
        self._now_ms = now_ms
        self._memory = memory
        self._ranks: dict[int, tuple[int, int]] = {}  # by pid: rank and start, also of processes that have ended
        self._starters: set[tuple[int, int]] = set()  # shells that started a rank: pid and start
        self._world_size: int | None = None
        self._job: str | None = None
        self._slurm_job: str | None = None

    def find_ranks(self) -> bool:
        """Learn which processes are ranks, from their environment; whether there are new ones."""
        before = len(self._ranks)
        for stat in self._tree.living():
            earlier = self._ranks.get(stat.pid)
            if (earlier is not None and earlier[1] == stat.started_ticks) or (
                stat.pid,
                stat.started_ticks,
            ) in self._starters:
                continue
            environ = read_environ(stat.pid)
            rank, size = find_rank(environ)
            if rank.isdigit() and not self._is_below_rank(stat.parent, int(rank)):
                self._ranks[stat.pid] = (int(rank), stat.started_ticks)
                self._world_size = int(size) if size.isdigit() else self._world_size
                self._job = find_job(environ) or self._job
                self._slurm_job = find_slurm_job(environ) or self._slurm_job
        return len(self._ranks) > before

    def describe_ranks(self) -> dict[str, Any]:
        """The fields of the event that tells a server which ranks of which job run here."""
        ranks = sorted({rank for rank, _ in self._ranks.values()})
        about = {"ranks": ranks[:1024], "world_size": self._world_size, "slurm_job": self._slurm_job}
        return {"job": self._job or "", **about}

    def _is_below_rank(self, parent: int, rank: int) -> bool:
        """Whether the parent is the rank itself: its helpers inherit its variables. A shell that started the rank is not."""
        if parent not in self._ranks or self._ranks[parent][0] != rank:
            return False
        if _is_python(parent):
            return True
        self._starters.add((parent, self._ranks.pop(parent)[1]))
        return False

    def look(self, number: int) -> Path:
        """Take a look at all ranks; without any, at the first process as rank 0. Returns its folder."""
        self.find_ranks()
        ranks = self._ranks or {self._tree.root: (0, _started(self._tree.root))}
        into = self._folder / f"look{number}"
        into.mkdir(parents=True, exist_ok=True)
        for file in into.iterdir():
            file.unlink()
        living = {pid: rank for pid, (rank, started) in ranks.items() if _started(pid) == started}
        processes = [
            _observe(pid, rank) if pid in living else self._ended(pid, rank) for pid, (rank, _) in sorted(ranks.items())
        ]
        answers = {
            pid: into / f"recorder-rank{rank}.json" for pid, rank in living.items() if self._ask(pid, rank, number)
        }
        for pid, rank in living.items():
            if text := self._stacks_of(pid):
                (into / f"stacks-rank{rank}.txt").write_bytes(text)
        deadline = time.monotonic() + LOOK_S
        while any(not file.exists() for file in answers.values()) and time.monotonic() < deadline:
            time.sleep(0.01)
        document = {
            "clusterscape_processes": 1,
            "taken_ms": self._now_ms(),
            "world_size": self._world_size,
            "is_partial": self._world_size is not None and len(processes) < self._world_size,
            "processes": processes,
        }
        (into / "processes.json").write_text(json.dumps(document))
        return into

    @property
    def ranks(self) -> Mapping[int, int]:
        """Ranks by the pid of their process."""
        return {pid: rank for pid, (rank, _) in self._ranks.items()}

    def clear(self) -> None:
        """Remove the pipes; looks stay with the run."""
        with contextlib.suppress(OSError):
            for file in self._folder.iterdir():
                if file.name.startswith("ask-") or (file.name == offered.STACKS and file.stat().st_size == 0):
                    file.unlink()
            self._folder.rmdir()  # only if nothing was looked at

    def _ended(self, pid: int, rank: int) -> dict[str, Any]:
        killed = self._memory is not None and bool(self._memory.has_risen())
        return {"rank": rank, "pid": pid, "state": "X", "ran_out_of_memory": killed}

    def _ask(self, pid: int, rank: int, number: int) -> bool:
        """Ask a rank's thread for its recorder's dump."""
        try:
            fd = os.open(self._folder / f"ask-{pid}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            os.write(fd, f"look{number}/recorder-rank{rank}.json\n".encode())
        except OSError:
            return False
        finally:
            os.close(fd)
        return True

    def _stacks_of(self, pid: int) -> bytes:
        """The stacks that the process appends to the common file; empty without its handler, or without an answer."""
        number = signal.SIGRTMAX - offered.SIGNAL_BELOW_MAX
        if not _catches(pid, number):  # the signal would end it
            return b""
        file = self._folder / offered.STACKS
        try:
            begin = file.stat().st_size
            os.kill(pid, number)
        except OSError:
            return b""
        deadline, size = time.monotonic() + LOOK_S / 4, begin
        while time.monotonic() < deadline:
            time.sleep(0.01)
            new_size = file.stat().st_size
            if new_size == size > begin:
                break
            size = new_size
        with file.open("rb") as source:
            source.seek(begin)
            return source.read(min(size - begin, MOST_STACK_BYTES))


class ChosenProcesses:
    """Processes of the caller that ranks are looked for among, in place of a tree that the tracker started."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids

    @property
    def root(self) -> int:
        """The first one."""
        return self._pids[0]

    def living(self) -> list[ProcessStat]:
        """Those that run."""
        return [stat for pid in self._pids if (stat := read_stat(pid)) is not None and stat.state != "Z"]


def find_processes(*, slurm_job: str | None = None, below: int | None = None) -> list[int]:
    """Own processes of a Slurm job on this machine, or a process and its descendants; the oldest first."""
    if below is not None:
        return [below, *iter_descendants(below)]
    pids: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and find_slurm_job(environ := read_environ(int(entry.name))) and environ:
            jobs = (find_slurm_job(environ), environ.get("SLURM_JOB_ID"), environ.get("SLURM_ARRAY_JOB_ID"))
            pids += [int(entry.name)] if slurm_job in jobs else []
    return sorted(pids, key=_started)


def find_job(environ: Mapping[str, str]) -> str | None:
    """Where the ranks of a job meet, which is equal on all of its machines; None if the environment does not say."""
    address, port = environ.get("MASTER_ADDR", ""), environ.get("MASTER_PORT", "")
    if not address or not port:
        return None
    here = f"{socket.gethostname()}/" if address in ("localhost", "127.0.0.1", "::1") else ""
    return f"{here}{address}:{port}"[:500]


def find_rank(environ: Mapping[str, str]) -> tuple[str, str]:
    """Rank and number of ranks, as torchrun sets them, else as srun does; empty if the process is no rank."""
    if "LOCAL_RANK" in environ or "WORLD_SIZE" in environ:
        return environ.get("RANK", ""), environ.get("WORLD_SIZE", "")
    if "MASTER_ADDR" in environ and "SLURM_LOCALID" in environ:
        return environ.get("SLURM_PROCID", ""), environ.get("SLURM_NTASKS", "")
    return "", ""


def _is_python(pid: int) -> bool:
    try:
        return "python" in os.path.basename(os.readlink(f"/proc/{pid}/exe"))  # noqa: PTH115, PTH119
    except OSError:
        return True


def find_slurm_job(environ: Mapping[str, str]) -> str | None:
    """The id of the Slurm job as its queue writes it, with the index of an array task."""
    array, task = environ.get("SLURM_ARRAY_JOB_ID"), environ.get("SLURM_ARRAY_TASK_ID")
    job = f"{array}_{task}" if array and task else environ.get("SLURM_JOB_ID")
    return job[:64] if job else None


def _started(pid: int) -> int:
    """The start of a process that runs; −1 if it does not."""
    stat = read_stat(pid)
    return -1 if stat is None or stat.state == "Z" else stat.started_ticks


def _observe(pid: int, rank: int) -> dict[str, Any]:
    stat = read_stat(pid)
    channel = None
    with contextlib.suppress(OSError):
        channel = Path(f"/proc/{pid}/wchan").read_text()
    return {
        "rank": rank,
        "pid": pid,
        "state": stat.state if stat else "X",
        "wait_channel": channel,
        "cpu_ticks": stat.cpu_ticks if stat else None,
    }


def _catches(pid: int, number: int) -> bool:
    """Whether the process has a handler for the signal."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    mask = next((int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:")), 0)
    return bool(mask >> (number - 1) & 1)


def read_environ(pid: int) -> dict[str, str]:
    """The environment that a process was started with; empty if it belongs to somebody else."""
    try:
        text = Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8", "replace")
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)
