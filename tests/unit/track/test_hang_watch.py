"""A run that stops logging steps is looked at, and its verdict stored and shown; healthy runs are left alone."""

import time
from pathlib import Path

import pytest
from tracking.command import Command, wait_for

from clusterscape.model.run_events import HangEnded, HangFound, RunEventError, decode_run_event
from clusterscape.model.run_fold import FoldLimits, fold_event
from clusterscape.model.runs import decode_detail, encode, new_run
from clusterscape.track.hang_watch import LEAST_SILENCE_S, Rhythm
from clusterscape.track.places import runs_folder
from clusterscape.track.spooled import iter_events, list_runs, spool_files

STEPS = """\
import clusterscape, os, threading, time
run = clusterscape.run()
def wait_for_writer(lock):
    lock.acquire(timeout={pause})
def release():
    while not os.path.exists("go on"):
        time.sleep(0.1)
    lock.release()
lock = threading.Lock()
lock.acquire()
threading.Thread(target=release, daemon=True).start()
for step in range({steps}):
    if step == {at}:
        wait_for_writer(lock)
    time.sleep(0.3)
    run.log({{"loss": 1.0}}, step=step)
"""


def events(folder: Path) -> list[dict[str, object]]:
    """The events of a run's tracker."""
    return [event for file in spool_files(folder) for event in iter_events(file)]


def has_hung(command: Command) -> bool:
    """Whether a run was found to hang."""
    folders = list_runs(command.state) if runs_folder(command.state).is_dir() else []
    return any(event["event"] == "hang" for folder in folders for event in events(folder))


def test_verdict_is_stored_and_withdrawn_when_a_run_pauses_and_goes_on(command: Command) -> None:
    command.script("model.py", STEPS.format(steps=10, at=6, pause=600))
    with command.started("run", "-l", "none", "model.py") as tracker:
        wait_for(lambda: has_hung(command), "a verdict")
        (command.folder / "go on").touch()
        output, _ = tracker.communicate(timeout=120)
    assert tracker.returncode == 0
    assert "waits for a lock" in output
    assert "model.py:4 in wait_for_writer" in output
    assert "logs steps again" in output
    run = command.only_run()
    found = [event for event in events(run.folder) if event["event"] in ("hang", "hang_end")]
    assert [event["event"] for event in found] == ["hang", "hang_end"]
    assert (found[0]["kind"], found[0]["ranks"]) == ("deadlock", [0])
    assert not list((run.folder / "looks").glob("ask-*"))


def test_nothing_is_looked_at_when_a_run_goes_on_well(command: Command) -> None:
    command.script("model.py", STEPS.format(steps=12, at=-1, pause=0))
    done = command("run", "-l", "none", "model.py")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert not (command.only_run().folder / "looks").exists()


def test_process_has_no_handler_when_the_watch_is_off(command: Command) -> None:
    script = "print([line for line in open('/proc/self/status') if line.startswith('SigCgt')])"
    command.script("model.py", script)
    watched, unwatched = (
        command("run", "-l", "none", "model.py"),
        command("run", "-l", "none", "--no-hang-watch", "model.py"),
    )
    assert watched.stdout != unwatched.stdout


def test_script_is_not_ended_when_it_replaces_the_handler(command: Command) -> None:
    command.script(
        "model.py",
        "import signal\nsignal.signal(signal.SIGRTMAX - 9, signal.SIG_DFL)\n" + STEPS.format(steps=8, at=6, pause=7),
    )
    assert command("run", "-l", "none", "model.py").returncode == 0


def test_run_ends_at_once_when_it_is_stopped_during_a_hang(command: Command) -> None:
    command.script("model.py", STEPS.format(steps=24, at=8, pause=600))
    with command.started("run", "-l", "none", "model.py") as tracker:
        wait_for(lambda: has_hung(command), "a verdict")
        tracker.terminate()
        tracker.wait(60)
    assert command.only_run().state == "cancelled"


def test_tolerance_grows_when_pauses_were_longer() -> None:
    rhythm, tolerances = Rhythm(), []
    for gap in (0.5, 0.5, 0.5, 0.5, 60.0):
        rhythm.add(gap)
        tolerances.append(rhythm.tolerance_s)
    assert tolerances == [60.0, 60.0, 60.0, LEAST_SILENCE_S, 90.0]
    assert rhythm.usual_s == 0.5


def test_hangs_are_kept_with_the_run_when_their_events_arrive() -> None:
    run = new_run("20261115-130501-3f9a1c")
    at = int(time.time() * 1000)
    for number in range(30):
        fold_event(HangFound(at=at + number, kind="absent", title=f"Rank {number} sleeps"), run, FoldLimits())
    fold_event(HangEnded(at=at + 99), run, FoldLimits())
    hangs = run.detail.hangs
    assert (len(hangs), hangs[-1].title, hangs[-1].ended_at, hangs[0].ended_at) == (20, "Rank 29 sleeps", at + 99, None)
    detail, damage = decode_detail(encode(run.detail))
    assert (damage, detail.hangs) == (None, hangs)
    assert decode_detail("{}")[0].hangs == []


def test_event_is_refused_when_it_has_too_many_ranks() -> None:
    ranks = ",".join(["1"] * 1025)
    text = f'{{"event":"hang","at":1795037152112,"kind":"absent","title":"x","ranks":[{ranks}]}}'
    with pytest.raises(RunEventError, match="ranks"):
        decode_run_event(text.encode())
