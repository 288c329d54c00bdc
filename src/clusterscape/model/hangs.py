"""What is known of the ranks of a run that no longer makes steps, and the verdict on it.

A look is everything that was read at one moment, from whichever sources there were; missing is None or empty. ``collect/hangs``
and ``track/hang_looks.py`` make looks, ``analyze/hang`` judges them. Light to import: ``clusterscape run`` uses it.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from typing import Any

from clusterscape.model.identity_fields import access_checked


class HangKind(StrEnum):
    """Why the ranks wait."""

    ABSENT = "absent"
    """A rank does not make the call that the others wait in, because it does something else."""
    MISMATCH = "mismatch"
    """Ranks of a group call different collectives, shapes or types, or collectives in another order."""
    DEAD = "dead"
    """A rank's process has ended."""
    DEADLOCK = "deadlock"
    """A rank waits for a lock, a thread or a process on its own host."""
    KERNEL = "kernel"
    """A rank's collective is queued behind a GPU kernel that does not end."""
    LINK = "link"
    """All ranks are in the same collective, and no data moves: a link, a NIC or a process below it."""
    STORAGE = "storage"
    """A rank waits for a file system."""
    SLOW = "slow"
    """Not a hang: the numbers advance."""
    UNKNOWN = "unknown"
    """Nothing that was read tells."""


LASTING = (HangKind.MISMATCH, HangKind.DEAD, HangKind.DEADLOCK)


