"""Real hangs: gloo ranks on this machine that are forked after torch was imported, and looked at by the tracker's own code.

The faults: a rank that sleeps, computes, waits for a lock, is stopped, calls another collective, or calls two groups in another
order; and a slow rank. Every fault acts in a rank's own process; the truth is what it was told to do.
"""

import os
import random
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

KINDS = ("absent", "deadlock", "mismatch", "order", "stopped", "slow")
"""A dead rank is missing: gloo's other ranks end with an error, so nothing hangs."""
STEPS = 40


@dataclass(frozen=True)
class GlooHang:
    """What is to go wrong, and where the looks are."""

    kind: str
    seed: int
    world: int
    rank: int
    at: int
    looks: tuple[Path, ...]


def hang(kind: str, seed: int, folder: Path, *, pause_s: float = 1.0) -> GlooHang:
    """Run ranks until they hang, look at them twice, and end them. Call from a process with one thread."""
    rng = random.Random(f"gloo-{kind}-{seed}")
    world, at = rng.randint(2, 4), rng.randint(8, 16)
    rank = rng.randrange(world)
    folder.mkdir(parents=True)
    pids = [_fork(kind, number, world, rank, at, folder, rng.randint(0, 2**31)) for number in range(world)]
    try:
        return GlooHang(kind, seed, world, rank, at, _look(folder, pids, kind, rank, pause_s))
    finally:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            os.waitpid(pid, 0)


def _look(folder: Path, pids: list[int], kind: str, guilty: int, pause_s: float) -> tuple[Path, ...]:
    from clusterscape.track.hang_looks import Looker
    from clusterscape.track.processes import ProcessTree, read_stat

    looker = Looker(folder, ProcessTree(pids[0]), lambda: int(time.time() * 1000))
    looker._world_size = len(pids)
    looker._ranks = {pid: (rank, stat.started_ticks) for rank, pid in enumerate(pids) if (stat := read_stat(pid))}
    deadline = time.monotonic() + 60
    while not all((folder / f"ready-{rank}").exists() for rank in range(len(pids))):
        assert time.monotonic() < deadline, "the ranks did not reach the fault"
        time.sleep(0.02)
    time.sleep(0.3)  # until the others wait
    if kind == "stopped":
        os.kill(pids[guilty], signal.SIGSTOP)
    looks = [looker.look(1)]
    time.sleep(pause_s)
    looks.append(looker.look(2))
    return tuple(looks)


def _fork(kind: str, rank: int, world: int, guilty: int, at: int, folder: Path, seed: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        _train(kind, rank, world, guilty, at, folder, seed)
        code = 0
    finally:
        os._exit(code)


def _train(kind: str, rank: int, world: int, guilty: int, at: int, folder: Path, seed: int) -> None:
    import torch
    import torch.distributed as dist

    from clusterscape.track.startup import _clusterscape_looks

    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world)}
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    _clusterscape_looks.offer(str(folder))
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / "store"), world)  # type: ignore[attr-defined] # torch exports it at run time
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
    second = dist.new_group(list(range(world)))
    rng = random.Random(seed)
    for step in range(STEPS):
        if step == at:
            (folder / f"ready-{rank}").touch()
        is_guilty = rank == guilty and step == at
        if kind == "slow" and rank == guilty and step >= at:
            slow_step(rng)
        if is_guilty:
            _fail(kind)
        gradients, loss = torch.ones(64), torch.ones(1)
        if is_guilty and kind == "order":
            dist.all_reduce(loss, group=second)
            dist.all_reduce(gradients)
        elif is_guilty and kind == "mismatch":
            dist.all_reduce(loss, group=second)
        else:
            dist.all_reduce(gradients)
            dist.all_reduce(loss, group=second)
        dist.barrier()
    time.sleep(60)


def slow_step(rng: random.Random) -> None:
    """A rank that is late in every step."""
    time.sleep(0.3 + rng.random() * 0.2)


def compute_statistics() -> None:
    """Work on the CPU that does not end."""
    total = 0
    while True:
        total += 1


def wait_for_writer() -> None:
    """A lock that nobody releases."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def _fail(kind: str) -> None:
    if kind == "absent":
        compute_statistics()
    elif kind == "deadlock":
        wait_for_writer()
    elif kind == "stopped":
        time.sleep(60)


RIGHT = {
    "absent": "absent", "deadlock": "deadlock", "mismatch": "mismatch", "order": "mismatch", "stopped": "absent", "slow": "slow",
}  # fmt: skip
"""The class of a right verdict."""
