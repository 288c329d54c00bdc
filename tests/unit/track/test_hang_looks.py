"""Which processes are ranks, what is observed of them and of their helpers, and when the watch shows a verdict."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from tracking.command import wait_for

from clusterscape.track import hang_watch
from clusterscape.track.hang_looks import ChosenProcesses, Looker, find_rank
from clusterscape.track.hang_watch import HangFinding, HangWatch, Rhythm
from clusterscape.track.process_states import observe_process
from clusterscape.track.processes import ProcessTree

WAIT = "import sys; print('ready', flush=True); sys.stdin.read()"
LAUNCH = (
    "import os, subprocess, sys\n"
    "rank = {'RANK': '0', 'LOCAL_RANK': '0', 'WORLD_SIZE': '2'}\n"
    f"subprocess.run([sys.executable, '-c', {WAIT!r}], env=os.environ | rank)\n"
)


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.communicate()  # closes standard input, so it ends


def start(
    script: str, started: list[subprocess.Popen[bytes]], environ: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | dict(environ or {}),
    )
    started.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def test_launcher_is_no_rank_when_srun_started_it(tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    """``srun torchrun``: the launcher has the variables of a task, and its rank has the same number."""
    task = {"MASTER_ADDR": "n1", "MASTER_PORT": "29500", "SLURM_LOCALID": "0", "SLURM_PROCID": "0", "SLURM_NTASKS": "2"}
    launcher = start(LAUNCH, started, task)
    looker = Looker(tmp_path, ProcessTree(launcher.pid), lambda: 0)
    looker.find_ranks()
    [(pid, rank)] = looker.ranks.items()
    assert (rank, pid != launcher.pid) == (0, True)
    assert looker.describe_ranks()["world_size"] == 2


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"RANK": "3", "WORLD_SIZE": "8"}, ("3", "8", True)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"}, ("1", "4", True)),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "4", "SLURM_LOCALID": "0", "MASTER_ADDR": "n1"}, ("1", "4", False)),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "4", "SLURM_LOCALID": "0"}, ("", "", False)),
    ],
)
def test_rank_is_found_when_a_launcher_set_it(environ: dict[str, str], expected: tuple[str, str, bool]) -> None:
    assert find_rank(environ) == expected


def test_helpers_and_their_counters_are_recorded_when_a_rank_is_looked_at(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    launcher = start(LAUNCH, started)
    looker = Looker(tmp_path, ChosenProcesses([launcher.pid]), lambda: 7)
    first, second = looker.look(1), looker.look(2)
    for look in (first, second, *looker.look_again()):
        [process] = json.loads((look / "processes.json").read_text())["processes"]
        [helper] = process["helpers"]
        assert (process["rank"], helper["state"] in "RS") == (0, True)
        assert min(process["io_bytes"], process["switches"], helper["cpu_ticks"]) >= 0


def test_call_and_file_are_known_when_a_process_reads_standard_input(started: list[subprocess.Popen[bytes]]) -> None:
    process = start(WAIT, started)
    wait_for(lambda: observe_process(process.pid)["state"] == "S", "the process to wait")
    if observe_process(process.pid)["waits_on"] is None:
        pytest.skip("this kernel does not show system calls, or not on this processor")
    assert observe_process(process.pid)["waits_on"] == "read standard input"


def test_first_pauses_do_not_count_as_long_when_the_run_has_settled() -> None:
    rhythm = Rhythm()
    for gap in (40.0, *[0.5] * 19):
        rhythm.add(gap)
    assert rhythm.tolerance_s == 60.0
    rhythm.add(0.5)
    assert rhythm.tolerance_s == hang_watch.LEAST_SILENCE_S


def finding(
    kind: str, rank: int = 1, *, is_hang: bool = True, is_settled: bool = True, is_doubtful: bool = False
) -> HangFinding:
    return HangFinding(
        {"kind": kind, "title": kind, "ranks": [rank]}, [kind], is_hang, is_settled=is_settled, is_doubtful=is_doubtful
    )


SLOW = finding("slow", is_hang=False)
DOUBT = finding("absent", is_hang=False, is_doubtful=True, is_settled=False)
PASSING = finding("absent", is_settled=False)


@pytest.mark.parametrize(
    ("verdicts", "shown"),
    [
        ([finding("dead")], ["dead"]),
        ([PASSING, PASSING], ["absent"]),
        ([PASSING, finding("absent", 0, is_settled=False), SLOW, PASSING, SLOW], []),
        ([SLOW, DOUBT, DOUBT], ["absent"]),
        ([DOUBT, SLOW, DOUBT, SLOW], []),
        ([DOUBT, DOUBT, finding("deadlock")], ["absent", "deadlock"]),
    ],
)
def test_verdict_is_shown_once_when_it_is_settled_or_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdicts: Sequence[HangFinding], shown: list[str]
) -> None:
    for name, value in {"POLL_S": 0.01, "LEAST_SILENCE_S": 0.05, "LEAST_APART_S": 0.01, "CONFIRM_S": 0.01,
                        "LEAST_DOUBTFUL_S": 0.0, "MOST_SILENT_STEPS_S": 0.05}.items():  # fmt: skip
        monkeypatch.setattr(hang_watch, name, value)
    left, is_asked_again = list(verdicts), threading.Event()
    titles: list[str] = []

    def judge(_: Sequence[Path]) -> HangFinding:
        if not left:
            is_asked_again.set()
            return SLOW
        return left.pop(0)

    def note(event: str, **fields: object) -> None:
        if event == "hang":
            titles.append(str(fields["title"]))

    watch = HangWatch(tmp_path, ProcessTree(os.getpid()), judge, note, lambda _: None, lambda: 0)
    for _ in range(30):
        watch._rhythm.add(0.01)
    watch.start()
    wait_for(lambda: is_asked_again.is_set() or bool(shown and titles == shown), "the verdicts")
    watch.stop()
    assert titles == shown
