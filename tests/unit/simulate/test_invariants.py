"""Properties that hold for every input: no GPU held twice, capacity kept, order kept, promises kept."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from clusterscape.simulate import (
    Ending,
    Event,
    FaultKind,
    Job,
    JobEnded,
    JobStarted,
    NodeFault,
    Placement,
    Policy,
    SimNode,
    Simulation,
)
from clusterscape.simulate.contract import Reservation, Turn
from clusterscape.simulate.placements.least_allocated import LeastAllocated
from clusterscape.simulate.placements.most_allocated import MostAllocated
from clusterscape.simulate.policies.fcfs import Fcfs
from clusterscape.simulate.policies.fcfs_easy import FcfsEasy

NODES = [SimNode("a0", "a", 4), SimNode("a1", "a", 4), SimNode("a2", "a", 2), SimNode("b0", "b", 8)]


@st.composite
def job_lists(draw: st.DrawFn) -> list[Job]:
    jobs = []
    for id in range(draw(st.integers(1, 25))):
        shapes = [("a", 1, 4), ("a", 2, 4), ("a", 1, 1), ("a", 3, 2), ("a", 2, 3), ("b", 1, 8), ("b", 1, 3)]
        partition, nodes, gpus = draw(st.sampled_from(shapes))
        run_s = draw(st.integers(1, 40))
        jobs.append(
            Job(
                id=id,
                partition=partition,
                submit_s=draw(st.integers(0, 60)),
                run_s=run_s,
                limit_s=draw(st.integers(1, 60)),
                gpus_per_node=gpus,
                nodes=nodes,
                user=draw(st.sampled_from("xyz")),
                priority=draw(st.integers(0, 1)),
                is_requeued=draw(st.booleans()),
            )
        )
    return jobs


@st.composite
def fault_lists(draw: st.DrawFn) -> list[NodeFault]:
    faults = []
    for _ in range(draw(st.integers(0, 4))):
        from_s = draw(st.integers(0, 80))
        faults.append(
            NodeFault(
                node=draw(st.sampled_from([node.name for node in NODES])),
                kind=draw(st.sampled_from(FaultKind)),
                from_s=from_s,
                to_s=from_s + draw(st.integers(1, 40)),
            )
        )
    return faults


policies = st.sampled_from([Fcfs(), FcfsEasy(), FcfsEasy(depth=2)])
placements = st.sampled_from([MostAllocated(), LeastAllocated()])


def run(jobs: list[Job], faults: list[NodeFault], policy: Policy, placement: Placement) -> list[Event]:
    simulation = Simulation(NODES, policy, placement, max_gpus_per_user={"b": 8})
    simulation.add_jobs(jobs)
    simulation.add_faults(faults)
    return simulation.run()


@settings(deadline=None)
@given(jobs=job_lists(), faults=fault_lists(), policy=policies, placement=placements)
def test_every_gpu_has_one_holder_when_jobs_start_and_end(
    jobs: list[Job], faults: list[NodeFault], policy: Policy, placement: Placement
) -> None:
    capacity = {node.name: node.gpus for node in NODES}
    holder: dict[tuple[str, int], int] = {}
    for event in run(jobs, faults, policy, placement):
        if isinstance(event, JobStarted):
            assert len(event.grants) == event.job.nodes
            for grant in event.grants:
                assert len(grant.gpus) == event.job.gpus_per_node
                for gpu in grant.gpus:
                    assert 0 <= gpu < capacity[grant.node]
                    assert (grant.node, gpu) not in holder
                    holder[grant.node, gpu] = event.job.id
        elif isinstance(event, JobEnded):
            holder = {place: job for place, job in holder.items() if job != event.job.id}
    assert not holder


@settings(deadline=None)
@given(jobs=job_lists(), faults=fault_lists(), policy=policies, placement=placements)
def test_every_job_ends_once_when_all_nodes_return(
    jobs: list[Job], faults: list[NodeFault], policy: Policy, placement: Placement
) -> None:
    events = run(jobs, faults, policy, placement)
    ended = [e.job.id for e in events if isinstance(e, JobEnded) and e.ending is not Ending.REQUEUED]
    assert sorted(ended) == [job.id for job in jobs]
    assert [event.time_s for event in events] == sorted(event.time_s for event in events)


@settings(deadline=None)
@given(jobs=job_lists(), faults=fault_lists(), placement=placements)
def test_jobs_start_in_order_when_nothing_may_overtake(
    jobs: list[Job], faults: list[NodeFault], placement: Placement
) -> None:
    alike = [
        replace(job, priority=0, partition="a", gpus_per_node=min(job.gpus_per_node, 2), is_requeued=False)
        for job in jobs
    ]
    starts = [event.job for event in run(alike, faults, Fcfs(), placement) if isinstance(event, JobStarted)]
    assert starts == sorted(alike, key=lambda job: (job.submit_s, job.id))


class WatchedEasy(FcfsEasy):
    """Keeps the first promise made to every job that has been at the head without interruption."""

    def __init__(self) -> None:
        super().__init__()
        self.promises: dict[int, int] = {}

    def schedule(self, turn: Turn) -> Job | None:
        head = super().schedule(_Watched(turn, self.promises))
        if head is not None:
            self.promises.setdefault(head.id, turn.reserve(head).start_s)
        return head


class _Watched:
    """A turn that checks after each backfill that the promise still holds."""

    def __init__(self, turn: Turn, promises: dict[int, int]) -> None:
        self._turn = turn
        self.now_s = turn.now_s
        self.waiting = turn.waiting
        self.fits = turn.fits
        self.start = turn.start
        self.reserve = turn.reserve

    def backfill(self, job: Job, reservation: Reservation) -> bool:
        started = self._turn.backfill(job, reservation)
        assert self._turn.reserve(reservation.job).start_s <= reservation.start_s
        return started


@settings(deadline=None)
@given(jobs=job_lists(), placement=placements)
def test_promised_start_is_kept_when_others_are_backfilled(jobs: list[Job], placement: Placement) -> None:
    # Without priorities and faults nothing may push back a job that was promised a start.
    policy = WatchedEasy()
    events = run([replace(job, priority=0, user=str(job.id)) for job in jobs], [], policy, placement)
    for event in events:
        if isinstance(event, JobStarted) and event.job.id in policy.promises:
            assert event.time_s <= policy.promises[event.job.id]
