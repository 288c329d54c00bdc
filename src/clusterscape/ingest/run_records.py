"""What the events of a run say of it, and the workload, the allocations and the documents that follow from it. Pure.

A run has two documents: a small one that lists are made of, and one with everything else. Amounts are bounded here: of what is
too many, the first are kept, and ``left_out`` counts the rest.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from clusterscape.ingest.run_events import (
    Ended,
    EnvironmentDescribed,
    ExceptionNoted,
    LeftoversFound,
    ListenerReported,
    Marked,
    MomentReached,
    ParamsSet,
    RunDescribed,
    RunEvent,
    SamplesDropped,
    Scalar,
    SeriesNamed,
    TagsSet,
)
from clusterscape.ingest.run_figures import SeriesFigures, StepFigures, figures_of
from clusterscape.model import (
    CONFIDENCE,
    Allocation,
    AllocationSource,
    NodeId,
    UnitId,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadKind,
    WorkloadState,
    gpu_unit_id,
    mig_unit_id,
)
from clusterscape.model.run_units import cluster_unit, run_unit
from clusterscape.model.stored_runs import owner_of
from clusterscape.settings.limits import RunLimits

NAME_CHARS = 1000
PATH_CHARS = 4096
TEXT_CHARS = 8000
METRIC_CHARS = 256
DEVICE_CHARS = 200
MOST_EXCEPTIONS = 20
MOST_LISTENERS = 64
MOST_COUNT = 2**53
MOST_GPUS = 1024
_TAGGED_PARAM = "param."
_EPOCH = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?")
_INDEX = re.compile(r"[0-9]{1,4}")
_COUNTED = ("samples", "not_finite", "dropped", "damaged")
_LISTED = ("owned_by", "received_at", "bytes", "about", "params", "tags", "moments", "end", *_COUNTED)
_DETAILED = (
    "marks", "listeners", "environment", "exceptions", "leftovers", "holds", "files", "left_out", *_COUNTED,
)  # fmt: skip


@dataclass(slots=True)
class RunState:
    """A run as far as it was sent. ``owned_by``: whose it is, decided when it was created; events never change it."""

    run: str
    owned_by: str | None = None
    received_at: int | None = None  # its first piece, by the server's clock
    bytes: int = 0  # unpacked
    about: dict[str, object] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    moments: dict[str, int] = field(default_factory=dict)
    end: dict[str, object] = field(default_factory=dict)
    marks: list[object] = field(default_factory=list)
    listeners: dict[str, object] = field(default_factory=dict)
    environment: dict[str, object] = field(default_factory=dict)
    exceptions: list[str | None] = field(default_factory=list)
    leftovers: int = 0
    holds: dict[str, str] = field(default_factory=dict)  # unit that it claims: unit that counts as held
    series: dict[str, SeriesFigures] = field(default_factory=dict)  # by "unit name"
    steps: StepFigures | None = None
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)  # by what there was too much of
    samples: int = 0
    not_finite: int = 0
    dropped: int = 0
    damaged: int = 0

    @classmethod
    def of(cls, run: str, listed: Mapping[str, Any], detail: Mapping[str, Any]) -> "RunState":
        """From its documents, which are not damaged. Counts are the detail's: it says how far the files were read, too."""
        body = {**listed, **detail}
        state = cls(run, **{name: body[name] for name in (*_LISTED, *_DETAILED) if name in body})
        state.series = {str(key): SeriesFigures.of(value) for key, value in body.get("series", {}).items()}
        state.steps = StepFigures.of(body.get("steps"))
        if "owned_by" not in body:  # stored before runs had owners of their own
            state.owned_by = owner_of(body)
            state.holds = {unit: unit for unit in claimed_units(state)}
        return state

    def listed(self) -> dict[str, object]:
        """The small document: what it is, how it went, and its figures."""
        body: dict[str, object] = {name: getattr(self, name) for name in _LISTED}
        body["series_count"] = len(self.series)
        body["device_type"] = device_type_of(self)
        body["figures"] = figures_of(self.series, self.steps, self.params, self.moments, run=self.run)
        return body

    def detail(self) -> dict[str, object]:
        """Everything else."""
        body: dict[str, object] = {name: getattr(self, name) for name in _DETAILED}
        body["series"] = {key: figures.body() for key, figures in self.series.items()}
        body["steps"] = self.steps.body() if self.steps else None
        return body

    def leave_out(self, what: str, count: int = 1) -> None:
        """Count what was not kept."""
        if count:
            self.left_out[what] = min(MOST_COUNT, self.left_out.get(what, 0) + count)

    def note_series(self, event: SeriesNamed, unit: str, *, may_add: Callable[[str], bool]) -> bool:
        """What a series stands for and how it came to be; False where it is one too many, as ``may_add`` says of its name."""
        key = f"{unit} {event.name}"
        if not 0 < len(event.name) <= METRIC_CHARS or (key not in self.series and not may_add(event.name)):
            self.leave_out("series")
            return False
        known = self.series.setdefault(key, SeriesFigures())
        known.scope, known.method = event.scope, event.method
        return True

    def move_series(self, name: str, unit: str, home: str) -> None:
        """Samples that follow are stored under another unit: figures begin anew there."""
        known = self.series.get(f"{unit} {name}")
        if known is not None:
            self.series.setdefault(f"{home} {name}", SeriesFigures(scope=known.scope, method=known.method))


