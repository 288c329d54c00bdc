"""All events of the demo cluster: jobs, outages and errors, simulated by the scheduling engine block by block.

Deterministic for (gpus, seed, placement), shifted in time by the anchor: every demo shows the same events. Starts days before
the anchor, so that queues are in steady state there, and is extended on demand. Telemetry and protocols are derived elsewhere.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random

from clusterscape.demo.hardware import build_hardware
from clusterscape.demo.jobs import Attempt, DemoJob, Life, Outage, XidError
from clusterscape.demo.planted import TOP_PRIORITY, WARM_UP_S, DemoFault, Faults, Planted
from clusterscape.demo.scheduler import Event, JobEnded, JobEnding, JobStarted, JobWaited, Simulation
from clusterscape.demo.stream import MIXES, JobStream, user_limits
from clusterscape.model import UnixMs, WorkloadState
from clusterscape.simulate.placements import PLACEMENTS

BLOCK_S = 7200
FIRST_JOB_ID = 41_000
BACKFILL_DEPTH = 50
XID_SHOWN_MS = 3_600_000
XID_BEFORE_OUTAGE_S = 240
XID_SHARE = 0.12  # of failed jobs: those that end with an error of the GPU
_JOB_XIDS = (13, 31, 43, 45, 94)
ANCHOR_LOCAL_S = (6 * 24 + 14) * 3600
"""The anchor in the users' local time, Wednesday 14:00, in seconds since the Thursday before."""

DEFAULT_PLACEMENT = "spread"
"""The default of many schedulers: it fragments the partition of small jobs, which the demo shows."""


@dataclass(frozen=True, slots=True)
class ScenarioBlock:
    """Jobs and faults of one block of time, independent of scheduling."""

    jobs: Sequence[DemoJob]
    faults: Sequence[DemoFault]


