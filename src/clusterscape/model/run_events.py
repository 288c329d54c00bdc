"""The schema of events that trackers send: every kind with its fields. Anything else raises an error that names the field.

Counts (of params, series, marks) are limited where events are applied, in ``run_fold``. msgspec parses the bytes.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from clusterscape.model.hangs import HangLook
from clusterscape.model.run_frames import SampleMethod, SampleScope

FIRST_MS = 946_684_800_000  # 2000-01-01
LAST_MS = 4_102_444_800_000  # 2100-01-01

Time = Annotated[int, Meta(ge=FIRST_MS, le=LAST_MS)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Number = Annotated[int, Meta(ge=-(2**31), le=2**32)]
Rank = Annotated[int, Meta(ge=0, le=10_000_000)]
DeviceIndex = Annotated[int, Meta(ge=0, le=4095)]
RunName = Annotated[str, Meta(max_length=100)]
UserName = Annotated[str, Meta(max_length=255, pattern=r"^[^\x00-\x1f\x7f]*$")]
HostName = Annotated[str, Meta(max_length=255, pattern=r"^[A-Za-z0-9._-]*$")]
UnitName = Annotated[str, Meta(min_length=1, max_length=500, pattern=r"^\S+$")]
Word = Annotated[str, Meta(max_length=64)]
Scalar = str | int | float | bool | None
EndState = Literal[
    "completed", "failed", "cancelled", "timeout", "out_of_memory", "node_failed", "preempted", "unknown"
]


class _Event(Struct, tag_field="event", forbid_unknown_fields=True, kw_only=True):
    """Base of all events; the field ``event`` names the kind."""


class Instance(Struct, forbid_unknown_fields=True):
    """A MIG instance assigned to the run."""

    gpu: DeviceIndex
    instance: DeviceIndex
    profile: Word | None = None
    uuid: Annotated[str, Meta(max_length=200)] | None = None


class RunDescribed(_Event, tag="run"):
    """Metadata of the run."""

    run: RunName | None = None
    queued_at: Time | None = None
    name: str | None = None
    experiment: str | None = None
    workload: str | None = None
    letter: str | None = None
    user: UserName | None = None
    host: HostName | None = None
    pid: Number | None = None
    command: list[str] | None = None
    cwd: str | None = None
    devices: Annotated[list[Word], Meta(max_length=1024)] | None = None
    collocation: str | None = None
    profiler: str | None = None
    mig: Annotated[list[Instance], Meta(max_length=1024)] | None = None
    params: dict[str, Scalar] | None = None
    listeners: Annotated[list[str], Meta(max_length=256)] | None = None


class MomentReached(_Event, tag="moment"):
    """The run enters the next part of its life cycle."""

    moment: Literal["queued", "barrier", "running", "flushed"]
    at: Time


class Ended(_Event, tag="end"):
    """How it ended. ``is_closing``: reported by another process, because its tracker was killed."""

    state: EndState
    at: Time
    cause: str | None = None
    exit_code: Number | None = None
    exit_signal: Number | None = None
    is_closing: bool = False


class SeriesNamed(_Event, tag="series"):
    """The series that a code denotes in the samples of this file."""

    code: Annotated[int, Meta(ge=0, le=2**32 - 1)]
    name: str
    unit: UnitName | None = None
    scope: SampleScope | None = None
    method: SampleMethod | None = None


class ProcessNamed(_Event, tag="process"):
    """Which process of the run writes this file."""

    pid: Number | None = None
    rank: Rank | None = None


class ParamsSet(_Event, tag="params"):
    """Params of the script."""

    params: dict[str, Scalar]


class TagsSet(_Event, tag="tags"):
    """Tags of the run, for search."""

    tags: dict[str, Scalar]


class Marked(_Event, tag="mark"):
    """An epoch begins, or a phase begins or ends."""

    kind: Literal["epoch", "phase", "phase_end"]
    name: str
    at: Time


class ListenerReported(_Event, tag="listener"):
    """Status of a listener."""

    listener: Word
    state: Word | None = None
    message: str | None = None
    at: Time | None = None
    ticks: Count | None = None
    missed: Count | None = None


class ExceptionNoted(_Event, tag="exception"):
    """The exception that ended a process of the run."""

    text: str | None = None


class RanksFound(_Event, tag="ranks"):
    """Which ranks of a distributed job run here. ``job``: where its ranks meet, which is equal on all machines of the job."""

    job: Annotated[str, Meta(max_length=500)]
    ranks: Annotated[list[Rank], Meta(max_length=1024)]
    world_size: Rank | None = None
    slurm_job: Word | None = None


class HangLooked(_Event, tag="hang_look"):
    """A look at the ranks on this machine while the run makes no steps; the second one is at least two usual steps later."""

    at: Time
    number: Literal[1, 2]
    look: HangLook


class HangFound(_Event, tag="hang"):
    """The run makes no steps: who hangs, where and why."""

    at: Time
    kind: Word
    title: str
    reason: str | None = None
    ranks: Annotated[list[Rank], Meta(max_length=1024)] = []
    place: str | None = None
    group: str | None = None
    collective: str | None = None
    sequence: Count | None = None
    since: Time | None = None
    certainty: Word | None = None
    evidence: Annotated[list[str], Meta(max_length=32)] = []
    advice: str | None = None


class HangEnded(_Event, tag="hang_end"):
    """A run that was found to hang makes steps again."""

    at: Time


class LeftoversFound(_Event, tag="leftovers"):
    """Processes of the run still existed after its end."""

    count: Count
    at: Time | None = None


class SamplesDropped(_Event, tag="dropped"):
    """The tracker dropped samples."""

    samples: Count


class GitState(Struct, forbid_unknown_fields=True):
    """The code that ran."""

    commit: str | None = None
    branch: str | None = None
    remote: str | None = None
    is_dirty: bool | None = None
    diff: str | None = None
    is_diff_cut: bool | None = None
    untracked: list[str] | None = None


class EnvironmentDescribed(_Event, tag="environment"):
    """What is needed to reproduce the run."""

    git: GitState | None = None
    command: list[str] | None = None
    cwd: str | None = None
    environ: dict[str, str] | None = None
    environ_patterns: list[str] | None = None
    packages: dict[str, str] | None = None
    system: str | None = None
    cpu: str | None = None
    cpu_count: Count | None = None
    memory_bytes: Count | None = None
    driver: str | None = None
    topology: str | None = None


RunEvent = (
    RunDescribed
    | MomentReached
    | Ended
    | SeriesNamed
    | ProcessNamed
    | ParamsSet
    | TagsSet
    | Marked
    | ListenerReported
    | ExceptionNoted
    | RanksFound
    | HangLooked
    | HangFound
    | HangEnded
    | LeftoversFound
    | SamplesDropped
    | EnvironmentDescribed
)

_DECODER: msgspec.json.Decoder[RunEvent] = msgspec.json.Decoder(RunEvent)
_SHOWN_CHARS = 300


class RunEventError(ValueError):
    """A payload that is not an event of a run; the message names the field."""


def decode_run_event(payload: bytes) -> RunEvent:
    """Parse one event. Raises RunEventError."""
    try:
        # PostgreSQL cannot store NUL in text; in JSON it can only occur as this escape.
        return _DECODER.decode(payload.replace(b"\\u0000", b"\\ufffd"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RunEventError(str(error)[:_SHOWN_CHARS]) from None
