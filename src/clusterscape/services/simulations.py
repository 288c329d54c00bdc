"""Simulations of job traces: run one at a time, can be stopped, cached and stored by fingerprint.

This prepares, starts and stores: the answer as an artifact, its list row as a document. `simulated_choices` computes, in a
process of its own.
"""

import hashlib
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import TypeAdapter, ValidationError

from clusterscape.analyze.jobs.columns import read_columns
from clusterscape.errors import ClusterScapeError, NotFoundError, QueryError, StoppedError
from clusterscape.executors import FairWorker
from clusterscape.model import UnixMs
from clusterscape.model.access import LOCAL_ADMIN, Viewer
from clusterscape.model.jobs import CleaningNote, JobTrace
from clusterscape.query.ownership import OWNER, check_owner, check_starter, is_owner, owner_for
from clusterscape.query.scheduling.description import OWN, JobTraceQuery
from clusterscape.services.context import ServiceContext
from clusterscape.services.simulation_answers import (
    MAX_CHOICES,
    MAX_JITTER,
    PublishedChoice,
    SimulatedChoice,
    SimulationAnswer,
    SimulationAsk,
    SimulationList,
    SimulationRow,
    SimulatorOptions,
)

if TYPE_CHECKING:
    from clusterscape.simulate.batch import BackfillKind, Scenario

log = logging.getLogger(__name__)

ANSWERS_IN_MEMORY = 32
CHOICES_IN_MEMORY = 128
OWN_KEEP_MS = 60_000

KIND = "simulation"
PREFIX = "simulations"
KEPT = 40
KEPT_PER_OWNER = 10
"""Stored results, of all owners and of one owner; the oldest is deleted when another is added."""

_ANSWER = TypeAdapter(SimulationAnswer)
_ASK = TypeAdapter(SimulationAsk)


@dataclass(frozen=True, slots=True)
class _Prepared:
    trace: JobTrace
    scenarios: list[tuple[str, "Scenario"]]
    """Policy and scenario, in the order of the request."""
    notes: tuple[CleaningNote, ...]


@dataclass(slots=True)
class _Work:
    """The progress of a simulation: ``done`` choices, and the ``share`` of the current one."""

    choices: int
    owner: str | None = None
    """The owner of the result; None: shared by all users."""
    started_by: str | None = None
    """The login that started it: this user and operators may stop it."""
    withdraw: Callable[[], None] = lambda: None
    """Removes it from the queue if it has not started."""
    done: int = 0
    share: float = 0.0
    is_stopped: bool = False

    @property
    def progress(self) -> float:
        """From 0 to 1."""
        return min(1.0, (self.done + self.share) / self.choices)

    def report(self, share: float) -> None:
        """Note the progress of the current choice. Raises StoppedError if the simulation was stopped."""
        if self.is_stopped:
            raise StoppedError("the simulation was stopped")
        self.share = share

    def finish_choice(self) -> None:
        """Count the current choice."""
        self.done, self.share = self.done + 1, 0.0