def take_event(event: RunEvent, state: RunState, limits: RunLimits) -> None:
    """One event; ``series`` and ``process`` are of a file, not of the run."""
    match event:
        case RunDescribed():
            _describe(event, state, limits)
        case MomentReached():
            # The first counts: what it holds, it holds from then on.
            state.moments.setdefault(event.moment, event.at)
        case Ended():
            # The first counts, unless it was only said for a tracker that could not.
            if not state.end or (state.end.get("is_closing") and not event.is_closing):
                state.end = _fields(event) | {"cause": _cut(event.cause, TEXT_CHARS)}
                state.moments["ended"] = event.at
        case ParamsSet():
            _put_words(event.params, state.params, "params", state, limits)
        case TagsSet():
            _put_words(event.tags, state.tags, "tags", state, limits)
        case Marked():
            _mark(event, state, limits)
        case ListenerReported():
            if event.listener in state.listeners or len(state.listeners) < MOST_LISTENERS:
                state.listeners[event.listener] = _fields(event) | {"message": _cut(event.message, NAME_CHARS)}
            else:
                state.leave_out("listeners")
        case EnvironmentDescribed():
            state.environment = {key: value for key, value in _fields(event).items() if value is not None}
        case ExceptionNoted():
            state.exceptions = [*state.exceptions[1 - MOST_EXCEPTIONS :], _cut(event.text, TEXT_CHARS)]
        case LeftoversFound():
            state.leftovers = min(MOST_COUNT, state.leftovers + event.count)
        case SamplesDropped():
            state.dropped = min(MOST_COUNT, state.dropped + event.samples)


def _describe(event: RunDescribed, state: RunState, limits: RunLimits) -> None:
    about = {key: value for key, value in _fields(event).items() if key != "params"}
    for key in ("name", "experiment", "workload", "letter", "collocation", "profiler"):
        about[key] = _cut(about[key], NAME_CHARS)
    about["cwd"] = _cut(event.cwd, PATH_CHARS)
    about["listeners"] = [word[:NAME_CHARS] for word in event.listeners or ()]
    for key in ("devices", "mig"):
        state.leave_out("devices", len((about[key] or ())[limits.devices :]))
        about[key] = (about[key] or [])[: limits.devices]
    about["command"] = []
    state.about = about
    words = list(_until(event.command or (), limits.text_chars - _count_chars(state)))
    state.leave_out("command words", len(event.command or ()) - len(words))
    about["command"] = words
    _put_words(event.params or {}, state.params, "params", state, limits)


def _until(words: Iterable[str], chars: int) -> Iterable[str]:
    for word in words:
        chars -= len(word)
        if chars < 0:
            return
        yield word


def _put_words(
    words: Mapping[str, Scalar], target: dict[str, str], what: str, state: RunState, limits: RunLimits
) -> None:
    """Params and tags, as long as there are not too many and all of them together are not too long."""
    room = limits.text_chars - _count_chars(state)
    for key, value in words.items():
        text = str(value)
        if len(text) > limits.param_chars:
            text = f"{text[: limits.param_chars]}…"
        needs = len(key) + len(text) - (len(key) + len(target[key]) if key in target else 0)
        is_one_too_many = key not in target and len(target) >= limits.params
        if len(key) > METRIC_CHARS or is_one_too_many or needs > room:
            state.leave_out(what)
            continue
        target[key] = text
        room -= needs


def _count_chars(state: RunState) -> int:
    """Of params, tags and the command."""
    words = [*state.params, *state.params.values(), *state.tags, *state.tags.values()]
    command = state.about.get("command")
    return sum(map(len, words)) + sum(len(str(word)) for word in (command if isinstance(command, list) else ()))


def _mark(event: Marked, state: RunState, limits: RunLimits) -> None:
    is_odd = event.kind == "epoch" and _EPOCH.fullmatch(event.name) is None
    if is_odd or len(event.name) > METRIC_CHARS or len(state.marks) >= limits.marks:
        state.leave_out("marks")
    else:
        state.marks.append(_fields(event))


