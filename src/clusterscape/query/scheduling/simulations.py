"""Simulations of job traces that somebody asked for: run one after the other in a thread, kept by fingerprint.

The engine is `simulate.batch`; this only prepares, runs and keeps. Compiled code is loaded when the first one is asked for.
"""

import hashlib
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from clusterscape.analyze.jobs.columns import read_columns
from clusterscape.errors import ClusterScapeError, NotFoundError, QueryError
from clusterscape.model.jobs import CleaningNote, JobTrace
from clusterscape.query.context import QueryContext
from clusterscape.query.scheduling.description import OWN, JobTraceQuery
from clusterscape.query.scheduling.simulations_answers import (
    SimulatedChoice,
    SimulationAnswer,
    SimulationAsk,
    SimulatorOptions,
)

if TYPE_CHECKING:
    from clusterscape.simulate.batch import BackfillKind, Scenario

log = logging.getLogger(__name__)

MOST_CHOICES = 24
MOST_JITTER = 50
KEPT_ANSWERS = 32
KEPT_CHOICES = 128
OWN_KEEP_MS = 60_000
SEED = 0


@dataclass(frozen=True)
class _Prepared:
    trace: JobTrace
    scenarios: list[tuple[str, "Scenario"]]
    """Policy and scenario, in the order asked."""
    notes: tuple[CleaningNote, ...]


class SimulationQuery:
    """Starts simulations and tells how far they are. Thread-safe; one runs at a time."""

    def __init__(self, context: QueryContext, traces: JobTraceQuery) -> None:
        self._context = context
        self._traces = traces
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="simulation")
        self._lock = threading.Lock()
        self._answers: OrderedDict[str, SimulationAnswer] = OrderedDict()
        self._choices: OrderedDict[str, SimulatedChoice] = OrderedDict()

    def options(self) -> SimulatorOptions:
        """What can be chosen."""
        from clusterscape.simulate.batch import PRESETS
        from clusterscape.simulate.batch.contract import BACKFILLS
        from clusterscape.simulate.batch.policies import policy_names

        return SimulatorOptions(policies=policy_names(), backfills=list(BACKFILLS), semantics=list(PRESETS))

    def ask(self, asked: SimulationAsk) -> SimulationAnswer:
        """Start what is asked, or find it: the same question about the same jobs is simulated once."""
        _check(asked)
        name = self._name(asked)
        with self._lock:
            found = self._answers.get(name)
        if found is not None and found.state != "failed":
            return found
        prepared = self._prepare(asked)
        answer = _begin(name, asked, prepared)
        with self._lock:
            self._answers[name] = answer
            while len(self._answers) > KEPT_ANSWERS:
                self._answers.popitem(last=False)
        self._pool.submit(self._run, name, prepared, asked.jitter)
        return answer

    def find(self, simulation: str) -> SimulationAnswer:
        """How far it is, and what there is of it."""
        with self._lock:
            found = self._answers.get(simulation)
        if found is None:
            raise NotFoundError(f"there is no simulation {simulation!r}", hint="Ask for it again.")
        return found

    def _name(self, asked: SimulationAsk) -> str:
        version = self._context.clock() // OWN_KEEP_MS if asked.trace == OWN else 0
        text = json.dumps([asdict(asked), version], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def _prepare(self, asked: SimulationAsk) -> _Prepared:
        from clusterscape.simulate.batch import PRESETS, Backfill, Scenario, find_policy, prepare_jobs
        from clusterscape.simulate.batch.contract import BACKFILLS

        trace = self._traces.trace(asked.trace)
        total = asked.processors or trace.total
        if total is None:
            raise QueryError(
                f"{trace.name} does not say how large the machine is", hint=f"Give its size, in {trace.size_unit}."
            )
        if asked.semantics not in PRESETS:
            raise QueryError(f"there are no semantics {asked.semantics!r}", hint=f"There are {', '.join(PRESETS)}.")
        how = PRESETS[asked.semantics]
        kinds = [_kind(kind, BACKFILLS) for kind in dict.fromkeys(asked.backfills)]
        policies = [(name, find_policy(name)) for name in dict.fromkeys(asked.policies)]
        jobs, notes = prepare_jobs(trace, total, estimates=asked.estimates, semantics=how)
        scenarios = [
            (name, Scenario(jobs, total, policy, Backfill(kind), asked.estimates, how))
            for (name, policy), kind in product(policies, kinds)
        ]
        return _Prepared(trace, scenarios, notes)

    def _run(self, name: str, prepared: _Prepared, jitter: int) -> None:
        done: list[SimulatedChoice] = []
        try:
            for policy, scenario in prepared.scenarios:
                done.append(self._simulate(prepared.trace, policy, scenario, jitter))
                told, share = list(done), len(done) / len(prepared.scenarios)
                self._tell(name, partial(replace, choices=told, progress=share))
            self._tell(name, partial(replace, state="done", progress=1.0))
        except ClusterScapeError as error:
            self._tell(name, partial(replace, state="failed", problem=error.message))
        except Exception:
            # A thread of a pool keeps what it raises to itself: whoever waits must hear of it.
            log.exception("a simulation failed")
            self._tell(
                name, partial(replace, state="failed", problem="the simulation failed; the server's log says why")
            )

    def _simulate(self, trace: JobTrace, policy: str, scenario: "Scenario", jitter: int) -> SimulatedChoice:
        from clusterscape.query.scheduling.simulations_results import describe_choice
        from clusterscape.simulate.batch import compute_measures, measure_spread, simulate

        fingerprint = hashlib.sha256(f"{scenario.fingerprint()} {jitter} {SEED}".encode()).hexdigest()
        with self._lock:
            kept = self._choices.get(fingerprint)
        if kept is not None:
            return kept
        schedule = simulate(scenario)
        spreads = measure_spread(scenario, simulate, runs=jitter, seed=SEED) if jitter else {}
        choice = describe_choice(trace, policy, schedule, compute_measures(schedule), spreads, fingerprint)
        with self._lock:
            self._choices[fingerprint] = choice
            while len(self._choices) > KEPT_CHOICES:
                self._choices.popitem(last=False)
        return choice

    def _tell(self, name: str, change: Callable[[SimulationAnswer], SimulationAnswer]) -> None:
        with self._lock:
            if name in self._answers:
                self._answers[name] = change(self._answers[name])


def _check(asked: SimulationAsk) -> None:
    choices = len(asked.policies) * len(asked.backfills)
    if not 1 <= choices <= MOST_CHOICES:
        raise QueryError(
            f"{choices} combinations of policy and backfilling are asked for",
            hint=f"Choose at least one of both, and at most {MOST_CHOICES} together.",
        )
    if not 0 <= asked.jitter <= MOST_JITTER:
        raise QueryError(f"0 to {MOST_JITTER} jittered runs can be made, not {asked.jitter}")
    if asked.processors is not None and asked.processors < 1:
        raise QueryError("a machine has at least one processor")


def _kind(word: str, known: "Sequence[BackfillKind]") -> "BackfillKind":
    for each in known:
        if each == word:
            return each
    raise QueryError(f"there is no backfilling {word!r}", hint=f"There are {', '.join(known)}.")


def _begin(name: str, asked: SimulationAsk, prepared: _Prepared) -> SimulationAnswer:
    first = prepared.scenarios[0][1]
    return SimulationAnswer(
        simulation=name,
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
