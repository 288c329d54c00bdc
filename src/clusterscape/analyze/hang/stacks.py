"""What a rank does, by its stack and its process, and ranks with equal stacks. Two looks tell waiting from working."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from clusterscape.analyze.hang.progress import IDLE_CORES, SLEEP_CHANNEL, Progress, cores, find_progress, name_helper
from clusterscape.model.hangs import HangKind, HelperLook, ProcessLook, RankLook, StackFrame, StackGroup, ThreadStack

NOT_USER = re.compile(
    r"(^|/)(site-packages|dist-packages|torch|lib/python3[^/]*|python3\.\d+)/|^<|clusterscape/track/startup/"
)
"""Files of libraries and of the interpreter."""
STORAGE_CHANNEL = re.compile(
    r"nfs|rpc_wait|io_schedule|folio|page_writeback|on_page|lustre|cl_|ceph|request_wait_answer|fuse|jbd2|xfs|btrfs|ext4|"
    r"blk_|submit_bio|balance_dirty|wb_wait|sync_inodes|gpfs|cxiWait|beegfs|vfs_"
)
LOCK_CHANNEL = re.compile(r"futex|do_semtimedop")
FILE_LOCK_CHANNEL = re.compile(r"locks_lock|flock|fcntl_setlk")
CHILD_CHANNEL = re.compile(r"^do_wait|kernel_wait4")
COLLECTIVE_FILE = re.compile(
    r"torch/distributed/(distributed_c10d|_functional_collectives|nn/functional|tensor/.*)\.py$"
)
_LOADER = ("torch/utils/data/", "torchdata/", "datasets/iterable_dataset.py", "webdataset/")
_LOCK_FILES = ("threading.py", "queue.py", "concurrent/futures/_base.py", "multiprocessing/synchronize.py", "filelock/")
_LOCK_FUNCTIONS = frozenset(
    {"wait", "acquire", "join", "_wait_for_tstate_lock", "get", "put", "result", "__enter__", "wait_for"}
)
_CHILD_FILES = ("subprocess.py", "multiprocessing/popen_fork.py", "multiprocessing/popen_spawn_posix.py")
_FILE_FILES = (
    "torch/serialization.py", "torch/distributed/checkpoint/", "safetensors/", "numpy/lib/", "h5py/", "pyarrow/", "fsspec/",
    "gzip.py", "zipfile.py", "shutil.py", "tarfile.py", "pickle.py",
)  # fmt: skip
_FILE_FUNCTIONS = re.compile(r"checkpoint|fsync")
_SYNC_FUNCTIONS = frozenset(
    {"synchronize", "item", "cpu", "tolist", "numpy", "nonzero", "current_stream", "elapsed_time"}
)
_RENDEZVOUS_FUNCTIONS = frozenset(
    {"init_process_group", "new_group", "new_subgroups", "split_group", "_store_based_barrier"}
)
_WORKER_FILES = ("torch/utils/data/_utils/worker.py", "multiprocessing/process.py", "concurrent/futures/process.py")
"""Where the own work of a forked helper ends, and what it inherited from its parent begins."""
_NETWORK_FILES = ("socket.py", "ssl.py", "http/client.py")


@dataclass(frozen=True, slots=True)
class Occupation:
    """What a rank does instead of its collective. ``is_decisive``: a fact says so, not only a name in the stack."""

    kind: HangKind
    phrase: str
    frame: StackFrame | None
    evidence: str | None = None
    is_decisive: bool = False
    is_blocked: bool = False
    """It cannot go on by itself: a hang, even if no other rank waits."""
    progress: Progress | None = None
    """What shows that it works."""


def main_stack(look: RankLook | None) -> ThreadStack | None:
    """The stack of the main thread."""
    if look is None or not look.stacks:
        return None
    return next((stack for stack in look.stacks if stack.is_main), look.stacks[0])


def user_frame(frames: Sequence[StackFrame]) -> StackFrame | None:
    """The innermost frame of the user's code, else the innermost frame."""
    return next((frame for frame in frames if not NOT_USER.search(frame.file)), frames[0] if frames else None)


