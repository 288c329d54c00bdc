"""Properties that hold for every input: no GPU held twice, capacity kept, order kept, promises kept."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterscape.demo.scheduler import (
    Event,
    JobEnded,
    JobEnding,
    JobStarted,
    SimNode,
    Simulation,
    SubmittedJob,
    engine,
)
from clusterscape.demo.scheduler.partition import PromisedStart, SchedulingTurn
from clusterscape.simulate.faults import FaultKind, NodeFault
from clusterscape.simulate.placements.least_allocated import LeastAllocated
from clusterscape.simulate.placements.most_allocated import MostAllocated
from clusterscape.simulate.placing import Placement

NODES = [SimNode("a0", "a", 4), SimNode("a1", "a", 4), SimNode("a2", "a", 2), SimNode("b0", "b", 8)]


@st.composite
def job_lists(draw: st.DrawFn) -> list[SubmittedJob]:
    jobs = []
    for id in range(draw(st.integers(1, 25))):
        shapes = [("a", 1, 4), ("a", 2, 4), ("a", 1, 1), ("a", 3, 2), ("a", 2, 3), ("b", 1, 8), ("b", 1, 3)]
        partition, nodes, gpus = draw(st.sampled_from(shapes))
        run_s = draw(st.integers(1, 40))
        jobs.append(
            SubmittedJob(
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


depths = st.sampled_from([0, None, 2])
placements = st.sampled_from([MostAllocated(), LeastAllocated()])


def run(jobs: list[SubmittedJob], faults: list[NodeFault], depth: int | None, placement: Placement) -> list[Event]:
    simulation = Simulation(NODES, placement, depth=depth, max_gpus_per_user={"b": 8})
    simulation.add_jobs(jobs)
    simulation.add_faults(faults)
    return simulation.run()


@settings(deadline=None)
@given(jobs=job_lists(), faults=fault_lists(), depth=depths, placement=placements)
def test_every_gpu_has_one_holder_when_jobs_start_and_end(
    jobs: list[SubmittedJob], faults: list[NodeFault], depth: int | None, placement: Placement
) -> None:
    capacity = {node.name: node.gpus for node in NODES}
    holder: dict[tuple[str, int], int] = {}
    for event in run(jobs, faults, depth, placement):
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
@given(jobs=job_lists(), faults=fault_lists(), depth=depths, placement=placements)
def test_every_job_ends_once_when_all_nodes_return(
    jobs: list[SubmittedJob], faults: list[NodeFault], depth: int | None, placement: Placement
) -> None:
    events = run(jobs, faults, depth, placement)
    ended = [e.job.id for e in events if isinstance(e, JobEnded) and e.ending is not JobEnding.REQUEUED]
    assert sorted(ended) == [job.id for job in jobs]
    assert [event.time_s for event in events] == sorted(event.time_s for event in events)


@settings(deadline=None)
@given(jobs=job_lists(), faults=fault_lists(), placement=placements)
def test_jobs_start_in_order_when_nothing_may_overtake(
    jobs: list[SubmittedJob], faults: list[NodeFault], placement: Placement
) -> None:
    equal_jobs = [
        replace(job, priority=0, partition="a", gpus_per_node=min(job.gpus_per_node, 2), is_requeued=False)
        for job in jobs
    ]
    starts = [event.job for event in run(equal_jobs, faults, 0, placement) if isinstance(event, JobStarted)]
    assert starts == sorted(equal_jobs, key=lambda job: (job.submit_s, job.id))


def watch_promises(promises: dict[int, int]) -> type[SchedulingTurn]:
    """Keep the first promised start of every job at the head, and check it after each backfill."""

    class WatchedTurn(SchedulingTurn):
        def schedule(self, depth: int | None = None) -> SubmittedJob | None:
            head = super().schedule(depth)
            if head is not None:
                promises.setdefault(head.id, self.reserve(head).start_s)
            return head

        def backfill(self, job: SubmittedJob, promise: PromisedStart) -> bool:
            started = super().backfill(job, promise)
            assert self.reserve(promise.job).start_s <= promise.start_s
            return started

    return WatchedTurn


@settings(deadline=None)
@given(jobs=job_lists(), placement=placements)
def test_promised_start_is_kept_when_others_are_backfilled(jobs: list[SubmittedJob], placement: Placement) -> None:
    # Without priorities and faults nothing may delay a job with a promised start.
    promises: dict[int, int] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "SchedulingTurn", watch_promises(promises))
        events = run([replace(job, priority=0, user=str(job.id)) for job in jobs], [], None, placement)
    for event in events:
        if isinstance(event, JobStarted) and event.job.id in promises:
            assert event.time_s <= promises[event.job.id]
