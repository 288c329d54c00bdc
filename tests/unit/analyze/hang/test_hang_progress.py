"""Ranks that work are not called hung: a long checkpoint, evaluation, download or save; and blocked workers are named.

The situations were tried with real gloo ranks first; the numbers are as they were observed then.
"""

from dataclasses import replace

import pytest

from clusterscape.analyze.hang.verdict import judge_hang
from clusterscape.model.hangs import (
    CollectiveCall,
    GroupProgress,
    HangKind,
    HangLook,
    HangVerdict,
    HelperLook,
    ProcessLook,
    RankLook,
    StackFrame,
    ThreadStack,
)

BEGUN_MS = 1_795_120_000_000
APART_S = 5
INSIDE = (StackFrame("all_reduce", "/v/torch/distributed/distributed_c10d.py", 1), StackFrame("step", "/x/train.py", 9))
LOADER = (StackFrame("_try_get_data", "/v/torch/utils/data/dataloader.py", 1284), StackFrame("fit", "/x/train.py", 4))
WORKER = (
    StackFrame("read_remote", "/x/data.py", 22),
    StackFrame("fetch", "/v/torch/utils/data/_utils/fetch.py", 33),
    StackFrame("_worker_loop", "/v/torch/utils/data/_utils/worker.py", 349),
    StackFrame("fit", "/x/train.py", 4),
)


def at(function: str) -> tuple[StackFrame, ...]:
    """A stack in a function of the script."""
    return (StackFrame(function, "/x/train.py", 30), StackFrame("fit", "/x/train.py", 4))


def judge(
    first: tuple[tuple[StackFrame, ...], ProcessLook],
    second: tuple[tuple[StackFrame, ...], ProcessLook],
    *,
    does_other_wait: bool = True,
    waited_s: int = 10,
) -> HangVerdict:
    """The verdict on two looks at rank 1, for which rank 0 waits in a collective, or which is alone."""
    looks = []
    for number, (frames, process) in enumerate((first, second)):
        stacks = (ThreadStack(frames, is_main=True),)
        taken = BEGUN_MS + APART_S * 1000 * number
        if not does_other_wait:
            looks.append(HangLook({0: RankLook(0, stacks=stacks, process=process)}, taken_ms=taken))
            continue
        progress = {"0": GroupProgress(1, 1, (0, 1), "default_pg")}
        created_ns = (BEGUN_MS - 1000 * waited_s) * 1_000_000
        pending = CollectiveCall("0", 2, "all_reduce", created_ns=created_ns)
        waiting = RankLook(
            0,
            backend="gloo",
            groups={"0": GroupProgress(2, 1, (0, 1), "default_pg")},
            calls=(pending,),
            stacks=(ThreadStack(INSIDE, is_main=True),),
            process=ProcessLook(1, "S", "futex_do_wait", 10),
            has_recorder=True,
        )
        late = RankLook(1, groups=progress, stacks=stacks, process=process, has_recorder=True)
        looks.append(HangLook({0: waiting, 1: late}, world_size=2, taken_ms=taken))
    return judge_hang(looks)


SLEEPS = ProcessLook(2, "S", "hrtimer_nanosleep", 100, io_bytes=10**6, switches=40, wanted_ms=900.0)
LOCKED = replace(SLEEPS, wait_channel="futex_do_wait")
RUNS = replace(SLEEPS, state="R", wait_channel="0")
READS = replace(SLEEPS, wait_channel="anon_pipe_read", waits_on="read a socket")


@pytest.mark.parametrize(
    ("frames", "now", "before", "text"),
    [
        (at("save"), replace(SLEEPS, io_bytes=40 * 10**6), SLEEPS, "MB"),
        (at("download"), replace(READS, switches=300), READS, "wakes"),
        (
            LOADER,
            replace(LOCKED, helpers=(HelperLook(9, "pt_data_worker", replace(RUNS, wanted_ms=5400.0)),)),
            replace(LOCKED, helpers=(HelperLook(9, "pt_data_worker", RUNS),)),
            "process 9 (pt_data_worker) uses or waits for 0.9 cores",
        ),
    ],
)
def test_run_is_only_slow_when_the_late_rank_or_its_helper_advances(
    frames: tuple[StackFrame, ...], now: ProcessLook, before: ProcessLook, text: str
) -> None:
    verdict = judge((frames, before), (frames, now))
    assert (verdict.kind, verdict.ranks, verdict.is_hang) == (HangKind.SLOW, (1,), False)
    assert text in " ".join(verdict.evidence)
    assert judge((frames, before), (frames, before)).kind is not HangKind.SLOW


