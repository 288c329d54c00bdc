"""Slips of promises sum to start − first promise for any events in the queue."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from clusterscape.query.scheduling.live_queue import Holding, LiveQueue, QueueJob, QueueNode
from clusterscape.query.scheduling.promises import SlipCause
from clusterscape.query.scheduling.queue_plan import plan_queue
from clusterscape.services.promises import PromiseBook

HOUR = 3600


def node(name: str, gpus: int = 8, *, partition: str = "main", is_open: bool = True) -> QueueNode:
    return QueueNode(name, gpus, "A100", (partition,), is_open)


def job(name: str, *, gpus: int = 8, nodes: int = 1, limit_s: int = HOUR, priority: int = 0, at: int = 0) -> QueueJob:
    return QueueJob(name, "main", "A100", nodes, gpus, limit_s, priority, at, True)


def queue(now_s: int, held: list[Holding], waiting: list[QueueJob], nodes: int = 2) -> LiveQueue:
    names = {f"n{i}": node(f"n{i}") for i in range(nodes)}
    return LiveQueue(now_s, names, tuple(held), (), {"main": None}).with_jobs(waiting)


def test_plan_waits_for_the_limit_of_the_holder_when_all_is_held() -> None:
    held = [Holding("a", "n0", 8, 5 * HOUR), Holding("b", "n1", 8, 2 * HOUR)]
    starts, _ = plan_queue(queue(0, held, [job("x"), job("y", at=1), job("z", nodes=2, at=2)]))
    assert starts == {"x": 2 * HOUR, "y": 3 * HOUR, "z": 5 * HOUR}


def test_short_job_fills_the_gap_before_a_gang_when_it_delays_nobody() -> None:
    held = [Holding("a", "n0", 8, 5 * HOUR)]
    starts, _ = plan_queue(
        queue(0, held, [job("gang", nodes=2), job("short", at=1), job("long", limit_s=9 * HOUR, at=2)])
    )
    assert starts == {"gang": 5 * HOUR, "short": 0, "long": 6 * HOUR}


def test_slip_is_attributed_to_the_arrival_when_it_has_higher_priority() -> None:
    held = [Holding("a", "n0", 8, HOUR), Holding("b", "n1", 8, 9 * HOUR)]
    book = PromiseBook()
    book.update(queue(0, held, [job("mine")]), {})
    book.update(queue(60, held, [job("mine"), job("vip", priority=9, at=30), job("late", at=40)]), {})
    ledger = book.open["mine"]
    assert (ledger.first_s, ledger.last_s) == (HOUR, 2 * HOUR)
    assert [(slip.cause, slip.change_s, slip.by) for slip in ledger.slips] == [(SlipCause.ARRIVED, HOUR, ("vip",))]


def test_gain_is_attributed_to_the_end_when_a_holder_ends_early() -> None:
    book = PromiseBook()
    book.update(queue(0, [Holding("a", "n0", 8, HOUR), Holding("b", "n1", 8, 9 * HOUR)], [job("mine")]), {})
    book.update(queue(60, [Holding("b", "n1", 8, 9 * HOUR)], [job("mine")]), {})
    closed = book.update(
        queue(90, [Holding("b", "n1", 8, 9 * HOUR), Holding("mine", "n0", 8, 90 + HOUR)], []), {"mine": 75}
    )
    assert [slip.cause for slip in closed[0].slips] == [SlipCause.ENDED, SlipCause.OWN_START]
    assert closed[0].slipped_s == 75 - HOUR


def test_slip_is_attributed_to_the_node_when_it_is_lost() -> None:
    book = PromiseBook()
    before = queue(0, [Holding("a", "n0", 8, HOUR), Holding("b", "n1", 8, 9 * HOUR)], [job("mine")])
    book.update(before, {})
    lost = replace(before, now_s=10, nodes={**before.nodes, "n0": node("n0", is_open=False)})
    book.update(lost, {})
    assert [(slip.cause, slip.change_s, slip.by) for slip in book.open["mine"].slips] == [
        (SlipCause.NODES_CHANGED, 8 * HOUR, ("n0",))
    ]


def test_schedulers_expected_start_is_used_when_it_gives_one() -> None:
    held = [Holding("a", "n0", 8, 9 * HOUR), Holding("b", "n1", 8, 9 * HOUR)]
    book = PromiseBook()
    book.update(queue(0, held, [replace(job("mine"), expected_s=500)]), {})
    book.update(queue(10, held, [replace(job("mine"), expected_s=900)]), {})
    assert book.open["mine"].slipped_s == 400
    assert [slip.cause for slip in book.open["mine"].slips] == [SlipCause.SCHEDULER]


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[LiveQueue, dict[str, int]]]:
    """States of a cluster where jobs arrive, start, end, leave, change, and nodes come and go at random."""
    names = [f"j{i}" for i in range(6)]
    moments, now, started = [], 0, {}
    for _ in range(draw(st.integers(2, 6))):
        now += draw(st.integers(1, 2 * HOUR))
        nodes = {f"n{i}": node(f"n{i}", is_open=draw(st.booleans()) or i == 0) for i in range(3)}
        nodes["m0"] = node("m0", partition="other", is_open=draw(st.booleans()))
        held, waiting = [], []
        for name in names:
            state = draw(st.sampled_from(["waits", "runs", "gone"])) if name not in started else "gone"
            if state == "waits":
                new_job = job(name, gpus=draw(st.sampled_from([1, 4, 8])), nodes=draw(st.integers(1, 2)))
                new_job = replace(new_job, priority=draw(st.integers(0, 2)), is_planned=draw(st.booleans()))
                new_job = replace(new_job, partition=draw(st.sampled_from(["main", "other"])))
                expected = draw(st.none() | st.integers(now, now + HOUR))
                waiting.append(replace(new_job, limit_s=draw(st.integers(60, HOUR)), expected_s=expected))
            elif state == "runs":
                started[name] = now - draw(st.integers(0, 30))
                where = draw(st.sampled_from(["n0", "m0"]))
                held.append(Holding(name, where, 1, now + draw(st.integers(1, HOUR))))
        limits = {"main": None, "other": None}
        moments.append((LiveQueue(now, nodes, tuple(held), (), limits).with_jobs(waiting), dict(started)))
    return moments


@settings(max_examples=60, deadline=None)
@given(histories())
def test_slips_sum_to_start_less_first_promise_when_anything_happens(
    moments: list[tuple[LiveQueue, dict[str, int]]],
) -> None:
    book = PromiseBook()
    for moment, started in moments:
        for ledger in book.update(moment, started):
            end = ledger.last_s if ledger.started_s is None else ledger.started_s
            assert ledger.slipped_s == end - ledger.first_s
        for ledger in book.open.values():
            assert ledger.slipped_s == ledger.last_s - ledger.first_s


@settings(max_examples=60, deadline=None)
@given(histories())
def test_plan_of_the_last_step_is_the_plan_of_the_moment_when_nothing_is_out_of_room(
    moments: list[tuple[LiveQueue, dict[str, int]]],
) -> None:
    book = PromiseBook()
    for moment, started in moments:
        book.update(moment, started)
        fresh, _ = plan_queue(moment)
        assert {name: book.starts_s[name] for name in fresh} == fresh
