"""What a simulation of a job trace computes, in a process of its own: the predictions of a model, and one choice of policy and
backfilling with its jittered runs.

Pure: everything comes with the task.
"""

from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field

import numpy as np

from clusterscape.analyze.jobs.runtime_estimates import LearnedEstimates, predict_run_times
from clusterscape.executors import Report
from clusterscape.model.arrays import Int64s
from clusterscape.model.jobs import JobTrace
from clusterscape.services.simulation_answers import SimulatedChoice
from clusterscape.services.simulation_results import describe_choice
from clusterscape.simulate.batch import (
    Scenario,
    Schedule,
    compare_with_fcfs,
    compute_measures,
    measure_spread,
    simulate,
)

REPORT_EVERY_S = 0.1
SEED = 0


@dataclass(frozen=True, slots=True)
class PredictionTask:
    """``estimates``: the model."""

    trace: JobTrace
    estimates: LearnedEstimates


def predict_for_trace(task: PredictionTask, report: Report) -> Int64s:
    """Predicted run times of each row of the trace, and their corrections."""
    return predict_run_times(task.trace, task.estimates, on_progress=lambda _: report(0.0))


@dataclass(frozen=True, slots=True)
class ChoiceTask:
    """``trace``: for the ids of its jobs; None: too many to draw. ``jitter``: number of jittered runs."""

    trace: JobTrace | None
    policy: str
    scenario: Scenario
    jitter: int
    fingerprint: str


def simulate_choice(task: ChoiceTask, report: Report) -> SimulatedChoice:
    """The chart data of one choice."""
    # In addition to the jittered runs: the unchanged trace, and first come, first served for comparison.
    runs = _Runs(task.jitter + 2, report)
    schedule = runs.simulate(task.scenario)
    spreads = measure_spread(task.scenario, runs.simulate, runs=task.jitter, seed=SEED) if task.jitter else {}
    sizes = compare_with_fcfs(schedule, runs.simulate)
    return describe_choice(
        task.trace, task.policy, schedule, compute_measures(schedule), spreads, sizes, task.fingerprint
    )


@dataclass(slots=True)
class _Runs:
    """Counted runs. ``counter``, shared with the engine: events of the current run, and a stop flag."""

    count: int
    report: Report
    done: int = 0
    counter: Int64s = field(default_factory=lambda: np.zeros(2, np.int64))

    def simulate(self, scenario: Scenario) -> Schedule:
        """One run. Raises StoppedError soon after ``report`` did."""
        self.counter[:] = 0
        events = 2 * max(1, len(scenario.jobs))
        with ThreadPoolExecutor(1) as thread:
            running = thread.submit(simulate, scenario, self.counter)
            try:
                while not wait([running], REPORT_EVERY_S).done:
                    self.report(min(1.0, (self.done + min(1.0, int(self.counter[0]) / events)) / self.count))
            except BaseException:
                self.counter[1] = 1
                raise
        self.done += 1
        self.report(min(1.0, self.done / self.count))
        return running.result()
