"""Hand-computed schedules, small enough to check on paper."""

from collections.abc import Iterable
from itertools import pairwise

import pytest

from clusterscape.demo.scheduler import (
    Event,
    Grant,
    JobEnded,
    JobEnding,
    JobStarted,
    JobWaited,
    NodeClosed,
    NodeOpened,
    Reason,
    SimNode,
    Simulation,
    SubmittedJob,
)
from clusterscape.simulate.faults import FaultKind, NodeFault
from clusterscape.simulate.placements.most_allocated import MostAllocated


def job(
    id: int,
    gpus: int,
    *,
    submit: int = 0,
    run: int = 10,
    limit: int | None = None,
    nodes: int = 1,
    user: str = "",
    priority: int = 0,
    eligible: int | None = None,
    withdraw: int | None = None,
    requeued: bool = False,
) -> SubmittedJob:
    return SubmittedJob(
        id=id,
        partition="p",
        submit_s=submit,
        run_s=run,
        limit_s=limit or run,
        gpus_per_node=gpus,
        nodes=nodes,
        user=user,
        priority=priority,
        eligible_s=eligible,
        withdraw_s=withdraw,
        is_requeued=requeued,
    )


def simulate(
    jobs: Iterable[SubmittedJob],
    *,
    depth: int | None = None,
    nodes: int = 1,
    gpus: int = 4,
    faults: Iterable[NodeFault] = (),
    max_gpus_per_user: int | None = None,
) -> list[Event]:
    simulation = Simulation(
        [SimNode(f"n{index}", "p", gpus) for index in range(nodes)],
        MostAllocated(),
        depth=depth,
        max_gpus_per_user=None if max_gpus_per_user is None else {"p": max_gpus_per_user},
    )
    simulation.add_jobs(jobs)
    simulation.add_faults(faults)
    return simulation.run()


def starts(events: Iterable[Event]) -> dict[int, int]:
    return {event.job.id: event.time_s for event in events if isinstance(event, JobStarted)}


def endings(events: Iterable[Event]) -> dict[int, tuple[int, JobEnding]]:
    return {event.job.id: (event.time_s, event.ending) for event in events if isinstance(event, JobEnded)}


def reasons(events: Iterable[Event], id: int) -> list[tuple[int, Reason]]:
    return [(event.time_s, event.reason) for event in events if isinstance(event, JobWaited) and event.job.id == id]


HEAD_OF_LINE = (
    job(1, 3, run=100),
    job(2, 4, submit=1, run=50),  # blocks: only one GPU is free
    job(3, 1, submit=2, run=98),  # would end exactly when job 2 may start
    job(4, 1, submit=3, run=10),
)


def test_no_job_overtakes_when_no_job_behind_the_head_is_tried() -> None:
    assert starts(simulate(HEAD_OF_LINE, depth=0)) == {1: 0, 2: 100, 3: 150, 4: 150}


def test_short_job_overtakes_when_it_ends_by_the_reserved_start() -> None:
    # Job 3 takes the free GPU during [2, 100); job 4 must wait for it.
    assert starts(simulate(HEAD_OF_LINE)) == {1: 0, 3: 2, 2: 100, 4: 150}


def test_long_job_does_not_overtake_when_it_would_delay_the_head() -> None:
    events = simulate([job(1, 3, run=100), job(2, 4, submit=1, run=50), job(3, 1, submit=2, run=99)])
    assert starts(events) == {1: 0, 2: 100, 3: 150}


def test_long_job_overtakes_when_the_head_leaves_extra_gpus() -> None:
    # At 100 all 4 GPUs are free and the head needs 3: one is extra, without a time limit.
    events = simulate([job(1, 2, run=100), job(2, 3, submit=1, run=50), job(3, 1, submit=2, run=1000)])
    assert starts(events) == {1: 0, 3: 2, 2: 100}


def test_extra_gpus_are_given_once_when_two_long_jobs_need_them() -> None:
    events = simulate(
        [job(1, 2, run=100), job(2, 3, submit=1, run=50), job(3, 1, submit=2, run=1000), job(4, 1, submit=2, run=1000)]
    )
    assert starts(events) == {1: 0, 3: 2, 2: 100, 4: 150}


