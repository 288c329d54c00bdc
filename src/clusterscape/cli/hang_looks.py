"""Takes looks for ``clusterscape hang`` at what no tracker watches: own processes of a job, and PyTorch's debug server.

Nothing is attached unless the user asks for the job. Each source is optional: ``/proc``, py-spy, the Flight Recorder's pipe,
NCCL RAS.
"""

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

from clusterscape.errors import NotFoundError, SourceError
from clusterscape.track.hang_looks import ChosenProcesses, Looker, find_processes, read_environ

PYSPY_WITHIN_S = 20.0
DUMP_WITHIN_S = 10.0
RAS_WITHIN_S = 10.0
RAS_ADDRESS = "localhost:28028"
MAX_ANSWER_BYTES = 256 << 20
PAGES = ("stacks", "fr_trace_nccl_json", "fr_trace_json")
"""Pages of the debug server that say something of all ranks."""


def look_at_job(job: str, folder: Path, apart_s: float, tell: Callable[[str], None]) -> list[Path]:
    """Two looks at the caller's processes of a job on this machine. ``job``: a Slurm job, or ``pid:4711``.

    Raises NotFoundError if there are none.
    """
    pids = find_processes(below=_pid_of(job)) if job.startswith("pid:") else find_processes(slurm_job=job)
    if not pids:
        raise NotFoundError(
            f"no file and no process of yours on {socket.gethostname()} belongs to `{job}`",
            hint=f"On each node of the job: srun --jobid {job} --overlap clusterscape hang {job} --save FOLDER",
        )
    looker = Looker(folder, ChosenProcesses(pids), lambda: int(time.time() * 1000))
    looker.find_ranks()
    ranks = looker.ranks or {pids[0]: 0}
    tell(f"Looking twice at {len(ranks)} {'rank' if len(ranks) == 1 else 'ranks'}, {apart_s:g} s apart…")
    looks = []
    for number in (1, 2):
        if number == 2:
            time.sleep(apart_s)
        into = looker.look(number)
        _add_sources(ranks, into, tell if number == 1 else lambda _: None)
        looks.append(into)
    return looks


def _pid_of(job: str) -> int:
    text = job.removeprefix("pid:")
    if not text.isdigit() or not Path(f"/proc/{text}").exists():
        raise NotFoundError(f"no process {text}", hint="Give the process id of a rank, or of what started the ranks.")
    return int(text)


def _add_sources(ranks: Mapping[int, int], into: Path, tell: Callable[[str], None]) -> None:
    pyspy = shutil.which("py-spy")
    if pyspy is None:
        tell("py-spy is not installed: no stacks (`pip install py-spy`).")
    refused = False
    for pid, rank in ranks.items():
        if pyspy is not None and not (into / f"stacks-rank{rank}.txt").exists():
            refused |= not _dump_stacks(pyspy, pid, into / f"stacks-rank{rank}.json")
        _dump_recorder(pid, rank, into / f"recorder-rank{rank}.bin")
    if refused:
        tell("py-spy may not look at some processes: start ranks under `clusterscape run`, or allow ptrace.")
    answer = ask_ras(
        next((address for pid in ranks if (address := read_environ(pid).get("NCCL_RAS_ADDR"))), RAS_ADDRESS)
    )
    if answer:
        (into / "ras").write_bytes(answer)


def _dump_stacks(pyspy: str, pid: int, file: Path) -> bool:
    try:
        done = subprocess.run(
            [pyspy, "dump", "--json", "--pid", str(pid)], capture_output=True, timeout=PYSPY_WITHIN_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    if done.returncode == 0:
        file.write_bytes(done.stdout)
    return done.returncode == 0


def _dump_recorder(pid: int, rank: int, file: Path) -> None:
    """Ask NCCL's watchdog for a dump by its pipe, if the job has one."""
    environ = read_environ(pid)
    pipe = environ.get("TORCH_NCCL_DEBUG_INFO_PIPE_FILE")
    target = environ.get("TORCH_FR_DUMP_TEMP_FILE") or environ.get("TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
    if not pipe:
        return
    dump = Path(f"{target or '/tmp/nccl_trace_rank_'}{rank}")  # noqa: S108 – the default of PyTorch
    before = dump.stat().st_mtime_ns if dump.exists() else 0
    try:
        fd = os.open(f"{pipe}{rank}.pipe", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.write(fd, b"1\n")
        os.close(fd)
    except OSError:
        return
    deadline = time.monotonic() + DUMP_WITHIN_S
    size = -1
    while time.monotonic() < deadline:
        time.sleep(0.1)
        if dump.exists() and dump.stat().st_mtime_ns > before:
            if dump.stat().st_size == size:
                shutil.copyfile(dump, file)
                return
            size = dump.stat().st_size


def ask_ras(address: str) -> bytes:
    """The status by NCCL RAS, as JSON where NCCL has it; empty if nobody answers."""
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        return b""
    for request in (b"set format json\nverbose status\n", b"verbose status\n"):
        answer = _exchange(host.strip("[]") or "localhost", int(port), request)
        start = answer.find(b"{")
        if request.startswith(b"set") and start >= 0:
            return answer[start:]
        if b"Communicators" in answer:
            return answer
    return b""


def _exchange(host: str, port: int, request: bytes) -> bytes:
    parts = []
    size = 0
    try:
        with socket.create_connection((host, port), timeout=RAS_WITHIN_S) as connection:
            connection.sendall(request)
            while (part := connection.recv(1 << 16)) and size < MAX_ANSWER_BYTES:
                parts.append(part)
                size += len(part)
    except OSError:
        pass
    return b"".join(parts)


def look_at_debug_server(url: str, folder: Path, apart_s: float) -> list[Path]:
    """Two looks by the pages of a debug server, which runs at rank 0 on port 25999. Raises SourceError."""
    looks = []
    for number in (1, 2):
        if number == 2:
            time.sleep(apart_s)
        into = folder / f"look{number}"
        into.mkdir(parents=True)
        for page in PAGES:
            try:
                with urllib.request.urlopen(f"{url.rstrip('/')}/{page}", timeout=90) as answer:  # noqa: S310 – the user's
                    (into / page).write_bytes(answer.read(MAX_ANSWER_BYTES))
            except urllib.error.HTTPError:
                continue  # a page that this version does not have
            except (OSError, ValueError) as error:
                raise SourceError(f"{url} does not answer: {error}", hint="Is it PyTorch's debug server?") from None
        looks.append(into)
    return looks
