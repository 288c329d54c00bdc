"""What a rank does, by its stack and its process, and ranks with equal stacks. Two looks tell waiting from working."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clusterscape.model.hangs import HangKind, ProcessLook, RankLook, StackFrame, StackGroup, ThreadStack

NOT_USER = re.compile(
    r"(^|/)(site-packages|dist-packages|torch|lib/python3[^/]*|python3\.\d+)/|^<|clusterscape/track/startup/"
)
"""Files of libraries and of the interpreter."""
STORAGE_CHANNEL = re.compile(
    r"nfs|rpc_wait|io_schedule|folio|page_writeback|on_page|lustre|cl_|ceph|request_wait_answer|fuse|jbd2|xfs|btrfs|ext4|"
    r"blk_|submit_bio|balance_dirty|wb_wait|sync_inodes|gpfs|cxiWait|beegfs|vfs_"
)
LOCK_CHANNEL = re.compile(r"futex|do_semtimedop|locks_lock|flock|fcntl_setlk")
SLEEP_CHANNEL = re.compile(r"nanosleep")
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
_SAME_STATE_TICKS = 0.05
"""Below this share of a core a process counts as waiting."""
TICKS_PER_S = 100


@dataclass(frozen=True, slots=True)
class Occupation:
    """What a rank does instead of its collective. ``is_decisive``: a fact says so, not only a name in the stack."""

    kind: HangKind
    phrase: str
    frame: StackFrame | None
    evidence: str | None = None
    is_decisive: bool = False


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
        )
    if process is not None and (process.state == "D" or STORAGE_CHANNEL.search(channel)):
        where = f" in {channel}" if channel else ""
        return Occupation(
            HangKind.STORAGE,
            "waits for a file system",
            frame,
            f"process state {process.state}{where}",
            is_decisive=True,
        )
    if held := _other_gil_owner(now):
        owner = user_frame(held.frames)
        phrase = f"waits for the GIL, which thread {held.name or '?'} holds"
        return Occupation(HangKind.DEADLOCK, phrase, owner, "py-spy: another thread owns the GIL", is_decisive=is_still)
    if any(word in inner.file for inner in frames[:12] for word in _LOADER):
        return Occupation(HangKind.ABSENT, "waits for its data loader", frame, None, is_decisive=is_still)
    if any(inner.function in _SYNC_FUNCTIONS and "torch/" in inner.file for inner in frames[:3]):
        return Occupation(
            HangKind.KERNEL, "waits for its GPU", frame, "its stack is in a synchronizing call", is_decisive=is_still
        )
    load = _cores(process, before.process if before else None, elapsed_s)
    if waits := _find_host_wait(frames, channel, load, is_still=is_still, has_process=process is not None):
        return Occupation(HangKind.DEADLOCK, waits[0], frame, waits[1], is_decisive=is_still and bool(channel))
    return _find_work(frames, frame, channel, load, is_still=is_still)


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
    is_idle = load is None or load < _SAME_STATE_TICKS
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
    if load is not None and load > 0.5:
        return Occupation(HangKind.ABSENT, "computes on the CPU", frame, f"uses {load:.1f} cores", is_decisive=True)
    if frame is None:
        return Occupation(HangKind.ABSENT, f"waits in {channel}", None, None) if channel and channel != "0" else None
    return Occupation(HangKind.ABSENT, f"is in {frame.function}", frame, None, is_decisive=is_still)


def _cores(now: ProcessLook | None, before: ProcessLook | None, elapsed_s: float | None) -> float | None:
    if now is None or before is None or now.cpu_ticks is None or before.cpu_ticks is None or not elapsed_s:
        return None
    return max(0, now.cpu_ticks - before.cpu_ticks) / TICKS_PER_S / elapsed_s


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