def test_extra_nodes_rule_counts_whole_nodes_when_the_head_needs_several() -> None:
    jobs = [
        job(1, 4, nodes=2, run=100),
        job(2, 4, nodes=3, submit=1, run=50),  # needs 3 of the 4 nodes that are free at 100: one is extra
        job(3, 4, nodes=2, submit=2, run=1000),  # two would be one too many
        job(4, 4, nodes=1, submit=3, run=1000),
    ]
    assert starts(simulate(jobs, nodes=4)) == {1: 0, 4: 3, 2: 100, 3: 150}


def test_backfill_uses_another_node_when_the_best_fit_would_delay_the_head() -> None:
    # n0 and n1 have 1 free GPU each, n2 has 2. The head (4 GPUs on one node) is promised n0 at 100. Best fit would put the
    # long one-GPU job on n0 and delay the head; on n1 it delays no job.
    jobs = [
        job(1, 3, run=100),
        job(2, 3, run=500),
        job(3, 2, run=500),
        job(4, 4, submit=1, run=50),
        job(5, 1, submit=2, run=1000),
    ]
    events = simulate(jobs, nodes=3)
    placed = {event.job.id: event.grants[0].node for event in events if isinstance(event, JobStarted)}
    assert placed[1] == "n0"
    assert starts(events)[4] == 100
    assert starts(events)[5] == 2
    assert placed[5] == "n1"


def test_reservation_moves_forward_when_a_job_ends_before_its_limit() -> None:
    events = simulate([job(1, 3, run=20, limit=100), job(2, 4, submit=1), job(3, 1, submit=2, run=15, limit=60)])
    assert starts(events) == {1: 0, 3: 2, 2: 20}


def test_job_ends_as_timeout_when_it_runs_past_its_limit() -> None:
    assert endings(simulate([job(1, 1, run=100, limit=30)])) == {1: (30, JobEnding.TIMEOUT)}


def test_higher_priority_goes_first_when_both_wait() -> None:
    events = simulate([job(1, 4), job(2, 4, submit=1), job(3, 4, submit=2, priority=5)])
    assert starts(events) == {1: 0, 3: 10, 2: 20}


def test_job_enters_the_queue_late_when_it_becomes_eligible_late() -> None:
    events = simulate([job(1, 4, eligible=5), job(2, 4, submit=1)])
    assert starts(events) == {2: 1, 1: 11}


def test_job_leaves_the_queue_when_it_is_withdrawn_before_its_start() -> None:
    events = simulate([job(1, 4), job(2, 4, submit=1, withdraw=7), job(3, 4, submit=2, withdraw=90)])
    assert endings(events) == {1: (10, JobEnding.FINISHED), 2: (7, JobEnding.WITHDRAWN), 3: (20, JobEnding.FINISHED)}


def test_reasons_follow_the_queue_when_jobs_move_up() -> None:
    events = simulate([job(1, 4), job(2, 4, submit=1), job(3, 4, submit=2)])
    assert reasons(events, 1) == []
    assert reasons(events, 2) == [(1, Reason.RESOURCES)]
    assert reasons(events, 3) == [(2, Reason.PRIORITY), (10, Reason.RESOURCES)]


def test_user_limit_holds_a_job_back_without_blocking_others_when_reached() -> None:
    jobs = [job(1, 2, user="ada"), job(2, 1, submit=1, user="ada"), job(3, 2, submit=2, user="bob", run=50)]
    events = simulate(jobs, max_gpus_per_user=2)
    assert starts(events) == {1: 0, 3: 2, 2: 10}
    assert reasons(events, 2) == [(1, Reason.USER_LIMIT)]