def module_of(frame: StackFrame) -> str | None:
    """The Python module of a frame, as far as its path tells."""
    path = re.split(r"(?:site|dist)-packages/", frame.file)
    if len(path) > 1:
        return path[-1].removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    stem = frame.file.rpartition("/")[2].removesuffix(".py")
    return stem or None


def write_frame(frame: StackFrame) -> str:
    """``train.py:88 in load``."""
    line = "" if frame.line is None else f":{frame.line}"
    return f"{frame.file.rpartition('/')[2]}{line} in {frame.function}"


def is_in_collective(stack: ThreadStack | None) -> bool:
    """Whether the innermost frames are of a collective call."""
    return stack is not None and any(COLLECTIVE_FILE.search(frame.file) for frame in stack.frames[:8])


def find_occupation(now: RankLook | None, before: RankLook | None, elapsed_s: float | None) -> Occupation | None:
    """What a rank does, by its last look and the one before; None if neither stack nor process is known."""
    occupation = _find_state(now, before, elapsed_s)
    if now is None or occupation is None or not elapsed_s or occupation.kind in (HangKind.DEAD, HangKind.KERNEL):
        return occupation
    stack, earlier = main_stack(now), main_stack(before)
    progress = find_progress(now, before, stack.frames if stack else (), earlier.frames if earlier else (), elapsed_s)
    if progress is None or is_in_collective(stack):
        return occupation
    is_host_wait = occupation.kind is HangKind.DEADLOCK and progress.is_sure
    kind = HangKind.ABSENT if is_host_wait else occupation.kind
    return replace(
        occupation, kind=kind, evidence=progress.text, progress=progress, is_decisive=False, is_blocked=False
    )


def is_in_network(look: RankLook | None) -> bool:
    """Whether a thread waits for the network."""
    if look is not None and look.process is not None and look.process.is_thread_in_socket:
        return True
    inner = [frame.file for stack in (look.stacks if look else ()) for frame in stack.frames[:2]]
    return any(file.endswith(name) for file in inner for name in _NETWORK_FILES)


def _find_state(now: RankLook | None, before: RankLook | None, elapsed_s: float | None) -> Occupation | None:
    if now is None:
        return None
    process, stack = now.process, main_stack(now)
    frames = stack.frames if stack else ()
    frame = user_frame(frames)
    if process is not None and (ended := _find_end(process)):
        return Occupation(HangKind.DEAD, ended, frame, f"its process {ended}", is_decisive=True)
    earlier = main_stack(before)
    is_still = earlier is not None and _key(earlier.frames) == _key(frames)
    channel = (process.wait_channel if process else None) or ""
    if process is not None and process.state in ("T", "t"):
        return Occupation(
            HangKind.ABSENT,
            "is stopped by a signal or a debugger",
            frame,
            f"process state {process.state}",
            is_decisive=True,
            is_blocked=True,
        )
    if process is not None and (process.state == "D" or STORAGE_CHANNEL.search(channel)):
        where = f" in {channel}" if channel else ""
        where += f": {process.waits_on}" if process.waits_on else ""
        return Occupation(
            HangKind.STORAGE,
            "waits for a file system",
            frame,
            f"process state {process.state}{where}",
            is_decisive=True,
            is_blocked=True,
        )
    if held := _other_gil_owner(now):
        owner = user_frame(held.frames)
        phrase = f"waits for the GIL, which thread {held.name or '?'} holds"
        return Occupation(
            HangKind.DEADLOCK,
            phrase,
            owner,
            "py-spy: another thread owns the GIL",
            is_decisive=is_still,
            is_blocked=True,
        )
    if any(word in inner.file for inner in frames[:12] for word in _LOADER):
        waits = Occupation(HangKind.ABSENT, "waits for its data loader", frame, None, is_decisive=is_still)
        return _blame_helper(waits, process, before, elapsed_s)
    if any(inner.function in _SYNC_FUNCTIONS and "torch/" in inner.file for inner in frames[:3]):
        return Occupation(
            HangKind.KERNEL, "waits for its GPU", frame, "its stack is in a synchronizing call", is_decisive=is_still
        )
    load = cores(process, before.process if before else None, elapsed_s)
    if host_wait := _find_host_wait(frames, channel, load, is_still=is_still, has_process=process is not None):
        is_child = "process" in host_wait[0]
        blocked = Occupation(
            HangKind.DEADLOCK,
            host_wait[0],
            frame,
            host_wait[1],
            is_decisive=is_still and bool(channel),
            is_blocked=not is_child,
        )
        return _blame_helper(blocked, process, before, elapsed_s) if is_child else blocked
    waits_on = process.waits_on if process else None
    was_waiting_on = before.process.waits_on if before and before.process else None
    if waits_on and waits_on == was_waiting_on:
        return _find_read(waits_on, frame)
    return _find_work(frames, frame, channel, load, is_still=is_still)