class KeptSimulations:
    """Stored results. Thread-safe, as the stores are. Without an artifact store it is empty."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    def keep(self, answer: SimulationAnswer, owner: str | None = None) -> None:
        """Stores a result, and deletes the oldest beyond the limits. ``owner``: a login; None: shared by all users."""
        artifacts = self._context.artifacts
        if artifacts is None:
            return
        artifacts.put(_key(answer.simulation), [orjson.dumps(answer)])
        body: dict[str, Any] = {"trace": answer.trace, "made_at": answer.made_at, "asked": asdict(answer.asked)}
        body[OWNER] = owner
        self._context.write_document(KIND, answer.simulation, body, at_ms=UnixMs(answer.made_at))
        for simulation in self._surplus(owner):
            self._context.remove_document(KIND, simulation)
            artifacts.delete(_key(simulation))

    def _surplus(self, owner: str | None) -> list[str]:
        """Results beyond the limits: the oldest of the owner, then the oldest of all. Shared results have no per-owner limit."""
        owners = {document.key: document.body.get(OWNER) for document in self._context.reads.records.documents(KIND)}
        names = [row.simulation for row in self.rows()]
        owned = [] if owner is None else [name for name in names if owners.get(name) == owner][KEPT_PER_OWNER:]
        return [*owned, *[name for name in names if name not in owned][KEPT:]]

    def remove(self, simulation: str, by: Viewer) -> None:
        """Deletes a stored result. Raises NotFoundError if it does not exist, ForbiddenError if another user owns it."""
        document = self._context.reads.records.document(KIND, simulation)
        if document is None:
            raise NotFoundError(
                f"no stored result of simulation {simulation!r}", hint="GET /api/v1/simulations lists them."
            )
        check_owner(document.body.get(OWNER), by, f"result {simulation}")
        self._context.remove_document(KIND, simulation)
        if self._context.artifacts is not None:
            self._context.artifacts.delete(_key(simulation))

    def find(self, simulation: str) -> SimulationAnswer | None:
        """A stored result; None if it does not exist, or has the format of an incompatible version."""
        artifacts = self._context.artifacts
        if artifacts is None or not simulation.isalnum():
            return None
        try:
            return _ANSWER.validate_json(artifacts.path(_key(simulation)).read_bytes())
        except (NotFoundError, FileNotFoundError, ValidationError):
            return None

    def rows(self) -> list[SimulationRow]:
        """Stored results, newest first."""
        rows = [_row(document.key, document.body) for document in self._context.reads.records.documents(KIND)]
        return sorted((row for row in rows if row is not None), key=lambda row: (-row.made_at, row.simulation))


class Simulations:
    """Starts simulations, reports their progress and stops them. Thread-safe; one runs at a time."""

    def __init__(self, context: ServiceContext, traces: JobTraceQuery) -> None:
        self._reads = context.reads
        self._traces = traces
        self._kept = KeptSimulations(context)
        limits = self._reads.work
        self._worker = FairWorker("simulation", per_user=limits.simulations_per_user, waiting=limits.queued_simulations)
        self._lock = threading.Lock()
        self._answers: OrderedDict[str, SimulationAnswer] = OrderedDict()
        self._works: dict[str, _Work] = {}
        self._choices: OrderedDict[str, SimulatedChoice] = OrderedDict()
        self._readable: JobTraceQuery | None = None

    def within(self, traces: JobTraceQuery) -> "Simulations":
        """The simulations within a viewer scope: those of traces that the viewer may read."""
        scoped = copy(self)
        scoped._readable = traces
        return scoped

    def options(self) -> SimulatorOptions:
        """The available options."""
        from clusterscape.simulate.batch import BACKFILLS, ESTIMATES, PRESETS, RELAXED, policy_names
        from clusterscape.simulate.placements import placement_names

        return SimulatorOptions(
            policies=policy_names(),
            backfills=list(BACKFILLS),
            placements=placement_names(),
            relaxed=list(RELAXED),
            semantics=list(PRESETS),
            estimates=list(ESTIMATES),
        )

    def ask(self, request: SimulationAsk, *, by: Viewer = LOCAL_ADMIN, user: str = "") -> SimulationAnswer:
        """Starts a simulation, or returns the existing one: equal requests about equal jobs are simulated once.

        ``user``: for per-user limits. Raises ThrottledError if the user has too many unfinished ones.
        """
        _check(request)
        if self._readable is not None:
            self._readable.check(request.trace)
        name = self._name(request)
        existing = self._look_up(name)
        if existing is not None and existing.state in ("running", "done"):
            return existing
        self._worker.check(user)
        prepared = self._prepare(request)
        answer = _build_answer(name, request, prepared, self._reads.clock())
        work = _Work(
            choices=len(prepared.scenarios),
            owner=None if by.login is None else owner_for(by),
            started_by=by.login,
        )
        job = partial(self._run, name, work, prepared, request.jitter)
        work.withdraw = partial(self._worker.withdraw, user, job)
        with self._lock:
            self._worker.submit(user, job)
            self._works[name] = work
            self._remember(answer)
        return answer

    def find(self, simulation: str) -> SimulationAnswer:
        """The progress and the results so far."""
        answer = self._look_up(simulation)
        if answer is None or not self._may_read(answer.asked):
            raise _not_found(simulation)
        return answer

    def all(self) -> SimulationList:
        """Stored results, newest first."""
        return SimulationList(simulations=[row for row in self._kept.rows() if self._may_read(row.asked)])

    def _may_read(self, request: SimulationAsk) -> bool:
        if self._readable is None:
            return True
        try:
            self._readable.check(request.trace)
        except NotFoundError:
            return False
        return True

    def stop(self, simulation: str, *, by: Viewer = LOCAL_ADMIN) -> SimulationAnswer:
        """Stops a simulation; finished choices stay. A finished simulation is unchanged.

        Raises ForbiddenError if another user started it; on a private site NotFoundError.
        """
        if self._readable is not None:
            self.find(simulation)
        with self._lock:
            work = self._works.get(simulation)
        if work is not None:
            if self._reads.is_private and not is_owner(work.started_by, by):
                raise _not_found(simulation)
            check_starter(work.started_by, by, "the simulation")
            work.is_stopped = True
            self._update(simulation, work, partial(replace, state="stopped"))
            work.withdraw()
            self._forget(simulation, work)
        return self.find(simulation)

    def remove(self, simulation: str, *, by: Viewer = LOCAL_ADMIN) -> None:
        """Deletes a stored result. Raises NotFoundError if it does not exist, ForbiddenError if another user owns it."""
        if self._readable is not None:
            self.find(simulation)
        self._kept.remove(simulation, by)
        with self._lock:
            if simulation not in self._works:
                self._answers.pop(simulation, None)

    def _look_up(self, name: str) -> SimulationAnswer | None:
        with self._lock:
            answer, work = self._answers.get(name), self._works.get(name)
        if answer is not None and work is not None and answer.state == "running":
            return replace(answer, progress=work.progress)
        return answer if answer is not None else self._kept.find(name)

    def _name(self, request: SimulationAsk) -> str:
        version = self._reads.clock() // OWN_KEEP_MS if request.trace == OWN else 0
        text = json.dumps([asdict(request), version], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def _prepare(self, request: SimulationAsk) -> _Prepared:
        from clusterscape.simulate.batch import BACKFILLS, PRESETS, Scenario, find_policy, prepare_jobs
        from clusterscape.simulate.sweep import plan_points

        trace = self._traces.trace(request.trace)
        total = request.processors or trace.total
        if total is None:
            raise QueryError(
                f"{trace.name} does not contain the size of the cluster",
                hint=f"Pass processors: the size in {trace.size_unit}.",
            )
        if request.semantics not in PRESETS:
            raise QueryError(f"unknown semantics {request.semantics!r}", hint=f"Choose one of {', '.join(PRESETS)}.")
        semantics = PRESETS[request.semantics]
        kinds = [_find_backfill(kind, BACKFILLS) for kind in request.backfills]
        points = plan_points(request.policies, kinds, request.omegas, [request.whole_at])
        if len(points) > MAX_CHOICES:
            raise QueryError(_too_many(len(points)), hint=f"Choose at most {MAX_CHOICES} together.")
        policies = {name: find_policy(name) for name in request.policies}
        jobs, notes = prepare_jobs(trace, total, estimates=request.estimates, semantics=semantics)
        scenarios = [
            (point.policy, Scenario(jobs, total, policies[point.policy], point.backfill, request.estimates, semantics))
            for point in points
        ]
        return _Prepared(trace, scenarios, notes)

    def _run(self, name: str, work: _Work, prepared: _Prepared, jitter: int) -> None:
        done: list[SimulatedChoice] = []
        update = partial(self._update, name, work)
        try:
            for policy, scenario in self._learn(work, prepared):
                done.append(self._simulate(work, prepared.trace, policy, scenario, jitter))
                work.finish_choice()
                update(partial(replace, choices=list(done)))
            # Stored first: a client that sees it done may fetch it from another server, or after a restart.
            answer = self._look_up(name)
            if answer is not None:
                self._keep(replace(answer, state="done", progress=1.0), work.owner)
            update(partial(replace, state="done", progress=1.0))
        except StoppedError:
            update(partial(replace, state="stopped"))
        except ClusterScapeError as error:
            update(partial(replace, state="failed", problem=error.public_message))
        except Exception:
            # A pool thread swallows exceptions, so the failure is recorded for the client that polls.
            log.exception("a simulation failed")
            update(partial(replace, state="failed", problem="the simulation failed; see the server's log"))
        finally:
            self._forget(name, work)

    def _forget(self, name: str, work: _Work) -> None:
        with self._lock:
            if self._works.get(name) is work:
                del self._works[name]

    def _learn(self, work: _Work, prepared: _Prepared) -> "list[tuple[str, Scenario]]":
        """The scenarios, with the predictions of a model if they need them. Raises StoppedError if it was stopped."""
        from clusterscape.services.simulated_choices import PredictionTask, predict_for_trace

        first = prepared.scenarios[0][1]
        if first.estimates != "boosted" and first.estimates != "elapsed-aware":
            return prepared.scenarios
        task = PredictionTask(prepared.trace, first.estimates)
        predictions = self._reads.compute(predict_for_trace, task, work.report)
        jobs = replace(first.jobs, predictions_s=predictions[first.jobs.row])
        return [(policy, replace(scenario, jobs=jobs)) for policy, scenario in prepared.scenarios]

    def _simulate(
        self, work: _Work, trace: JobTrace, policy: str, scenario: "Scenario", jitter: int
    ) -> SimulatedChoice:
        from clusterscape.services.simulated_choices import SEED, ChoiceTask, simulate_choice
        from clusterscape.services.simulation_results import MAX_DRAWN_JOBS

        fingerprint = hashlib.sha256(f"{scenario.fingerprint()} {jitter} {SEED}".encode()).hexdigest()
        with self._lock:
            cached = self._choices.get(fingerprint)
        if cached is not None:
            return cached
        drawn = trace if len(scenario.jobs) <= MAX_DRAWN_JOBS else None
        task = ChoiceTask(drawn, policy, scenario, jitter, fingerprint)
        choice = self._reads.compute(simulate_choice, task, work.report)
        with self._lock:
            self._choices[fingerprint] = choice
            while len(self._choices) > CHOICES_IN_MEMORY:
                self._choices.popitem(last=False)
        return choice

    def _keep(self, answer: SimulationAnswer, owner: str | None) -> None:
        try:
            self._kept.keep(answer, owner)
        except ClusterScapeError as error:
            log.warning("could not store the result of a simulation: %s %s", error.message, error.hint or "")

    def _remember(self, answer: SimulationAnswer) -> None:
        self._answers[answer.simulation] = answer
        self._answers.move_to_end(answer.simulation)
        finished = [name for name in self._answers if name not in self._works][: len(self._answers) - ANSWERS_IN_MEMORY]
        for name in finished:
            del self._answers[name]

    def _update(self, name: str, work: _Work, change: Callable[[SimulationAnswer], SimulationAnswer]) -> None:
        """Changes the answer of a running simulation; one that was stopped, and perhaps started again, is unchanged."""
        with self._lock:
            answer = self._answers.get(name)
            if answer is not None and answer.state == "running" and self._works.get(name) is work:
                self._answers[name] = change(answer)


def _not_found(simulation: str) -> NotFoundError:
    return NotFoundError(f"no simulation {simulation!r}", hint="Start it again.")


def _check(request: SimulationAsk) -> None:
    choices = len(request.policies) * len(request.backfills)
    if not 1 <= choices <= MAX_CHOICES:
        raise QueryError(_too_many(choices), hint=f"Choose at least one of both, and at most {MAX_CHOICES} together.")
    if not 0 <= request.jitter <= MAX_JITTER:
        raise QueryError(f"jitter must be 0–{MAX_JITTER}, not {request.jitter}")
    if request.processors is not None and request.processors < 1:
        raise QueryError("processors must be at least 1")
    if not request.omegas or not all(0 <= omega <= 10 for omega in request.omegas):
        raise QueryError("omegas must be one or more numbers from 0 to 10", hint="For example 0.1.")


def _too_many(choices: int) -> str:
    return f"{choices} combinations of policy and backfill strategy were requested"


def _find_backfill(name: str, backfills: "Sequence[BackfillKind]") -> "BackfillKind":
    for backfill in backfills:
        if backfill == name:
            return backfill
    raise QueryError(f"unknown backfill strategy {name!r}", hint=f"Choose one of: {', '.join(backfills)}.")


def _build_answer(name: str, request: SimulationAsk, prepared: _Prepared, now_ms: int) -> SimulationAnswer:
    first = prepared.scenarios[0][1]
    return SimulationAnswer(
        simulation=name,
        asked=request,
        made_at=now_ms,
        state="running",
        progress=0.0,
        trace=prepared.trace.name,
        size_unit=prepared.trace.size_unit,
        processors=first.total_processors,
        simulated_jobs=len(first.jobs),
        jitter=request.jitter,
        semantics=request.semantics,
        epoch_s=read_columns(prepared.trace).epoch_s,
        choices=[],
        notes=[*prepared.trace.notes, *prepared.notes],
        problem=None,
        published=_list_published(prepared.trace.name),
    )


def _list_published(trace: str) -> list[PublishedChoice]:
    from clusterscape.simulate.published import find_published

    rows = find_published(trace)
    if rows is None:
        return []
    return [
        PublishedChoice(
            title=f"published, {backfill}",
            backfill=backfill,
            wait_s=measures["wait_s"],
            bounded_slowdown=measures["bounded_slowdown"],
            utilization_ratio=measures["utilization"],
            violation_s=measures["violation_s"],
        )
        for backfill, measures in (("relaxed", rows.baseline), ("adaptive", rows.adaptive))
    ]


def _key(simulation: str) -> str:
    return f"{PREFIX}/{simulation}.json"


def _row(simulation: str, body: Any) -> SimulationRow | None:
    try:
        request = _ASK.validate_python(body["asked"])
        return SimulationRow(simulation=simulation, made_at=body["made_at"], trace=body["trace"], asked=request)
    except (KeyError, ValidationError):
        return None