def workload_of(state: RunState) -> Workload:
    """The run as a workload like any other."""
    about, moments = state.about, state.moments
    started, ended = moments.get("running"), moments.get("ended")
    host, code, number = about.get("host"), state.end.get("exit_code"), state.end.get("exit_signal")
    return Workload(
        id=workload_id(state.run),
        kind=WorkloadKind.RUN,
        state=_state_of(state),
        name=_text(about.get("name")),
        user=state.owned_by,
        project=_text(about.get("workload")),
        experiment=_text(about.get("experiment")),
        gpus_requested=len(gpus_of(state)),
        nodes_requested=1,
        submitted_at=_ms(about.get("queued_at")),
        eligible_at=_ms(about.get("queued_at")),
        started_at=_ms(started),
        ended_at=_ms(ended),
        exit_code=code if isinstance(code, int) else None,
        exit_signal=number if isinstance(number, int) else None,
        nodes=(host,) if isinstance(host, str) and host else (),
        tags=_tags(state),
    )


def claimed_units(state: RunState) -> list[UnitId]:
    """The GPUs or MIG instances that it says it was given, of its host; empty before it runs."""
    host = state.about.get("host")
    if "running" not in state.moments or not isinstance(host, str) or not host:
        return []
    return _units_of(state, NodeId(host))


def allocation_of(state: RunState, unit: UnitId, to_at: UnixMs | None) -> Allocation:
    """That it held ``unit`` from when it ran until ``to_at``."""
    return Allocation(
        workload=workload_id(state.run),
        unit=unit,
        from_at=UnixMs(state.moments["running"]),
        to_at=to_at,
        source=AllocationSource.PROCESS,
        confidence=CONFIDENCE[AllocationSource.PROCESS],
    )


def _units_of(state: RunState, node: NodeId) -> list[UnitId]:
    """MIG instances where it was given some, else whole GPUs."""
    told = state.about.get("mig")
    parts = [one for one in told if isinstance(one, Mapping)] if isinstance(told, list) else []
    if parts:
        return list(dict.fromkeys(mig_unit_id(node, int(one["gpu"]), int(one["instance"])) for one in parts))
    return [gpu_unit_id(node, index) for index in gpus_of(state)]


def workload_id(run: str) -> WorkloadId:
    """As workloads have it."""
    return WorkloadId(run_unit(run))


def gpus_of(state: RunState) -> list[int]:
    """Indices of its GPUs: those it was given, else those its samples name."""
    told = state.about.get("devices")
    if isinstance(told, list) and told:
        return sorted({int(device) for device in told if _INDEX.fullmatch(str(device))})[:MOST_GPUS]
    host = state.about.get("host")
    units = {cluster_unit(key.partition(" ")[0]) for key, one in state.series.items() if one.scope == "device"}
    places = [unit.removeprefix(f"{host}:") for unit in units if unit.startswith(f"{host}:")]
    return sorted(int(place) for place in places if _INDEX.fullmatch(place))[:MOST_GPUS]


def device_type_of(state: RunState) -> str | None:
    """What it ran on, so that like is compared with like: the GPUs' name, or the processor's where it had no GPU."""
    names = gpu_names(state.environment.get("driver"))
    gpus = gpus_of(state)
    if gpus:
        found = {names[index] for index in gpus if index < len(names)}
        return _cut(" + ".join(sorted(found)), DEVICE_CHARS) if found else None
    return _cut(_text(state.environment.get("cpu")), DEVICE_CHARS)


def gpu_names(driver: object) -> list[str]:
    """By index, from the table that ``nvidia-smi --query-gpu=name,…`` gave."""
    lines = driver.splitlines()[1:] if isinstance(driver, str) else []
    return [line.split(",")[0].strip() for line in lines if line.strip()]


def _state_of(state: RunState) -> WorkloadState:
    if state.end:
        told = str(state.end.get("state"))
        return WorkloadState(told) if told in set(WorkloadState) else WorkloadState.UNKNOWN
    return WorkloadState.RUNNING if "running" in state.moments else WorkloadState.WAITING


def _tags(state: RunState) -> dict[str, str]:
    """Its own tags and params, how it ended and where it belongs."""
    tags = dict(state.tags) | {f"{_TAGGED_PARAM}{name}": value for name, value in state.params.items()}
    for name in ("letter", "collocation", "workload"):
        if isinstance(value := state.about.get(name), str):
            tags[name] = value
    if isinstance(cause := state.end.get("cause"), str):
        tags["cause"] = cause
    return tags


def _fields(event: RunEvent) -> dict[str, Any]:
    """Of an event, as a document has them."""
    fields: dict[str, Any] = msgspec.to_builtins(event)
    del fields["event"]
    return fields


def _cut(text: str | None, chars: int) -> str | None:
    return text if text is None or len(text) <= chars else f"{text[:chars]}…"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _ms(value: object) -> UnixMs | None:
    return UnixMs(value) if isinstance(value, int) else None