def _find_read(waits_on: str, frame: StackFrame | None) -> Occupation:
    """A system call on a file that lasts through both looks."""
    verb, _, target = waits_on.partition(" ")
    phrase = {"read": "waits for data from", "write": "waits to write to", "sync": "waits to write to"}.get(
        verb, "waits for"
    )
    phrase = (
        "waits for input" if target == "standard input" else f"{phrase} {target if target[:2] == 'a ' else 'a file'}"
    )
    return Occupation(HangKind.ABSENT, phrase, frame, f"in both looks: {waits_on}", is_decisive=True)


def _blame_helper(
    waits: Occupation, process: ProcessLook | None, before: RankLook | None, elapsed_s: float | None
) -> Occupation:
    """What a rank waits for, with the helper that is stopped, has ended, or is blocked itself."""
    earlier = {helper.pid: helper for helper in (before.process.helpers if before and before.process else ())}
    for helper in process.helpers if process else ():
        own = _as_rank(helper)
        occupation = _find_state(own, _as_rank(earlier[helper.pid]) if helper.pid in earlier else None, elapsed_s)
        # An idle worker waits for its next task, which is not work.
        is_idle = occupation is None or (not own.stacks and occupation.kind is HangKind.DEADLOCK)
        if occupation is None or is_idle or not (occupation.is_blocked or occupation.kind is HangKind.DEAD):
            continue
        kind = waits.kind if occupation.kind is HangKind.DEAD else occupation.kind
        return replace(
            waits,
            kind=kind,
            phrase=f"{waits.phrase}: {name_helper(helper)} {occupation.phrase}",
            frame=occupation.frame or waits.frame,
            evidence=f"{name_helper(helper)}: {occupation.evidence or occupation.phrase}",
            is_decisive=True,
            is_blocked=True,
        )
    return waits


def _as_rank(helper: HelperLook) -> RankLook:
    """A helper as if it were a rank, with the part of its stack that is its own and not a queue's or its parent's."""
    frames = helper.frames
    end = next((place for place, frame in enumerate(frames) if any(name in frame.file for name in _WORKER_FILES)), None)
    own = tuple(frame for frame in frames[:end] if not any(name in frame.file for name in _LOADER))
    has_work = any(not NOT_USER.search(frame.file) for frame in own)
    stacks = (ThreadStack(own, is_main=True),) if has_work else ()
    return RankLook(-1, stacks=stacks, process=helper.process)


def _find_end(process: ProcessLook) -> str | None:
    if process.ran_out_of_memory:
        return "was killed by the kernel: out of memory"
    if process.exit_signal:
        return f"was killed by signal {process.exit_signal}"
    if process.exit_code is not None:
        return f"has ended with exit code {process.exit_code}"
    if process.state in ("X", "Z"):
        return "does not exist any more" if process.state == "X" else "has ended"
    return None


