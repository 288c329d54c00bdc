"""Takes looks at the processes of a run on this machine, as files that ``collect/hangs`` reads.

A look asks for everything at one moment: stacks by the handler of faulthandler, the Flight Recorder, and ``/proc`` of each rank
and of its helpers, the processes that it started. What a process does because of a look does not count as its progress: it is
observed after the first look's questions, and before those of the second.
"""

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from clusterscape.track.process_states import catches_signal, observe_process, read_name
from clusterscape.track.processes import MemoryKills, ProcessStat, ProcessTree, iter_descendants, read_stat
from clusterscape.track.startup import _clusterscape_looks as offered

LOOK_S = 2.0
"""The longest that one look waits for answers of processes."""
PROCESSES = "processes.json"
MOST_STACK_BYTES = 4 << 20
MOST_HELPERS = 32
"""Of each rank."""
HELPER_STACK_BYTES = 64 << 10


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
        self._has_launcher = False
        self._after: dict[str, Any] = {}  # processes after the questions of the last look

    def find_ranks(self) -> bool:
        """Learn which processes are ranks, from their environment; whether there are new ones.

        A launcher that ``srun`` started has the variables of a task, and the ranks that it starts have their own.
        """
        before = dict(self._ranks)
        for stat in self._tree.living():
            earlier = self._ranks.get(stat.pid)
            key = (stat.pid, stat.started_ticks)
            if (earlier is not None and earlier[1] == stat.started_ticks) or key in self._starters:
                continue
            environ = read_environ(stat.pid)
            rank, size, is_launched = find_rank(environ)
            if not rank.isdigit() or (self._has_launcher and not is_launched):
                continue
            if is_launched and not self._has_launcher:
                self._has_launcher = True
                self._starters |= {(pid, started) for pid, (_, started) in self._ranks.items()}
                self._ranks.clear()
            if not self._is_below_rank(stat.parent, int(rank)):
                self._ranks[stat.pid] = (int(rank), stat.started_ticks)
                self._world_size = int(size) if size.isdigit() else self._world_size
                self._job = find_job(environ) or self._job
                self._slurm_job = find_slurm_job(environ) or self._slurm_job
        return not self._ranks.keys() <= before.keys()

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
        """Take the first or the second look at all ranks; without any, at the first process as rank 0. Returns its folder."""
        self.find_ranks()
        ranks = self._ranks or {self._tree.root: (0, _started(self._tree.root))}
        into = self._folder / f"look{number}"
        into.mkdir(parents=True, exist_ok=True)
        for file in into.iterdir():
            file.unlink()
        living = {pid: rank for pid, (rank, started) in ranks.items() if _started(pid) == started}
        before = self._observe(ranks, living)
        answers = {
            pid: into / f"recorder-rank{rank}.json" for pid, rank in living.items() if self._ask(pid, rank, number)
        }
        for pid, rank in living.items():
            if text := self._stacks_of(pid):
                (into / f"stacks-rank{rank}.txt").write_bytes(text)
        stacks = self._stacks_of_helpers(living)
        deadline = time.monotonic() + LOOK_S
        while any(not file.exists() for file in answers.values()) and time.monotonic() < deadline:
            time.sleep(0.01)
        after = self._observe(ranks, living)
        for document in (before, after):
            for process in document["processes"]:
                for helper in process.get("helpers", ()):
                    helper["stack"] = stacks.get(helper["pid"], "")
        self._after = after
        (into / PROCESSES).write_text(json.dumps(after if number == 1 else before))
        return into

    def look_again(self) -> tuple[Path, Path]:
        """Take one more second look: the former one becomes the first. Returns both folders."""
        first, second = (self._folder / f"look{number}" for number in (1, 2))
        for file in first.iterdir():
            file.unlink()
        first.rmdir()
        second.rename(first)
        (first / PROCESSES).write_text(json.dumps(self._after))
        return first, self.look(2)

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

    @property
    def has_living(self) -> bool:
        """Whether any rank still runs; also true before ranks are known."""
        return not self._ranks or any(_started(pid) == started for pid, (_, started) in self._ranks.items())

    def _observe(self, ranks: Mapping[int, tuple[int, int]], living: Mapping[int, int]) -> dict[str, Any]:
        processes = [
            self._observe_rank(pid, rank) if pid in living else self._ended(pid, rank)
            for pid, (rank, _) in sorted(ranks.items())
        ]
        return {
            "clusterscape_processes": 1,
            "taken_ms": self._now_ms(),
            "world_size": self._world_size,
            "is_partial": self._world_size is not None and len(processes) < self._world_size,
            "processes": processes,
        }

    def _observe_rank(self, pid: int, rank: int) -> dict[str, Any]:
        helpers = [observe_process(helper) | {"name": read_name(helper)} for helper in self._helpers(pid)]
        return observe_process(pid) | {"rank": rank, "helpers": helpers}

    def _helpers(self, pid: int) -> list[int]:
        """Processes that a rank started: workers of its data loader, compilers, shells. Some may be ranks themselves."""
        below = (helper for helper in iter_descendants(pid) if helper not in self._ranks)
        return [helper for _, helper in zip(range(MOST_HELPERS), below, strict=False)]

    def _stacks_of_helpers(self, living: Mapping[int, int]) -> dict[int, str]:
        """Forked helpers inherit the handler. Those that do not answer in time are left out."""
        deadline = time.monotonic() + LOOK_S
        stacks: dict[int, str] = {}
        for pid in living:
            for helper in self._helpers(pid):
                if time.monotonic() > deadline:
                    return stacks
                stacks[helper] = self._stacks_of(helper)[-HELPER_STACK_BYTES:].decode("utf-8", "replace")
        return stacks

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
        if not catches_signal(pid, number):  # the signal would end it
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


def find_rank(environ: Mapping[str, str]) -> tuple[str, str, bool]:
    """Rank and number of ranks, as torchrun or mpirun sets them, else as srun does; empty if the process is not a rank.

    The last value: whether a launcher of ranks set them.
    """
    if "LOCAL_RANK" in environ or "WORLD_SIZE" in environ:
        return environ.get("RANK", ""), environ.get("WORLD_SIZE", ""), True
    if "OMPI_COMM_WORLD_RANK" in environ:
        return environ["OMPI_COMM_WORLD_RANK"], environ.get("OMPI_COMM_WORLD_SIZE", ""), True
    if "MASTER_ADDR" in environ and "SLURM_LOCALID" in environ:  # else tasks of a step need not belong together
        return environ.get("SLURM_PROCID", ""), environ.get("SLURM_NTASKS", ""), False
    return "", "", False


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


def read_environ(pid: int) -> dict[str, str]:
    """The environment that a process was started with; empty if it belongs to somebody else."""
    try:
        text = Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8", "replace")
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)
