"""Work in another process: results, progress, errors and stops come back; a process that is gone is replaced."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from servers.demo import wait_until

from clusterscape.errors import QueryError, StoppedError
from clusterscape.executors import Report
from clusterscape.runtime.worker_process import WorkerProcess


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


def ignore(_: float) -> None:
    pass


def has_ended(process: int) -> bool:
    """A zombie counts as ended: it stays in the process table until its parent waits for it."""
    return ") Z " in Path(f"/proc/{process}/stat").read_text()


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    worker = WorkerProcess()
    yield worker
    worker.close()


def test_result_and_progress_come_from_another_process_which_is_kept(worker: WorkerProcess) -> None:
    shares: list[float] = []
    total, process = worker.compute(add_up, Numbers([1, 2, 3, 4]), shares.append)
    assert total == 10
    assert process != os.getpid()
    assert shares == [0.25, 0.5, 0.75, 1.0]
    assert worker.compute(add_up, Numbers([]), ignore) == (0, process)


def test_refusal_keeps_its_message_and_hint(worker: WorkerProcess) -> None:
    with pytest.raises(QueryError, match="there is no node n9") as raised:
        worker.compute(refuse, None, ignore)
    assert raised.value.hint == "There are n1 and n2."


def test_unexpected_error_has_its_traceback_and_the_next_request_succeeds(worker: WorkerProcess) -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError: planted"):
        worker.compute(fail, None, ignore)
    assert worker.compute(add_up, Numbers([5]), ignore)[0] == 5


def test_missing_file_is_an_error_of_the_work_and_not_of_the_connection(worker: WorkerProcess) -> None:
    with pytest.raises(RuntimeError, match=r"FileNotFoundError.*/missing/planted"):
        worker.compute(read_missing_file, None, ignore)


def test_work_is_given_up_when_it_always_ends_its_process(worker: WorkerProcess) -> None:
    with pytest.raises(QueryError, match="ended with status 0"):
        worker.compute(exit_cleanly, None, ignore)


def test_process_that_was_killed_is_reported_and_replaced(worker: WorkerProcess) -> None:
    with pytest.raises(QueryError, match="ended with status -9"):
        worker.compute(end_itself, None, ignore)
    assert worker.compute(add_up, Numbers([5]), ignore)[0] == 5


def test_work_stops_when_its_report_says_so_and_the_process_goes_on(worker: WorkerProcess) -> None:
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
    worker = WorkerProcess(idle_s=1.0)
    try:
        total, process = worker.compute(add_up, Numbers([5]), ignore)
        wait_until(lambda: has_ended(process))
        total_again, other_process = worker.compute(add_up, Numbers([5]), ignore)
        assert total == total_again == 5
        assert other_process != process
    finally:
        worker.close()


def test_closing_ends_work_that_goes_on(worker: WorkerProcess) -> None:
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