def _other_gil_owner(look: RankLook) -> ThreadStack | None:
    """The thread that owns the GIL if it is not the main thread, and the main thread waits."""
    owner = next((stack for stack in look.stacks if stack.owns_gil), None)
    return owner if owner is not None and owner is not main_stack(look) else None


def _find_host_wait(
    frames: Sequence[StackFrame], channel: str, load: float | None, *, is_still: bool, has_process: bool
) -> tuple[str, str] | None:
    """A wait for a lock, a thread or a process, with its evidence. Threads of a math library wait in futexes, too, but work."""
    inner = frames[:4]
    is_lock_stack = any(
        frame.function in _LOCK_FUNCTIONS and any(name in frame.file for name in _LOCK_FILES) for frame in inner
    )
    if CHILD_CHANNEL.search(channel) or any(name in frame.file for frame in inner for name in _CHILD_FILES):
        return "waits for a process that it started", f"waits in {channel or 'subprocess'}"
    is_idle = load is None or load < IDLE_CORES
    if FILE_LOCK_CHANNEL.search(channel):
        return "waits for a file lock", f"sleeps in {channel}"
    if LOCK_CHANNEL.search(channel) and is_idle and (is_still or is_lock_stack or not frames):
        return "waits for a lock", f"sleeps in {channel} without using the CPU"
    if is_lock_stack and is_idle and (not has_process or not channel):
        return "waits for a lock or a thread", "its stack is in a lock" + (" in both looks" if is_still else "")
    return None


def _find_work(
    frames: Sequence[StackFrame], frame: StackFrame | None, channel: str, load: float | None, *, is_still: bool
) -> Occupation | None:
    if any(inner.function in _RENDEZVOUS_FUNCTIONS for inner in frames):
        return Occupation(HangKind.ABSENT, "creates a process group", frame, None, is_decisive=is_still)
    if SLEEP_CHANNEL.search(channel):
        return Occupation(HangKind.ABSENT, "sleeps", frame, f"sleeps in {channel}", is_decisive=True)
    if any(
        any(name in inner.file for name in _FILE_FILES) or _FILE_FUNCTIONS.search(inner.function)
        for inner in frames[:4]
    ):
        return Occupation(HangKind.ABSENT, "reads or writes files", frame, None, is_decisive=is_still)
    if any(inner.file.endswith("selectors.py") for inner in frames[:2]):
        return Occupation(HangKind.ABSENT, "waits for events", frame, None)
    if load is not None and load > 0.5:
        return Occupation(HangKind.ABSENT, "computes on the CPU", frame, f"uses {load:.1f} cores", is_decisive=True)
    if frame is None:
        return Occupation(HangKind.ABSENT, f"waits in {channel}", None, None) if channel and channel != "0" else None
    return Occupation(HangKind.ABSENT, f"is in {frame.function}", frame, None, is_decisive=is_still)


def _key(frames: Iterable[StackFrame]) -> tuple[tuple[str, str, int | None], ...]:
    return tuple((frame.function, frame.file, frame.line) for frame in frames)


def fold_stacks(ranks: Mapping[int, RankLook], most_frames: int = 12) -> tuple[StackGroup, ...]:
    """Ranks with equal main stacks, the smallest group first: the odd one is what is looked for."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for rank, look in ranks.items():
        stack = main_stack(look)
        frames = stack.frames if stack else _pending_frames(look)
        if frames:
            groups.setdefault(tuple(write_frame(frame) for frame in frames[:most_frames]), []).append(rank)
    return tuple(
        StackGroup(ranks=tuple(members), frames=frames)
        for frames, members in sorted(groups.items(), key=lambda group: (len(group[1]), group[1][0]))
    )


def _pending_frames(look: RankLook) -> tuple[StackFrame, ...]:
    """Where the rank made its pending call."""
    return next((call.frames for call in look.calls if not call.is_done), ())
