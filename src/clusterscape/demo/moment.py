"""The cluster at one moment: who runs where, who waits, which nodes are out of service. What a scheduler would know then."""

from dataclasses import dataclass

from clusterscape.demo.lives import Attempt, Life, Outage
from clusterscape.demo.scenario import Scenario
from clusterscape.model import WorkloadState

REMEMBERED_S = 300
"""How long the queue still shows a job that has ended (Slurm's MinJobAge)."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Everything a scheduler knows at ``time_s``."""

    time_s: int
    running: list[tuple[Life, Attempt]]
    waiting: list[Life]
    ended: list[Life]  # within the last REMEMBERED_S
    outages: dict[int, Outage]  # by node


def look(scenario: Scenario, time_s: int) -> Moment:
    """The moment ``time_s``; the course of events is extended where needed."""
    scenario.advance(time_s * 1000)
    running: list[tuple[Life, Attempt]] = []
    waiting: list[Life] = []
    ended: list[Life] = []
    for life in scenario.lives.values():
        ended_s = life.ended_s
        if life.demo.job.submit_s > time_s or (ended_s is not None and ended_s <= time_s - REMEMBERED_S):
            continue
        state = life.state_at(time_s)
        if state is WorkloadState.RUNNING:
            running.append((life, life.attempts_by(time_s)[-1]))
        elif state is WorkloadState.WAITING:
            waiting.append(life)
        else:
            ended.append(life)
    outages = {outage.node: outage for outage in scenario.outages if outage.from_s <= time_s < outage.to_s}
    return Moment(time_s, running, waiting, ended, outages)
