"""Files of a simulated hang as the tools write them: Flight Recorder dumps of NCCL's shape, NCCL RAS answers, py-spy and
faulthandler stacks, observed processes. Which of them there are, their names and versions are drawn.
"""

import json
import pickle
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hangs.simulated import Group, Simulation, simulate

BEGUN_NS = 1_795_000_000_000_000_000
RAS_NAMES = {
    "broadcast": "Broadcast", "all_reduce": "AllReduce", "_all_gather_base": "AllGather", "_reduce_scatter_base": "ReduceScatter",
}  # fmt: skip
SITE = "/opt/venv/lib/python3.11/site-packages"
WORK = {
    "loader": [("_try_get_data", f"{SITE}/torch/utils/data/dataloader.py", 1284),
               ("__next__", f"{SITE}/torch/utils/data/dataloader.py", 733)],
    "checkpoint": [("_save", f"{SITE}/torch/serialization.py", 1240), ("save", f"{SITE}/torch/serialization.py", 965)],
    "compute": [("tokenize", "/home/user/train/text.py", 52)],
    "sleep": [("retry", "/home/user/train/store.py", 17)],
    "lock": [("put", "/home/user/train/metrics.py", 31)],
    "queue": [("wait", "/usr/lib/python3.11/threading.py", 327), ("get", "/usr/lib/python3.11/queue.py", 171)],
    "child": [("_try_wait", "/usr/lib/python3.11/subprocess.py", 2012), ("wait", "/usr/lib/python3.11/subprocess.py", 1264)],
    "storage": [("read_shard", "/home/user/train/data.py", 77)],
    "kernel": [("synchronize", f"{SITE}/torch/cuda/__init__.py", 1085)],
}  # fmt: skip
CHANNELS = {
    "loader": ("S", "poll_schedule_timeout", 2), "checkpoint": ("S", "pipe_write", 3), "compute": ("R", "0", 480),
    "sleep": ("S", "hrtimer_nanosleep", 0), "lock": ("S", "futex_do_wait", 0), "queue": ("S", "futex_do_wait", 1),
    "child": ("S", "do_wait", 0), "storage": ("D", "rpc_wait_bit_killable", 0), "kernel": ("R", "0", 500),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One hang with its files and its truth. ``looks``: a folder each."""

    kind: str
    seed: int
    world: int
    ranks: frozenset[int]
    """The ranks that a right verdict names."""
    others_right: tuple[frozenset[int], ...]
    """Other answers that are right: both ranks of a pair that disagree."""
    way: str
    looks: tuple[Path, ...]
    has_recorder: bool


def write_case(kind: str, seed: int, folder: Path, *, has_recorder: bool = True) -> Case:
    """Simulate a hang and write its files."""
    simulation = simulate(kind, seed)
    rng = random.Random(f"files-{kind}-{seed}-{has_recorder}")
    style = _Style(rng)
    looks = []
    for number in range(2):
        if kind == "slow":
            simulation.settle(simulation.fault.at + number)
        look = folder / f"look{number + 1}"
        look.mkdir(parents=True)
        looks.append(look)
        if has_recorder:
            _write_dumps(simulation, style, look)
        else:
            _write_ras(simulation, style, look, number)
        _write_stacks(simulation, style, look)
        _write_processes(simulation, look, number, is_reported=style.reports_end)
    fault = simulation.fault
    ranks = frozenset({fault.rank})
    right: tuple[frozenset[int], ...] = ()
    if kind == "link":
        members = frozenset(
            simulation.group(simulation.programs[fault.rank][simulation.completed[fault.rank]].group).ranks
        )
        ranks, right = frozenset(), (members,)
    if kind == "mismatch" and simulation.world == 2:
        right = (frozenset({0, 1}),)
    if kind == "slow":
        right = (frozenset(),)
    return Case(kind, seed, simulation.world, ranks, right, fault.text, tuple(looks), has_recorder)


class _Style:
    """Formats, names and versions of one case."""

    def __init__(self, rng: random.Random) -> None:
        self.version = rng.choice(("2.1", "2.4", "2.5", "2.9", "2.10"))
        self.is_json = rng.random() < 0.3
        self.name = rng.choice(
            ("nccl_trace_rank_{}", "{}", "dump-{:05d}.bin", "comm_lib_trace_rank_{}.pkl", "job4711.host{}.trace")
        )
        self.stacks = rng.choice(("pyspy", "faulthandler"))
        self.is_timed_out = rng.random() < 0.5
        self.ring = rng.choice((200, 2000))
        self.reports_end = rng.random() < 0.5
        self.ras_is_json = rng.random() < 0.5
        self.is_ras_dead = rng.random() < 0.5


def _write_dumps(simulation: Simulation, style: _Style, look: Path) -> None:
    for rank in range(simulation.world):
        if simulation.kind == "dead" and rank == simulation.fault.rank:
            continue
        document = dump_of(simulation, rank, style.version, style.ring, is_timed_out=style.is_timed_out)
        name = style.name.format(rank)
        if style.is_json:
            (look / f"{name}.json").write_text(json.dumps(_as_json(document)))
        else:
            (look / name).write_bytes(pickle.dumps(document, protocol=2))


def dump_of(
    simulation: Simulation, rank: int, version: str, ring: int, *, is_timed_out: bool = False
) -> dict[str, Any]:
    """One rank's dump as the recorder lays it out for NCCL."""
    own = [group for group in simulation.groups if rank in group.ranks]
    numbers = {group.name: number for number, group in enumerate(own)}
    counts: Counter[str] = Counter()
    entries = []
    status = {str(number): {"last_enqueued_collective": -1, "last_started_collective": -1, "last_completed_collective": -1}
              for number in numbers.values()}  # fmt: skip
    for index, operation in enumerate(simulation.programs[rank][: simulation.enqueued[rank]]):
        counts[operation.group] += 1
        number = counts[operation.group]
        is_done, is_started = index < simulation.completed[rank], index < simulation.started[rank]
        created = BEGUN_NS + index * 10_000_000 + rank * 1_000
        reached = status[str(numbers[operation.group])]
        reached["last_enqueued_collective"] = number
        if is_started:
            reached["last_started_collective"] = number
        if is_done:
            reached["last_completed_collective"] = number
        group = simulation.group(operation.group)
        inputs = operation.elements * (len(group.ranks) if operation.name == "_reduce_scatter_base" else 1)
        outputs = operation.elements * (len(group.ranks) if operation.name == "_all_gather_base" else 1)
        entry: dict[str, Any] = {
            "record_id": index, "pg_id": numbers[operation.group], "process_group": (group.name, group.description),
            "collective_seq_id": number, "p2p_seq_id": 0, "op_id": number, "profiling_name": f"nccl:{operation.name}",
            "time_created_ns": created, "input_sizes": [[inputs]], "input_dtypes": [operation.type],
            "output_sizes": [[outputs]], "output_dtypes": [operation.type],
            "state": "completed" if is_done else "started" if is_started else "scheduled",
            "time_discovered_started_ns": created + 500_000 if is_started else None,
            "time_discovered_completed_ns": created + 900_000 if is_done else None,
            "retired": is_done or (is_timed_out and is_started), "timeout_ms": 600_000, "is_p2p": False,
            "frames": [
                {"name": operation.name, "filename": f"{SITE}/torch/distributed/distributed_c10d.py", "line": 2500},
                {"name": "train_step", "filename": "/home/user/train/train.py", "line": operation.line},
            ],
        }  # fmt: skip
        if version in ("2.9", "2.10"):
            entry |= {"thread_id": "1401", "thread_name": "pt_main_thread"}
        entries.append(entry)
    return {
        "version": version,
        "pg_config": {
            group.name: {"name": group.name, "desc": group.description, "ranks": str(list(group.ranks))}
            for group in own
        },
        "pg_status": status,
        "entries": entries[-ring:],
    } | ({"comm_lib_version": "2.28.9", "nccl_comm_state": {}} if version == "2.10" else {})


def _as_json(document: dict[str, Any]) -> dict[str, Any]:
    """As torch writes JSON: no stacks, statuses as strings, missing times 0."""
    entries = [
        {
            name: 0 if value is None and name.startswith("time_") else value
            for name, value in entry.items()
            if name != "frames"
        }
        for entry in document["entries"]
    ]
    status = {
        group: {name: str(value) for name, value in about.items()} for group, about in document["pg_status"].items()
    }
    return document | {"entries": entries, "pg_status": status}


def _doing(simulation: Simulation, rank: int) -> list[tuple[str, str, int]]:
    """The stack of a rank, innermost first."""
    fault = simulation.fault
    top = [("main", "/home/user/train/train.py", 120), ("<module>", "/home/user/train/train.py", 130)]
    if rank == fault.rank and simulation.kind in ("absent", "deadlock", "slow"):
        return [*WORK[fault.text], ("train_step", "/home/user/train/train.py", 33), *top]
    if rank == fault.rank and simulation.kind in ("storage", "kernel"):
        return [*WORK[simulation.kind], ("train_step", "/home/user/train/train.py", 34), *top]
    if simulation.ahead > 1:
        return [
            ("synchronize", f"{SITE}/torch/cuda/__init__.py", 1085),
            ("train_step", "/home/user/train/train.py", 95),
            *top,
        ]
    operation = simulation.programs[rank][simulation.enqueued[rank] - 1]
    return [
        (operation.name, f"{SITE}/torch/distributed/distributed_c10d.py", 2500),
        ("train_step", "/home/user/train/train.py", operation.line),
        *top,
    ]


def _write_stacks(simulation: Simulation, style: _Style, look: Path) -> None:
    for rank in range(simulation.world):
        if simulation.kind == "dead" and rank == simulation.fault.rank:
            continue
        frames = _doing(simulation, rank)
        if style.stacks == "pyspy":
            threads = [
                {"pid": 5000 + rank, "thread_id": 1, "thread_name": "MainThread", "os_thread_id": 5000 + rank, "active": True,
                 "owns_gil": False, "frames": [
                     {"name": name, "filename": file, "module": None, "short_filename": None, "line": line, "locals": None,
                      "is_entry": False} for name, file, line in frames]},
                {"pid": 5000 + rank, "thread_id": 2, "thread_name": "Thread-1", "os_thread_id": 6000 + rank, "active": False,
                 "owns_gil": False, "frames": [{"name": "wait", "filename": "threading.py", "line": 327}]},
            ]  # fmt: skip
            (look / f"pyspy-{5000 + rank}.json").write_text(json.dumps(threads))
        else:
            lines = [
                "Thread 0x00007f01 (most recent call first):",
                '  File "/usr/lib/python3.11/threading.py", line 327 in wait',
                "",
            ]
            lines += ["Current thread 0x00007f02 (most recent call first):"]
            lines += [f'  File "{file}", line {line} in {name}' for name, file, line in frames]
            (look / f"stack.rank{rank}.txt").write_text("\n".join(lines) + "\n")


def _write_processes(simulation: Simulation, look: Path, number: int, *, is_reported: bool) -> None:
    processes = []
    for rank in range(simulation.world):
        about: dict[str, Any] = {"rank": rank, "pid": 5000 + rank}
        if simulation.kind == "dead" and rank == simulation.fault.rank:
            if not is_reported:
                continue
            about |= {"state": "X", "exit_signal": 9}
        else:
            doing = "kernel" if simulation.ahead > 1 else "sleep"
            if rank == simulation.fault.rank:
                doing = {"storage": "storage", "kernel": "kernel"}.get(simulation.kind, simulation.fault.text) or doing
            state, channel, ticks = CHANNELS.get(doing, CHANNELS["sleep"])
            about |= {"state": state, "wait_channel": channel, "cpu_ticks": 1000 + number * ticks}
        processes.append(about)
    taken = BEGUN_NS // 1_000_000 + 10_000 + 5_000 * number
    (look / "processes.json").write_text(
        json.dumps(
            {"clusterscape_processes": 1, "taken_ms": taken, "world_size": simulation.world, "processes": processes}
        )
    )


def _launches(simulation: Simulation, group: Group, rank: int) -> dict[str, int]:
    counts = dict.fromkeys(("Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"), 0)
    for operation in simulation.programs[rank][: simulation.enqueued[rank]]:
        if operation.group == group.name:
            counts[RAS_NAMES[operation.name]] += 1
    return counts


def _write_ras(simulation: Simulation, style: _Style, look: Path, number: int) -> None:
    lost = simulation.fault.rank if simulation.kind == "dead" else None
    if style.ras_is_json:
        text = ras_json(simulation, lost, is_dead=style.is_ras_dead)
    else:
        text = ras_text(simulation, lost, is_dead=style.is_ras_dead)
    (look / f"ras-{number}").write_text(text)


def ras_json(simulation: Simulation, lost: int | None, *, is_dead: bool) -> str:
    """The answer of NCCL 2.28.9 in JSON, with the comma that it forgets."""
    communicators = []
    for number, group in enumerate(simulation.groups):
        ranks, missing = [], []
        for place, rank in enumerate(group.ranks):
            about: dict[str, Any] = {
                "rank": place,
                "host": "10.0.0.1",
                "pid": 5000 + rank,
                "cuda_dev": rank,
                "nvml_dev": rank,
            }
            if rank == lost:
                missing.append(about | {"status": {"unresponsive": True, "considered_dead": is_dead}})
                continue
            status = {
                "init_state": 0,
                "async_error": 0,
                "finalize_called": False,
                "destroy_flag": False,
                "abort_flag": False,
            }
            ranks.append(about | {"status": status, "collective_counts": _launches(simulation, group, rank)})
        communicators.append(
            {"hash": f"0x{number + 17:x}", "secondary_hash": "0x1:0x2", "size": len(group.ranks), "ranks_count": len(ranks),
             "missing_ranks_count": len(missing), "ranks": ranks, "missing_ranks": missing}
        )  # fmt: skip
    document = {"nccl_version": "2.28.9", "communicators_count": len(communicators), "communicators": communicators,
                "ras": {"collection_time_sec": 0.0, "timeouts_count": 0}}  # fmt: skip
    head, separator, tail = json.dumps(document, indent=2).rpartition('"missing_ranks": [\n')
    if lost is not None:
        return json.dumps(document, indent=2).replace(
            f'"nvml_dev": {lost},\n          "status": {{\n            "unresponsive"',
            f'"nvml_dev": {lost}\n          "status": {{\n            "unresponsive"',
        )
    return head + separator + tail


def _place(rank: int) -> str:
    return f"GPU {rank} managed by process {5000 + rank} on node 10.0.0.1"


def ras_text(simulation: Simulation, lost: int | None, *, is_dead: bool) -> str:
    """The answer as text: only what differs is listed."""
    lines = ["NCCL version 2.28.9 compiled with CUDA 12.9", "CUDA runtime version 12090, driver version 13000", "",
             "Job summary", "===========", "", "  Nodes  Processes         GPUs  Processes     GPUs",
             "(total)   per node  per process    (total)  (total)",
             f"      1  {simulation.world:9d}            1  {simulation.world:9d}  {simulation.world:7d}", "",
             "Communicators... (0.00s)", "=============", "",
             "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors",
             "    #  in group  per comm  per node  per comm  in group"]  # fmt: skip
    for number, group in enumerate(simulation.groups):
        size = len(group.ranks)
        lines.append(f"{number:5d}  {1:8d}  {1:8d}  {size:8d}  {size:8d}  {size:8d}   RUNNING      OK")
    lines += ["", "Errors", "======", ""]
    if lost is not None and is_dead:
        lines += ["DEAD", "  1 job process is considered dead (unreachable via the RAS network)",
                  f"  Process {5000 + lost} on node 10.0.0.1 managing GPU {lost}", ""]  # fmt: skip
    for number, group in enumerate(simulation.groups):
        if lost in group.ranks:
            lines += [f"#{number}-0 ({number + 17:016x}) INCOMPLETE", "  Missing communicator data from 1 rank",
                      f"  Rank {group.ranks.index(lost)} -- {_place(lost)}", ""]  # fmt: skip
    lines += ["Warnings", "========", ""]
    for number, group in enumerate(simulation.groups):
        counts = {rank: _launches(simulation, group, rank) for rank in group.ranks if rank != lost}
        differing = [name for name in RAS_NAMES.values() if len({count[name] for count in counts.values()}) > 1]
        if differing:
            lines.append(f"#{number}-0 ({number + 17:016x}) MISMATCH")
        for name in differing:
            lines.append(f"  Communicator ranks have different {name} operation counts")
            by_count = Counter(count[name] for count in counts.values())
            for value, many in sorted(by_count.items(), key=lambda item: -item[1]):
                places = [rank for rank in group.ranks if rank in counts and counts[rank][name] == value]
                if many > 1:
                    lines.append(f"  {many} ranks have launched up to operation {value}")
                for rank in places if many <= 2 else ():
                    said = "" if many > 1 else f" has launched up to operation {value}"
                    lines.append(f"  Rank {group.ranks.index(rank)}{said} -- {_place(rank)}")
            lines.append("")
    return "\n".join(lines) + "\n"
