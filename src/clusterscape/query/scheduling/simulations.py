"""Simulations of job traces that somebody asked for: run one by one in a thread, stopped when asked, kept by fingerprint.

The engine is `simulate.batch`; this only prepares, runs and keeps. Compiled code is loaded when the first one is asked for.
"""

import hashlib
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from clusterscape.analyze.jobs.columns import read_columns
from clusterscape.errors import ClusterScapeError, NotFoundError, QueryError, StoppedError
from clusterscape.model.jobs import CleaningNote, JobTrace
from clusterscape.model.samples import Int64s
from clusterscape.model.viewers import ANYONE_HERE, Viewer
from clusterscape.query.context import QueryContext
from clusterscape.query.fair_queue import FairWorker
from clusterscape.query.ownership import check_began, is_owner, owner_for
from clusterscape.query.scheduling.description import OWN, JobTraceQuery
from clusterscape.query.scheduling.simulations_answers import (
    MOST_CHOICES,
    MOST_JITTER,
    SimulatedChoice,
    SimulationAnswer,
    SimulationAsk,
    SimulationList,
    SimulatorOptions,
)
from clusterscape.query.scheduling.simulations_kept import KeptSimulations

if TYPE_CHECKING:
    from clusterscape.simulate.batch import BackfillKind, Scenario, Schedule

log = logging.getLogger(__name__)

ANSWERS_IN_MEMORY = 32
CHOICES_IN_MEMORY = 128
OWN_KEEP_MS = 60_000
SEED = 0


@dataclass(frozen=True, slots=True)
class _Prepared:
    trace: JobTrace
    scenarios: list[tuple[str, "Scenario"]]
    """Policy and scenario, in the order asked."""
    notes: tuple[CleaningNote, ...]


@dataclass(slots=True)
class _Work:
    """How far a simulation is. ``counter``: events of the run that goes on, and whether it is to stop, as the engine has it."""

    runs: int
    events: int
    owner: str | None = None
    """Who owns the result; None: it is everybody's."""
    began: str | None = None
    """Login of who began it: they and operators may stop it."""
    withdraw: Callable[[], None] = lambda: None
    """Takes it out of the queue, where it has not begun."""
    done: int = 0
    counter: Int64s = field(default_factory=lambda: np.zeros(2, np.int64))

    @property
    def progress(self) -> float:
        """From 0 to 1."""
        return min(1.0, (self.done + min(1.0, int(self.counter[0]) / self.events)) / self.runs)

    def simulate(self, scenario: "Scenario") -> "Schedule":
        """One run, counted. Raises StoppedError where it is to stop."""
        from clusterscape.simulate.batch import simulate

        if self.counter[1]:
            raise StoppedError("the simulation was stopped")
        self.counter[0] = 0
        schedule = simulate(scenario, self.counter)
        self.done, self.counter[0] = self.done + 1, 0
        return schedule