class Certainty(StrEnum):
    """How sure a verdict is: of a recorded fact, of its most frequent cause, or only of what was left."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


@dataclass(frozen=True, slots=True)
class StackFrame:
    """One frame of a stack."""

    function: str
    file: str
    line: int | None


@dataclass(frozen=True, slots=True)
class ThreadStack:
    """The Python stack of one thread, innermost frame first."""

    frames: tuple[StackFrame, ...]
    name: str | None = None
    owns_gil: bool | None = None
    is_main: bool | None = None


@dataclass(frozen=True, slots=True)
class CollectiveCall:
    """One call of a collective or of a send or receive, as a rank recorded it. ``order``: of its calls in all groups."""

    group: str
    sequence: int
    operation: str  # all_reduce; send 0->1 with ranks of the group
    is_p2p: bool = False
    input_sizes: tuple[tuple[int, ...], ...] = ()
    output_sizes: tuple[tuple[int, ...], ...] = ()
    types: tuple[str, ...] = ()
    state: str = "scheduled"  # then started, completed; gloo leaves it at scheduled
    is_done: bool = False
    is_timed_out: bool = False
    order: int = 0
    created_ns: int | None = None
    frames: tuple[StackFrame, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """How far a rank is in a process group; ``members`` are ranks of the run, None if the source does not list them."""

    enqueued: int | None = None
    completed: int | None = None
    members: tuple[int, ...] | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class ProcessLook:
    """A process as the kernel describes it. ``state``: R, S, D, T, Z, or X if it does not exist any more.

    ``waits_on``: the call and the file that the main thread is in, such as ``read /data/shard``. ``io_bytes``: of all reads and
    writes. ``switches``: how often the main thread gave up the CPU to wait; ``wanted_ms``: how long it ran, or waited for a core.
    """

    pid: int | None = None
    state: str | None = None
    wait_channel: str | None = None
    cpu_ticks: int | None = None
    exit_code: int | None = None
    exit_signal: int | None = None
    ran_out_of_memory: bool = False
    waits_on: str | None = None
    is_thread_in_socket: bool = False
    io_bytes: int | None = None
    switches: int | None = None
    wanted_ms: float | None = None
    helpers: tuple["HelperLook", ...] = ()


@dataclass(frozen=True, slots=True)
class HelperLook:
    """A process that a rank started: a worker of its data loader, a compiler, a shell. ``frames``: innermost first."""

    pid: int
    name: str | None = None
    process: ProcessLook = field(default_factory=ProcessLook)
    frames: tuple[StackFrame, ...] = ()


@dataclass(frozen=True, slots=True)
class RankLook:
    """What is known of one rank at one moment. ``calls``: the newest, oldest first."""

    rank: int
    files: tuple[str, ...] = ()
    backend: str | None = None
    groups: Mapping[str, GroupProgress] = field(default_factory=dict)
    calls: tuple[CollectiveCall, ...] = ()
    stacks: tuple[ThreadStack, ...] = ()
    process: ProcessLook | None = None
    has_recorder: bool = False

    def merge(self, other: "RankLook") -> "RankLook":
        """Both sources of one rank together; what this one has stays."""
        return replace(
            self,
            files=self.files + other.files,
            backend=self.backend or other.backend,
            groups=self.groups or other.groups,
            calls=self.calls or other.calls,
            stacks=self.stacks or other.stacks,
            process=self.process or other.process,
            has_recorder=self.has_recorder or other.has_recorder,
        )


@dataclass(frozen=True, slots=True)
class CommunicatorLook:
    """A communicator as NCCL RAS describes it, by ranks of the communicator. ``counts``: launched operations by type.

    ``is_of_text``: from an answer as text, which does not list communicators whose ranks agree.
    """

    name: str
    size: int | None
    counts: Mapping[int, Mapping[str, int]]
    processes: Mapping[int, tuple[str, int]] = field(default_factory=dict)  # host and pid
    unresponsive: tuple[int, ...] = ()
    dead: tuple[int, ...] = ()
    errors: Mapping[int, str] = field(default_factory=dict)
    is_of_text: bool = False


@dataclass(frozen=True, slots=True)
class HangLook:
    """Everything that was read at one moment.

    ``is_partial``: only some machines were read. ``unread_share``: damaged files, of all dumps that were given.
    """

    ranks: Mapping[int, RankLook] = field(default_factory=dict)
    communicators: tuple[CommunicatorLook, ...] = ()
    world_size: int | None = None
    taken_ms: int | None = None
    notes: tuple[str, ...] = ()
    is_partial: bool = False
    unread_share: float = 0.0


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class StackGroup:
    """Ranks with equal stacks, innermost frame first."""

    ranks: tuple[int, ...]
    frames: tuple[str, ...]


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class StalledGroup:
    """A process group with a pending call: who is in it, and for whom it waits.

    ``is_victim``: it waits for other groups; ``waits_for``: their places in the list of stalled groups.
    """

    group: str
    description: str | None
    sequence: int | None
    collective: str | None
    waiting: tuple[int, ...]
    missing: tuple[int, ...]
    is_victim: bool
    waits_for: tuple[int, ...] = ()
    since_ms: int | None = None


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class HangVerdict:
    """Who hangs, where and why. ``lost_ratio`` and ``since_ms`` are None if no source has times."""

    kind: HangKind
    title: str
    reason: str
    ranks: tuple[int, ...]
    """The ranks that the others wait for."""
    world_size: int | None
    group: str | None = None
    group_description: str | None = None
    collective: str | None = None
    sequence: int | None = None
    doing: str | None = None
    """What the ranks do instead."""
    place: str | None = None
    """``train.py:88 in load``: where in the code."""
    module: str | None = None
    since_ms: int | None = None
    held_gpus: int | None = None
    """GPUs that wait, which is also the cost in GPU-hours per hour; None if the ranks use none."""
    certainty: Certainty = Certainty.POSSIBLE
    evidence: tuple[str, ...] = ()
    advice: str = ""
    stalled: tuple[StalledGroup, ...] = ()
    stacks: tuple[StackGroup, ...] = ()
    notes: tuple[str, ...] = ()
    alternatives: tuple[HangKind, ...] = ()
    """Other classes that the sources cannot tell from this one, most frequent first."""

    @property
    def is_hang(self) -> bool:
        """Whether it is surely more than slow: worth an alert."""
        return self.kind not in (HangKind.SLOW, HangKind.UNKNOWN) and HangKind.SLOW not in self.alternatives

    @property
    def is_doubtful(self) -> bool:
        """Whether ranks wait for one that works: it may hang, or only be slow."""
        return self.kind not in (HangKind.SLOW, HangKind.UNKNOWN) and HangKind.SLOW in self.alternatives

    @property
    def is_settled(self) -> bool:
        """Whether the cause is one that never passes by itself."""
        return self.is_hang and self.certainty is Certainty.CERTAIN and self.kind in LASTING


class RankState(StrEnum):
    """How a rank stands to the pending call of its group."""

    CLEAR = "clear"
    """No call of the group is pending, or the rank has completed it."""
    WAITING = "waiting"
    """In the call."""
    ABSENT = "absent"
    """Has not made it."""
    UNSTARTED = "unstarted"
    """Has queued it, but its GPU has not started it."""
    ODD = "odd"
    """Made another call."""
    DEAD = "dead"
    """Its process has ended."""
    UNKNOWN = "unknown"
    """No source tells."""


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """Process groups of one kind, such as all groups of tensor parallelism: a rank is in at most one of them.

    ``group``, ``state``, ``enqueued``, ``completed`` are by place in ``HangReport.ranks``. ``group``: an index into ``groups``;
    ``state``: one into ``HangReport.states``. Null: the rank is in none, or the source does not say.
    """

    name: str
    groups: tuple[str, ...]
    group: tuple[int | None, ...]
    state: tuple[int | None, ...]
    enqueued: tuple[int | None, ...]
    completed: tuple[int | None, ...]


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class HangSource:
    """How many ranks a source tells of; RAS counts communicators."""

    name: str
    count: int


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class HangReport:
    """A verdict with the picture that it rests on: ranks by process groups."""

    verdict: HangVerdict
    ranks: tuple[int, ...]
    states: tuple[RankState, ...]
    rows: tuple[GroupRow, ...]
    looks: int
    taken_ms: int | None
    is_partial: bool
    sources: tuple[HangSource, ...]


def write_plain(value: Any) -> Any:
    """A look as plain values, without those that are the defaults."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            attribute.name: write_plain(content)
            for attribute in fields(value)
            if (content := getattr(value, attribute.name)) != _default_of(attribute)
        }
    if isinstance(value, Mapping):
        return {str(key): write_plain(content) for key, content in value.items()}
    return [write_plain(content) for content in value] if isinstance(value, tuple) else value


def _default_of(attribute: Any) -> object:
    return attribute.default_factory() if attribute.default_factory is not MISSING else attribute.default


MOST_RANK = 2**31 - 1


def is_consistent(look: HangLook) -> bool:
    """Whether a look says of itself what a reader of dumps would: ranks under their numbers, calls in groups that it lists."""
    return all(
        number == about.rank and 0 <= number <= MOST_RANK and all(call.group in about.groups for call in about.calls)
        for number, about in look.ranks.items()
    )
