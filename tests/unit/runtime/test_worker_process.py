"""Work in another process: results, progress, errors and stops come back; a process that is gone is replaced."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from servers.demo import wait_until

from clusterscape.errors import QueryError, StoppedError, TooLargeError
from clusterscape.executors import Report
from clusterscape.runtime import worker_process
from clusterscape.runtime.worker_process import WorkerProcesses
from clusterscape.supervision import BackgroundLoops


@dataclass(frozen=True)
class Numbers:
    values: list[int]


def add_up(numbers: Numbers, report: Report) -> tuple[int, int]:
    """The sum, and the process that computed it."""
    for at in range(len(numbers.values)):
        report((at + 1) / len(numbers.values))
    return sum(numbers.values), os.getpid()


def refuse(_: None, __: Report) -> None:
    raise QueryError("there is no node n9", hint="There are n1 and n2.")


def fail(_: None, __: Report) -> None:
    raise ZeroDivisionError("planted")


def read_missing_file(_: None, __: Report) -> None:
    Path("/missing/planted").read_text()


def exit_cleanly(_: None, __: Report) -> None:
    os._exit(0)


def end_itself(_: None, __: Report) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def go_on_for_long(_: None, report: Report) -> None:
    while True:
        report(0.5)
        time.sleep(0.01)


def take_memory(_: None, __: Report) -> None:
    kept = bytearray(400 * 2**20)
    while kept:
        time.sleep(0.01)


def say_nothing(_: None, __: Report) -> None:
    while True:
        time.sleep(0.01)


def refuse_by_setting(_: None, __: Report) -> None:
    raise TooLargeError("the trace has 7 rows", setting="limits.uploads.job_trace_rows", hint="Split it.")


def meet(folder: Path, _: Report) -> None:
    """Ends when two processes compute this at once."""
    (folder / str(os.getpid())).touch()
    while len(list(folder.iterdir())) < 2:
        time.sleep(0.01)


def ignore(_: float) -> None:
    pass


def has_ended(process: int) -> bool:
    """A zombie counts as ended: it stays in the process table until its parent waits for it."""
    return ") Z " in Path(f"/proc/{process}/stat").read_text()


@pytest.fixture
def worker() -> Iterator[WorkerProcesses]:
    worker = WorkerProcesses()
    yield worker
    worker.close()


def test_result_and_progress_come_from_another_process_which_is_kept(worker: WorkerProcesses) -> None:
    shares: list[float] = []
    total, process = worker.compute(add_up, Numbers([1, 2, 3, 4]), shares.append)
    assert total == 10
    assert process != os.getpid()
    assert [share for share in dict.fromkeys(shares) if share] == [0.25, 0.5, 0.75, 1.0]
    assert worker.compute(add_up, Numbers([]), ignore) == (0, process)


def test_refusal_keeps_its_message_and_hint(worker: WorkerProcesses) -> None:
    with pytest.raises(QueryError, match="there is no node n9") as raised:
        worker.compute(refuse, None, ignore)
    assert raised.value.hint == "There are n1 and n2."


def test_unexpected_error_has_its_traceback_and_the_next_request_succeeds(worker: WorkerProcesses) -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError: planted"):
        worker.compute(fail, None, ignore)
    assert worker.compute(add_up, Numbers([5]), ignore)[0] == 5


def test_missing_file_is_an_error_of_the_work_and_not_of_the_connection(worker: WorkerProcesses) -> None:
    with pytest.raises(RuntimeError, match=r"FileNotFoundError.*/missing/planted"):
        worker.compute(read_missing_file, None, ignore)


def test_work_is_given_up_when_it_always_ends_its_process(worker: WorkerProcesses) -> None:
    with pytest.raises(QueryError, match="ended with status 0"):
        worker.compute(exit_cleanly, None, ignore)


def test_process_that_was_killed_is_reported_and_replaced(worker: WorkerProcesses) -> None:
    with pytest.raises(QueryError, match="ended with status -9"):
        worker.compute(end_itself, None, ignore)
    assert worker.compute(add_up, Numbers([5]), ignore)[0] == 5


def test_work_stops_when_its_report_says_so_and_the_process_goes_on(worker: WorkerProcesses) -> None:
    _, process = worker.compute(add_up, Numbers([]), ignore)

    def stop(_: float) -> None:
        raise StoppedError("not wanted any more")

    with pytest.raises(StoppedError, match="not wanted any more"):
        worker.compute(go_on_for_long, None, stop)
    # A stop that arrives after the last report is not taken for the next question.
    with pytest.raises(StoppedError):
        worker.compute(add_up, Numbers([1]), stop)
    assert worker.compute(add_up, Numbers([5]), ignore) == (5, process)


def test_process_is_started_again_when_it_ended_while_idle() -> None:
    worker = WorkerProcesses(idle_s=1.0)
    try:
        total, process = worker.compute(add_up, Numbers([5]), ignore)
        wait_until(lambda: has_ended(process))
        total_again, other_process = worker.compute(add_up, Numbers([5]), ignore)
        assert total == total_again == 5
        assert other_process != process
    finally:
        worker.close()


def test_refusal_keeps_its_kind_and_setting(worker: WorkerProcesses) -> None:
    with pytest.raises(TooLargeError) as raised:
        worker.compute(refuse_by_setting, None, ignore)
    assert (raised.value.setting, raised.value.advice) == ("limits.uploads.job_trace_rows", "Split it.")


def test_work_is_killed_and_the_next_succeeds_when_it_takes_too_much_memory() -> None:
    worker = WorkerProcesses(memory_bytes=300 * 2**20)
    try:
        with pytest.raises(TooLargeError, match=r"more than 0\.3 GiB") as raised:
            worker.compute(take_memory, None, ignore)
        assert raised.value.setting == "limits.work.process_memory_bytes"
        assert worker.compute(add_up, Numbers([5]), ignore)[0] == 5
    finally:
        worker.close()


def test_work_that_says_nothing_is_killed_when_it_is_stopped(
    worker: WorkerProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "ENDING_S", 0.1)

    def stop(_: float) -> None:
        raise StoppedError("not wanted any more")

    with pytest.raises(StoppedError, match="not wanted any more"):
        worker.compute(say_nothing, None, stop)
    assert worker.compute(add_up, Numbers([5]), ignore)[0] == 5


def test_process_that_died_while_idle_is_replaced_without_an_error(worker: WorkerProcesses) -> None:
    _, process = worker.compute(add_up, Numbers([]), ignore)
    os.kill(process, signal.SIGKILL)
    wait_until(lambda: has_ended(process))
    total, other_process = worker.compute(add_up, Numbers([5]), ignore)
    assert total == 5
    assert other_process != process


def test_process_that_ended_is_a_failing_loop_until_the_next_success() -> None:
    loops = BackgroundLoops()
    worker = WorkerProcesses(loops=loops)
    try:
        with pytest.raises(QueryError):
            worker.compute(end_itself, None, ignore)
        assert [(state.loop, state.failures) for state in loops.failing()] == [("computations", 1)]
        worker.compute(add_up, Numbers([5]), ignore)
        assert not loops.failing()
    finally:
        worker.close()


def test_two_computations_run_at_once_when_there_are_two_processes(tmp_path: Path) -> None:
    worker = WorkerProcesses(2)
    try:
        with ThreadPoolExecutor(2) as threads:
            for computing in [threads.submit(worker.compute, meet, tmp_path, ignore) for _ in range(2)]:
                computing.result(60)
    finally:
        worker.close()


def test_work_that_waits_for_a_process_leaves_the_queue_when_it_is_stopped(worker: WorkerProcesses) -> None:
    began, is_over = threading.Event(), threading.Event()

    def go_on(_: float) -> None:
        began.set()
        if is_over.is_set():
            raise StoppedError("over")

    def stop(_: float) -> None:
        raise StoppedError("not wanted any more")

    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(worker.compute, go_on_for_long, None, go_on)
        assert began.wait(60)
        with pytest.raises(StoppedError, match="not wanted any more"):
            worker.compute(add_up, Numbers([5]), stop)
        is_over.set()
        with pytest.raises(StoppedError, match="over"):
            first.result(60)
    assert worker.compute(add_up, Numbers([5]), ignore)[0] == 5


def test_closing_ends_work_that_goes_on(worker: WorkerProcesses) -> None:
    began = threading.Event()
    errors: list[Exception] = []

    def ask() -> None:
        try:
            worker.compute(go_on_for_long, None, lambda _: began.set())
        except QueryError as error:
            errors.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    assert began.wait(60)
    worker.close()
    asking.join(60)
    assert not asking.is_alive()
    assert len(errors) == 1