def test_rank_that_computes_may_only_be_slow_until_it_is_later_than_collectives_may_be() -> None:
    busy = replace(RUNS, cpu_ticks=600)
    verdict = judge((at("evaluate"), RUNS), (at("evaluate"), busy))
    assert (verdict.kind, verdict.ranks, verdict.is_hang, verdict.is_doubtful) == (HangKind.ABSENT, (1,), False, True)
    assert "may only be slow" in verdict.title
    assert judge((at("evaluate"), RUNS), (at("evaluate"), busy), waited_s=900).is_hang
    varied = judge((at("evaluate"), RUNS), (at("forward"), busy))
    assert varied.kind is HangKind.SLOW


def test_rank_computes_when_other_work_leaves_it_little_of_the_cores() -> None:
    verdict = judge((at("evaluate"), RUNS), (at("evaluate"), replace(RUNS, cpu_ticks=102, wanted_ms=5500.0)))
    assert (verdict.kind, verdict.is_doubtful) == (HangKind.ABSENT, True)


@pytest.mark.parametrize("process", [SLEEPS, replace(READS, waits_on="read standard input"), READS])
def test_nothing_hangs_when_one_process_sleeps_or_waits_for_its_user(process: ProcessLook) -> None:
    verdict = judge((at("main"), process), (at("main"), process), does_other_wait=False)
    assert (verdict.kind, verdict.is_hang, verdict.is_doubtful) == (HangKind.UNKNOWN, False, False)


def test_one_process_hangs_when_it_waits_for_a_lock_and_none_of_its_threads_is_in_the_network() -> None:
    alone = judge((at("write"), LOCKED), (at("write"), LOCKED), does_other_wait=False)
    assert (alone.kind, alone.is_hang, alone.is_settled) == (HangKind.DEADLOCK, True, False)
    receiving = replace(LOCKED, is_thread_in_socket=True)
    assert not judge((at("join"), receiving), (at("join"), receiving), does_other_wait=False).is_hang
    upload = ThreadStack((StackFrame("readinto", "/usr/lib/python3.11/socket.py", 706),), name="upload")
    look = HangLook(
        {0: RankLook(0, stacks=(ThreadStack(at("write"), is_main=True), upload), process=LOCKED)}, taken_ms=BEGUN_MS
    )
    assert not judge_hang([look, replace(look, taken_ms=BEGUN_MS + 5000)]).is_hang


def test_run_that_saves_its_model_is_no_hang_when_other_ranks_have_ended() -> None:
    def look(io_bytes: int, taken_ms: int) -> HangLook:
        saving = RankLook(
            0, stacks=(ThreadStack(at("save"), is_main=True),), process=replace(SLEEPS, io_bytes=io_bytes)
        )
        return HangLook({0: saving, 1: RankLook(1, process=ProcessLook(3, "X"))}, world_size=2, taken_ms=taken_ms)

    verdict = judge_hang([look(0, BEGUN_MS), look(10**8, BEGUN_MS + 5000)])
    assert (verdict.kind, verdict.ranks) == (HangKind.SLOW, (0,))


@pytest.mark.parametrize(
    ("worker", "kind", "phrase"),
    [
        (replace(SLEEPS, state="T", wait_channel="do_signal_stop"), HangKind.ABSENT, "is stopped"),
        (replace(SLEEPS, state="D", wait_channel="rpc_wait_bit_killable"), HangKind.STORAGE, "file system"),
        (LOCKED, HangKind.DEADLOCK, "waits for a lock"),
        (ProcessLook(9, "Z"), HangKind.ABSENT, "has ended"),
    ],
)
def test_worker_and_its_line_are_named_when_a_data_loader_is_blocked(
    worker: ProcessLook, kind: HangKind, phrase: str
) -> None:
    frames = WORKER if worker.state != "Z" else ()
    process = replace(SLEEPS, wait_channel="poll_schedule_timeout", helpers=(HelperLook(9, "python", worker, frames),))
    verdict = judge((LOADER, process), (LOADER, process))
    assert (verdict.kind, verdict.ranks, verdict.is_hang) == (kind, (1,), True)
    assert "data loader: its process 9" in verdict.title
    assert phrase in verdict.title
    assert verdict.place == ("data.py:22 in read_remote" if frames else "train.py:4 in fit")


def test_idle_worker_is_not_blamed_when_it_waits_for_its_next_task() -> None:
    frames = (StackFrame("get", "/usr/lib/python3.11/multiprocessing/queues.py", 103), *WORKER[1:])
    process = replace(SLEEPS, wait_channel="poll_schedule_timeout", helpers=(HelperLook(9, "python", LOCKED, frames),))
    verdict = judge((LOADER, process), (LOADER, process))
    assert (verdict.kind, verdict.title) == (HangKind.ABSENT, "Rank 1 waits for its data loader")