def test_job_ends_when_its_node_fails() -> None:
    fault = NodeFault(node="n0", kind=FaultKind.FAIL, from_s=5, to_s=20)
    events = simulate([job(1, 4), job(2, 4, submit=1)], faults=[fault])
    assert endings(events)[1] == (5, JobEnding.NODE_FAILED)
    assert starts(events)[2] == 20
    assert [event for event in events if isinstance(event, NodeClosed | NodeOpened)] == [
        NodeClosed(5, "n0", FaultKind.FAIL),
        NodeOpened(20, "n0"),
    ]


def test_job_starts_again_in_its_old_place_when_it_is_requeued() -> None:
    fault = NodeFault(node="n0", kind=FaultKind.FAIL, from_s=5, to_s=20)
    events = simulate([job(1, 4, requeued=True), job(2, 4, submit=1)], faults=[fault])
    assert [(e.time_s, e.job.id) for e in events if isinstance(e, JobStarted)] == [(0, 1), (20, 1), (30, 2)]
    assert [(e.time_s, e.ending) for e in events if isinstance(e, JobEnded) and e.job.id == 1] == [
        (5, JobEnding.REQUEUED),
        (30, JobEnding.FINISHED),
    ]


def test_running_job_finishes_and_nothing_new_starts_when_its_node_drains() -> None:
    fault = NodeFault(node="n0", kind=FaultKind.DRAIN, from_s=5, to_s=40)
    events = simulate([job(1, 2), job(2, 2, submit=6)], faults=[fault])
    assert endings(events)[1] == (10, JobEnding.FINISHED)
    assert starts(events)[2] == 40


def test_node_stays_closed_when_two_faults_overlap() -> None:
    faults = [
        NodeFault(node="n0", kind=FaultKind.DRAIN, from_s=1, to_s=10),
        NodeFault(node="n0", kind=FaultKind.FAIL, from_s=5, to_s=30),
    ]
    assert starts(simulate([job(1, 1, submit=2)], faults=faults)) == {1: 30}


def test_backfill_continues_when_the_head_waits_for_a_node_that_never_returns() -> None:
    fault = NodeFault(node="n0", kind=FaultKind.FAIL, from_s=0)
    events = simulate([job(1, 4, nodes=2, submit=1), job(2, 4, submit=2, run=1000)], nodes=2, faults=[fault])
    assert starts(events) == {2: 2}


def test_gpu_indices_are_the_lowest_free_ones_when_granted() -> None:
    events = simulate([job(1, 1, run=5), job(2, 2, run=50), job(3, 2, submit=6)])
    grants = {event.job.id: event.grants for event in events if isinstance(event, JobStarted)}
    assert grants == {1: (Grant("n0", (0,)),), 2: (Grant("n0", (1, 2)),), 3: (Grant("n0", (0, 3)),)}


def test_adding_is_refused_when_a_job_can_never_run() -> None:
    with pytest.raises(ValueError, match="can never run"):
        simulate([job(1, 4, nodes=2)])


def test_adding_is_refused_when_it_lies_in_the_past() -> None:
    simulation = Simulation([SimNode("n0", "p", 4)], MostAllocated(), depth=0)
    simulation.add_jobs([job(1, 1)])
    simulation.run()
    with pytest.raises(ValueError, match="is past"):
        simulation.add_jobs([job(2, 1, submit=9)])


@pytest.mark.parametrize(("gpus", "nodes", "run"), [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_job_is_refused_when_a_size_is_zero(gpus: int, nodes: int, run: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        job(1, gpus, nodes=nodes, run=run)


def test_job_is_refused_when_it_is_eligible_before_it_is_submitted() -> None:
    with pytest.raises(ValueError, match="eligible before"):
        job(1, 1, submit=5, eligible=4)


def test_events_are_the_same_when_the_run_is_cut_in_pieces() -> None:
    pieces = Simulation([SimNode("n0", "p", 4)], MostAllocated())
    events: list[Event] = []
    for since_s, until_s in pairwise((0, 1, 3, 100, 101, 10_000)):
        pieces.add_jobs([job for job in HEAD_OF_LINE if since_s <= job.submit_s < until_s])
        events += pieces.run(until_s)
    assert events == simulate(HEAD_OF_LINE)