class DemoScenario:
    """One demo cluster. Call ``advance`` before querying a time; earlier times can always be queried.

    Users submit less while queues are long, so jobs depend on the placement of others. With another ``placement``,
    the cluster gets the jobs and outages of the default placement, which is simulated in parallel: only the placement differs.
    """

    def __init__(self, gpus: int, seed: int, anchor_ms: UnixMs, placement: str = DEFAULT_PLACEMENT) -> None:
        self.hardware = build_hardware(gpus, seed)
        self.seed = seed
        self.anchor_s = anchor_ms // 1000
        self.origin_s = self.anchor_s - WARM_UP_S
        self.end_s = self.origin_s  # events are simulated up to here
        self.lives: dict[int, Life] = {}
        self.outages: list[Outage] = []
        self.xid_errors: list[XidError] = []
        self._planted = Planted(self.hardware, self.anchor_s)
        self._streams = [JobStream(self.hardware, name, self.anchor_s - ANCHOR_LOCAL_S) for name in MIXES]
        self._simulation = Simulation(
            self.hardware.sim_nodes,
            PLACEMENTS[placement](),
            depth=BACKFILL_DEPTH,
            max_gpus_per_user=user_limits(self.hardware),
        )
        self._faults = Faults(self.hardware, self._planted.protected_nodes)
        self._add_faults(self._planted.shutdown(self.origin_s))
        self._held = dict.fromkeys(MIXES, 0)  # GPUs, by stream
        self._running_planted: dict[int, Attempt] = {}
        self._next_id = FIRST_JOB_ID
        self._twin = None if placement == DEFAULT_PLACEMENT else DemoScenario(gpus, seed, anchor_ms)
        self._last_block = ScenarioBlock((), ())

    def advance(self, until_ms: int) -> bool:
        """Simulate up to ``until_ms`` and a little beyond; True if that added events."""
        has_grown = False
        while self.end_s * 1000 <= until_ms:
            self._play_block(self.end_s, self.end_s + BLOCK_S)
            has_grown = True
        return has_grown

    def _play_block(self, start_s: int, end_s: int) -> None:
        block = self._take_block(start_s, end_s)
        self._last_block = block
        self.lives |= {job.job.id: Life(job) for job in block.jobs}
        self._simulation.add_jobs(job.job for job in block.jobs)
        self._add_faults(block.faults)
        for event in self._simulation.run(end_s):
            self._note(event)
        self.end_s = end_s

    def _take_block(self, start_s: int, end_s: int) -> ScenarioBlock:
        if self._twin is None:
            return self._draw_block(start_s, end_s)
        self._twin._play_block(start_s, end_s)
        return self._twin._last_block

    def _draw_block(self, start_s: int, end_s: int) -> ScenarioBlock:
        rng = Random(f"{self.seed}/{len(self.hardware.nodes)}/{start_s - self.origin_s}")
        jobs = self._planted.jobs(start_s, end_s)
        for stream in self._streams:
            if start_s == self.origin_s:
                jobs += stream.fill(rng, start_s)
            jobs += stream.draw(rng, start_s, end_s, self._demand(stream))
        numbered = _number(jobs, self._next_id)
        self._next_id += len(numbered)
        spared = {grant.node for attempt in self._running_planted.values() for grant in attempt.grants}
        faults = self._planted.faults(start_s, end_s, spared)
        return ScenarioBlock(numbered, [*faults, *self._faults.draw(rng, start_s, end_s, spared)])

    def _demand(self, stream: JobStream) -> float:
        """GPUs that the stream's jobs hold and wait for, per GPU of its partition."""
        queue = self._simulation.waiting(stream.partition)
        waiting = sum(job.gpus for job in queue if self.lives[job.id].demo.stream == stream.name)
        return (self._held[stream.name] + waiting) / self.hardware.capacity(stream.partition)

    def _add_faults(self, faults: Iterable[DemoFault]) -> None:
        for drawn in faults:
            fault = drawn.fault
            assert fault.to_s is not None
            self._simulation.add_faults([fault])
            node = self.hardware.node_index[fault.node]
            self.outages.append(Outage(node, fault.kind, fault.from_s, fault.to_s, drawn.reason))
            if drawn.xid is not None:
                unit = self.hardware.nodes[node].first_unit + drawn.gpu % self.hardware.nodes[node].gpu_count
                self._add_xid(unit, drawn.xid, fault.from_s - XID_BEFORE_OUTAGE_S)

    def _add_xid(self, unit: int, code: int, at_s: int) -> None:
        self.xid_errors.append(XidError(unit, code, at_s * 1000, at_s * 1000 + XID_SHOWN_MS))

    def _note(self, event: Event) -> None:
        if isinstance(event, JobWaited):
            self.lives[event.job.id].waits.append((event.time_s, event.reason))
        elif isinstance(event, JobStarted):
            self._note_start(event)
        elif isinstance(event, JobEnded):
            self._note_end(event)

    def _note_start(self, event: JobStarted) -> None:
        nodes, index = self.hardware.nodes, self.hardware.node_index
        units = tuple(nodes[index[grant.node]].first_unit + gpu for grant in event.grants for gpu in grant.gpus)
        attempt = Attempt(event.time_s, event.grants, units)
        self.lives[event.job.id].attempts.append(attempt)
        self._held[self.lives[event.job.id].demo.stream] += event.job.gpus
        if event.job.priority >= TOP_PRIORITY - 1:
            self._running_planted[event.job.id] = attempt

    def _note_end(self, event: JobEnded) -> None:
        life = self.lives[event.job.id]
        if event.ending is JobEnding.WITHDRAWN:
            life.withdrawn_s = event.time_s
            return
        attempt = life.attempts[-1]
        attempt.end_s, attempt.ending = event.time_s, event.ending
        self._held[life.demo.stream] -= event.job.gpus
        self._running_planted.pop(event.job.id, None)
        draw = life.demo.draws[-1]
        if life.demo.outcome is WorkloadState.FAILED and event.ending is JobEnding.FINISHED and draw < XID_SHARE:
            self._add_xid(attempt.units[0], _JOB_XIDS[int(draw / XID_SHARE * len(_JOB_XIDS))], event.time_s)


def _number(jobs: Iterable[DemoJob], first_id: int) -> list[DemoJob]:
    """Assign ids in submit order; the tasks of an array stay together."""
    numbered: list[DemoJob] = []
    array_ids: dict[tuple[str, int], int] = {}
    for id, demo in enumerate(sorted(jobs, key=lambda demo: demo.job.submit_s), first_id):
        array = demo.array
        if array is not None:
            array = replace(array, array_id=array_ids.setdefault((demo.job.partition, array.array_id), id))
        numbered.append(replace(demo, job=replace(demo.job, id=id), array=array))
    return numbered