class SimulationQuery:
    """Starts simulations, tells how far they are and stops them. Thread-safe; one runs at a time."""

    def __init__(self, context: QueryContext, traces: JobTraceQuery) -> None:
        self._context = context
        self._traces = traces
        self._kept = KeptSimulations(context)
        limits = context.work
        self._worker = FairWorker("simulation", per_user=limits.runs_per_user, waiting=limits.runs_waiting)
        self._lock = threading.Lock()
        self._answers: OrderedDict[str, SimulationAnswer] = OrderedDict()
        self._works: dict[str, _Work] = {}
        self._choices: OrderedDict[str, SimulatedChoice] = OrderedDict()
        self._readable: JobTraceQuery | None = None

    def within(self, traces: JobTraceQuery) -> "SimulationQuery":
        """The same simulations within a viewer scope: those of traces that the viewer may read."""
        scoped = copy(self)
        scoped._readable = traces
        return scoped

    def options(self) -> SimulatorOptions:
        """What can be chosen."""
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

    def ask(self, asked: SimulationAsk, *, by: Viewer = ANYONE_HERE, user: str = "") -> SimulationAnswer:
        """Start what is asked, or find it: the same question about the same jobs is simulated once, for who asked first.

        ``user``: whom it counts for. Raises ThrottledError where they have too many that are not done.
        """
        _check(asked)
        if self._readable is not None:
            self._readable.check(asked.trace)
        name = self._name(asked)
        found = self._look_up(name)
        if found is not None and found.state in ("running", "done"):
            return found
        self._worker.check(user)
        prepared = self._prepare(asked)
        answer = _begin(name, asked, prepared, self._context.clock())
        # Two runs beside the jittered ones: as recorded, and first come, first served to be compared with.
        work = _Work(
            runs=len(prepared.scenarios) * (asked.jitter + 2),
            events=2 * max(1, answer.simulated_jobs),
            owner=None if by.login is None else owner_for(by),
            began=by.login,
        )
        job = partial(self._run, name, work, prepared, asked.jitter)
        work.withdraw = partial(self._worker.withdraw, user, job)
        with self._lock:
            self._worker.submit(user, job)
            self._works[name] = work
            self._remember(answer)
        return answer

    def find(self, simulation: str) -> SimulationAnswer:
        """How far it is, and what there is of it."""
        found = self._look_up(simulation)
        if found is None or not self._may_read(found.asked):
            raise _no_such(simulation)
        return found

    def all(self) -> SimulationList:
        """What is kept, the newest first."""
        return SimulationList(simulations=[row for row in self._kept.rows() if self._may_read(row.asked)])

    def _may_read(self, asked: SimulationAsk) -> bool:
        if self._readable is None:
            return True
        try:
            self._readable.check(asked.trace)
        except NotFoundError:
            return False
        return True

    def stop(self, simulation: str, *, by: Viewer = ANYONE_HERE) -> SimulationAnswer:
        """Do not go on with it; choices that are done stay. One that is over already is left as it is.

        Raises ForbiddenError where somebody else began it; on a private site NotFoundError.
        """
        if self._readable is not None:
            self.find(simulation)
        with self._lock:
            work = self._works.get(simulation)
        if work is not None:
            if self._context.is_private and not is_owner(work.began, by):
                raise _no_such(simulation)
            check_began(work.began, by, "the simulation")
            work.counter[1] = 1
            self._tell(simulation, work, partial(replace, state="stopped"))
            work.withdraw()
            self._forget(simulation, work)
        return self.find(simulation)

    def remove(self, simulation: str, *, by: Viewer = ANYONE_HERE) -> None:
        """Forget a kept result. Raises NotFoundError where none is kept, ForbiddenError where it is somebody else's."""
        if self._readable is not None:
            self.find(simulation)
        self._kept.remove(simulation, by)
        with self._lock:
            if simulation not in self._works:
                self._answers.pop(simulation, None)

    def _look_up(self, name: str) -> SimulationAnswer | None:
        with self._lock:
            found, work = self._answers.get(name), self._works.get(name)
        if found is not None and work is not None and found.state == "running":
            return replace(found, progress=work.progress)
        return found if found is not None else self._kept.find(name)

    def _name(self, asked: SimulationAsk) -> str:
        version = self._context.clock() // OWN_KEEP_MS if asked.trace == OWN else 0
        text = json.dumps([asdict(asked), version], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def _prepare(self, asked: SimulationAsk) -> _Prepared:
        from clusterscape.simulate.batch import BACKFILLS, PRESETS, Scenario, find_policy, prepare_jobs
        from clusterscape.simulate.sweep import plan_points

        trace = self._traces.trace(asked.trace)
        total = asked.processors or trace.total
        if total is None:
            raise QueryError(
                f"{trace.name} does not say how large the machine is", hint=f"Give its size, in {trace.size_unit}."
            )
        if asked.semantics not in PRESETS:
            raise QueryError(f"there are no semantics {asked.semantics!r}", hint=f"There are {', '.join(PRESETS)}.")
        how = PRESETS[asked.semantics]
        kinds = [_kind(kind, BACKFILLS) for kind in asked.backfills]
        points = plan_points(asked.policies, kinds, asked.omegas, [asked.whole_at])
        if len(points) > MOST_CHOICES:
            raise QueryError(_too_many(len(points)), hint=f"Choose at most {MOST_CHOICES} together.")
        policies = {name: find_policy(name) for name in asked.policies}
        jobs, notes = prepare_jobs(trace, total, estimates=asked.estimates, semantics=how)
        scenarios = [
            (point.policy, Scenario(jobs, total, policies[point.policy], point.backfill, asked.estimates, how))
            for point in points
        ]
        return _Prepared(trace, scenarios, notes)

    def _run(self, name: str, work: _Work, prepared: _Prepared, jitter: int) -> None:
        done: list[SimulatedChoice] = []
        tell = partial(self._tell, name, work)
        try:
            for at, (policy, scenario) in enumerate(prepared.scenarios, 1):
                done.append(self._simulate(work, prepared.trace, policy, scenario, jitter))
                work.done = at * (jitter + 2)
                tell(partial(replace, choices=list(done)))
            # Kept first: who hears that it is done may ask another server, or this one after a restart.
            answer = self._look_up(name)
            if answer is not None:
                self._keep(replace(answer, state="done", progress=1.0), work.owner)
            tell(partial(replace, state="done", progress=1.0))
        except StoppedError:
            tell(partial(replace, state="stopped"))
        except ClusterScapeError as error:
            tell(partial(replace, state="failed", problem=error.public_message))
        except Exception:
            # A thread of a pool keeps what it raises to itself: whoever waits must hear of it.
            log.exception("a simulation failed")
            tell(partial(replace, state="failed", problem="the simulation failed; the server's log says why"))
        finally:
            self._forget(name, work)

    def _forget(self, name: str, work: _Work) -> None:
        with self._lock:
            if self._works.get(name) is work:
                del self._works[name]

    def _simulate(
        self, work: _Work, trace: JobTrace, policy: str, scenario: "Scenario", jitter: int
    ) -> SimulatedChoice:
        from clusterscape.query.scheduling.simulations_results import describe_choice
        from clusterscape.simulate.batch import compare_with_fcfs, compute_measures, measure_spread

        fingerprint = hashlib.sha256(f"{scenario.fingerprint()} {jitter} {SEED}".encode()).hexdigest()
        with self._lock:
            kept = self._choices.get(fingerprint)
        if kept is not None:
            return kept
        schedule = work.simulate(scenario)
        spreads = measure_spread(scenario, work.simulate, runs=jitter, seed=SEED) if jitter else {}
        sizes = compare_with_fcfs(schedule, work.simulate)
        choice = describe_choice(trace, policy, schedule, compute_measures(schedule), spreads, sizes, fingerprint)
        with self._lock:
            self._choices[fingerprint] = choice
            while len(self._choices) > CHOICES_IN_MEMORY:
                self._choices.popitem(last=False)
        return choice

    def _keep(self, answer: SimulationAnswer, owner: str | None) -> None:
        try:
            self._kept.keep(answer, owner)
        except ClusterScapeError as error:
            log.warning("the result of a simulation is only in memory: %s %s", error.message, error.hint or "")

    def _remember(self, answer: SimulationAnswer) -> None:
        self._answers[answer.simulation] = answer
        self._answers.move_to_end(answer.simulation)
        over = [name for name in self._answers if name not in self._works][: len(self._answers) - ANSWERS_IN_MEMORY]
        for name in over:
            del self._answers[name]

    def _tell(self, name: str, work: _Work, change: Callable[[SimulationAnswer], SimulationAnswer]) -> None:
        """Change what is known of a simulation that goes on; one that was stopped, and perhaps asked for anew, is left alone."""
        with self._lock:
            found = self._answers.get(name)
            if found is not None and found.state == "running" and self._works.get(name) is work:
                self._answers[name] = change(found)


def _no_such(simulation: str) -> NotFoundError:
    return NotFoundError(f"there is no simulation {simulation!r}", hint="Ask for it again.")


def _check(asked: SimulationAsk) -> None:
    choices = len(asked.policies) * len(asked.backfills)
    if not 1 <= choices <= MOST_CHOICES:
        raise QueryError(_too_many(choices), hint=f"Choose at least one of both, and at most {MOST_CHOICES} together.")
    if not 0 <= asked.jitter <= MOST_JITTER:
        raise QueryError(f"0 to {MOST_JITTER} jittered runs can be made, not {asked.jitter}")
    if asked.processors is not None and asked.processors < 1:
        raise QueryError("a machine has at least one processor")
    if not asked.omegas or not all(0 <= omega <= 10 for omega in asked.omegas):
        raise QueryError("a relaxation is one or more factors from 0 to 10", hint="Such as 0.1.")


def _too_many(choices: int) -> str:
    return f"{choices} combinations of policy and backfilling are asked for"


def _kind(word: str, known: "Sequence[BackfillKind]") -> "BackfillKind":
    for each in known:
        if each == word:
            return each
    raise QueryError(f"there is no backfilling {word!r}", hint=f"There are {', '.join(known)}.")


def _begin(name: str, asked: SimulationAsk, prepared: _Prepared, now_ms: int) -> SimulationAnswer:
    first = prepared.scenarios[0][1]
    return SimulationAnswer(
        simulation=name,
        asked=asked,
        made_at=now_ms,
        state="running",
        progress=0.0,
        trace=prepared.trace.name,
        size_unit=prepared.trace.size_unit,
        processors=first.total_processors,
        simulated_jobs=len(first.jobs),
        jitter=asked.jitter,
        semantics=asked.semantics,
        epoch_s=read_columns(prepared.trace).epoch_s,
        choices=[],
        notes=[*prepared.trace.notes, *prepared.notes],
        problem=None,
    )
