"""What the events of a run say of it, and the workload, the allocations and the documents that follow from it. Pure.

A run has two documents: a small one that lists are made of, and one with everything else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

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

MOST_SERIES = 10_000
MOST_MARKS = 10_000
_TAGGED_PARAM = "param."
_COUNTED = ("samples", "not_finite", "dropped", "damaged")
_LISTED = ("about", "params", "tags", "moments", "end", *_COUNTED)
_DETAILED = ("marks", "listeners", "environment", "exceptions", "leftovers", "files", *_COUNTED)


@dataclass(slots=True)
class RunState:
    """A run as far as it was sent."""

    run: str
    about: dict[str, object] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    moments: dict[str, int] = field(default_factory=dict)
    end: dict[str, object] = field(default_factory=dict)
    marks: list[object] = field(default_factory=list)
    listeners: dict[str, object] = field(default_factory=dict)
    environment: dict[str, object] = field(default_factory=dict)
    exceptions: list[object] = field(default_factory=list)
    leftovers: int = 0
    series: dict[str, SeriesFigures] = field(default_factory=dict)  # by "unit name"
    steps: StepFigures | None = None
    files: dict[str, dict[str, object]] = field(default_factory=dict)
    samples: int = 0
    not_finite: int = 0
    dropped: int = 0
    damaged: int = 0

    @classmethod
    def of(cls, run: str, listed: Mapping[str, object], detail: Mapping[str, object]) -> "RunState":
        """From its documents. Counts are the detail's: it says how far the files were read, too."""
        body = {**listed, **detail}
        state = cls(run, **{name: body[name] for name in (*_LISTED, *_DETAILED) if name in body})  # type: ignore[arg-type]
        told = body.get("series")
        if isinstance(told, Mapping):
            state.series = {str(key): SeriesFigures.of(value) for key, value in told.items()}
        state.steps = StepFigures.of(body.get("steps"))
        return state

    def listed(self) -> dict[str, object]:
        """The small document: what it is, how it went, and its figures."""
        body: dict[str, object] = {name: getattr(self, name) for name in _LISTED}
        body["device_type"] = device_type_of(self)
        body["figures"] = figures_of(self.series, self.steps, self.params, self.moments, run=self.run)
        return body

    def detail(self) -> dict[str, object]:
        """Everything else."""
        body: dict[str, object] = {name: getattr(self, name) for name in _DETAILED}
        body["series"] = {key: figures.body() for key, figures in self.series.items()}
        body["steps"] = self.steps.body() if self.steps else None
        return body

    def note_series(self, name: str, unit: str, event: Mapping[str, object]) -> None:
        """What a series stands for and how it came to be."""
        key = f"{unit} {name}"
        if key in self.series or len(self.series) < MOST_SERIES:
            known = self.series.setdefault(key, SeriesFigures())
            known.scope, known.method = _text(event.get("scope")), _text(event.get("method"))


def take_event(event: Mapping[str, object], state: RunState) -> None:
    """One event; kinds that are not known are left to later versions."""
    rest = {key: value for key, value in event.items() if key != "event"}
    match event:
        case {"event": "run"}:
            state.params |= _words(rest.pop("params", None))
            state.about = rest
        case {"event": "moment", "moment": str(moment), "at": int(at)}:
            state.moments[moment] = at
        case {"event": "end", "state": str(), "at": int(at)}:
            if not (rest.get("is_closing") and state.end):
                state.end = rest
                state.moments["ended"] = at
        case {"event": "params"}:
            state.params |= _words(rest.get("params"))
        case {"event": "tags"}:
            state.tags |= _words(rest.get("tags"))
        case {"event": "mark"}:
            if len(state.marks) < MOST_MARKS:
                state.marks.append(rest)
        case {"event": "listener", "listener": str(name)}:
            state.listeners[name] = rest
        case {"event": "environment"}:
            state.environment = rest
        case {"event": "exception"}:
            state.exceptions = [*state.exceptions[-19:], rest.get("text")]
        case {"event": "leftovers", "count": int(count)}:
            state.leftovers += count
        case {"event": "dropped", "samples": int(count)}:
            state.dropped += count


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
        user=_text(about.get("user")),
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
        nodes=(host,) if isinstance(host, str) else (),
        tags=_tags(state),
    )


def allocations_of(state: RunState) -> list[Allocation]:
    """The GPUs it was given, from when it ran to when it ended."""
    started, host = state.moments.get("running"), state.about.get("host")
    if started is None or not isinstance(host, str):
        return []
    return [
        Allocation(
            workload=workload_id(state.run),
            unit=unit,
            from_at=UnixMs(started),
            to_at=_ms(state.moments.get("ended")),
            source=AllocationSource.PROCESS,
            confidence=CONFIDENCE[AllocationSource.PROCESS],
        )
        for unit in _units_of(state, NodeId(host))
    ]


def _units_of(state: RunState, node: NodeId) -> list[UnitId]:
    """MIG instances where it was given some, else whole GPUs."""
    told = state.about.get("mig")
    parts = [one for one in told if isinstance(one, Mapping)] if isinstance(told, list) else []
    if parts:
        return [mig_unit_id(node, int(one["gpu"]), int(one["instance"])) for one in parts]
    return [gpu_unit_id(node, index) for index in gpus_of(state)]


def workload_id(run: str) -> WorkloadId:
    """As workloads have it."""
    return WorkloadId(f"run:{run}")


def gpus_of(state: RunState) -> list[int]:
    """Indices of its GPUs: those it was given, else those its samples name."""
    told = state.about.get("devices")
    given = [int(device) for device in told if str(device).isdigit()] if isinstance(told, list) else []
    if given or (isinstance(told, list) and told):
        return given
    host = state.about.get("host")
    units = {key.rpartition(" ")[0] for key, one in state.series.items() if one.scope == "device"}
    places = [unit.removeprefix(f"{host}:") for unit in units if unit.startswith(f"{host}:")]
    return sorted(int(place) for place in places if place.isdigit())


def device_type_of(state: RunState) -> str | None:
    """What it ran on, so that like is compared with like: the GPUs' name, or the processor's where it had no GPU."""
    names = gpu_names(state.environment.get("driver"))
    gpus = gpus_of(state)
    if gpus:
        found = {names[index] for index in gpus if index < len(names)}
        return " + ".join(sorted(found)) if found else None
    return _text(state.environment.get("cpu"))


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


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _ms(value: object) -> UnixMs | None:
    return UnixMs(value) if isinstance(value, int) else None


def _words(value: object) -> dict[str, str]:
    return {str(key): str(word) for key, word in value.items()} if isinstance(value, dict) else {}
