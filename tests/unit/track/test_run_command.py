"""``clusterscape run`` with real scripts: they run unchanged, and every end is reported with its cause."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from servers.reliability import note
from tracking.command import Command, is_alive, wait_for

from clusterscape.track.spooled import ABANDONED, close_abandoned, read_run

LIGHT = ("-l", "none")


def test_script_runs_unchanged_when_it_is_tracked(command: Command) -> None:
    command.script(
        "model.py",
        "import os, sys\nprint(sys.argv, __name__, os.getcwd())\nprint('bad', file=sys.stderr)\nsys.exit(3)\n",
    )
    before = sorted(command.folder.iterdir())
    done = command("run", *LIGHT, "model.py", "--batch-size", "256", "-l", "x")
    assert done.returncode == 3
    assert done.stdout.strip() == f"{['model.py', '--batch-size', '256', '-l', 'x']} __main__ {command.folder}"
    assert done.stderr.splitlines()[0] == "bad"
    assert sorted(command.folder.iterdir()) == before
    run = command.only_run()
    assert (run.state, run.cause, run.about["exit_code"]) == ("failed", "exit code 3", 3)
    assert run.about["name"] == "model.py"


def test_four_times_are_separate_when_a_run_has_ended(command: Command) -> None:
    assert command("run", *LIGHT, "--", sys.executable, "-c", "import time; time.sleep(0.3)").returncode == 0
    times = command.only_run().times_s
    assert list(times) == ["queued", "barrier", "running", "flush"]
    assert all(seconds is not None and seconds >= 0 for seconds in times.values())
    assert times["running"] is not None
    assert times["running"] >= 0.3


@pytest.mark.parametrize(
    ("code", "state", "cause", "shell_code"),
    [
        ("raise ValueError('wrong size')", "failed", "ValueError: wrong size", 1),
        ("raise MemoryError('too much')", "out_of_memory", "MemoryError: too much", 1),
        ("import os; os._exit(7)", "failed", "exit code 7", 7),
        ("import os; os.kill(os.getpid(), 11)", "failed", "killed by signal SIGSEGV", 139),
        ("import os; os.kill(os.getpid(), 9)", "failed", "killed by signal SIGKILL", 137),
        ("pass", "completed", None, 0),
    ],
)
def test_end_is_reported_with_its_cause_when_a_script_ends(
    command: Command, code: str, state: str, cause: str | None, shell_code: int
) -> None:
    command.script("model.py", code)
    done = command("run", *LIGHT, "model.py")
    assert done.returncode == shell_code
    run = command.only_run()
    assert (run.state, run.cause) == (state, cause)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_process_tree_ends_when_the_tracker_gets_a_signal(command: Command, number: signal.Signals) -> None:
    # A child in a separate session still belongs to the run.
    command.script(
        "model.py",
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "open('pids', 'w').write(f'{os.getpid()} {child.pid} ')\n"
        "time.sleep(600)\n",
    )
    pids = command.folder / "pids"
    with command.started("run", *LIGHT, "model.py") as tracker:
        wait_for(lambda: pids.exists() and pids.read_text().endswith(" "), "the start of the script")
        script, child = map(int, pids.read_text().split())
        tracker.send_signal(number)
        assert tracker.wait(60) == 128 + number
    assert not is_alive(script)
    assert not is_alive(child)
    run = command.only_run()
    assert (run.state, run.about["exit_signal"]) == ("cancelled", number)


def test_run_is_closed_as_failed_when_its_script_is_killed(command: Command) -> None:
    command.script("model.py", "import os, time\nopen('pid', 'w').write(f'{os.getpid()} ')\ntime.sleep(600)\n")
    pid = command.folder / "pid"
    with command.started("run", *LIGHT, "model.py") as tracker:
        wait_for(lambda: pid.exists() and pid.read_text().endswith(" "), "the start of the script")
        os.kill(int(pid.read_text()), signal.SIGKILL)
        assert tracker.wait(60) == 137
    assert command.only_run().cause == "killed by signal SIGKILL"


def test_spool_stays_and_can_be_closed_when_the_tracker_is_killed(command: Command) -> None:
    command.script(
        "model.py",
        "import clusterscape, os, time\n"
        "run = clusterscape.run()\n"
        "for step in range(100): run.log({'loss': 1.0}, step=step)\n"
        "time.sleep(1)\n"
        "open('pid', 'w').write(f'{os.getpid()} ')\ntime.sleep(600)\n",
    )
    pid = command.folder / "pid"
    with command.started("run", "-l", "proc", "model.py") as tracker:
        wait_for(lambda: pid.exists() and pid.read_text().endswith(" "), "the start of the script")
        assert command.only_run().state == "running"
        tracker.kill()
        tracker.wait(60)
    wait_for(lambda: not is_alive(int(pid.read_text())), "the end of the script with its tracker")
    run = command.only_run()
    assert (run.state, run.cause) == ("failed", ABANDONED)
    assert {metric.name: metric.samples for metric in run.metrics}["loss"] == 100
    with (run.folder / "tracker.spool").open("ab") as file:
        file.write(b"CS\x02 torn")
    assert close_abandoned(run.folder)
    assert not close_abandoned(run.folder)
    closed = read_run(run.folder)
    assert (closed.state, closed.is_torn, closed.samples) == ("failed", True, run.samples)
    note(
        "fault",
        what="kill −9 of the process that tracks a run",
        promised="the script ends with it; what was logged stays and can be sent",
        measured="all 100 logged values there; the run is closed as failed",
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing.py"], "script missing.py not found"),
        (["--", "no-such-program"], "command no-such-program not found"),
        (["-l", "proc+nose", "model.py"], "unknown listener `nose`"),
        (["-l", "nvml=fast", "model.py"], "nvml=fast is not a rate"),
        (["-d", "gpu0", "model.py"], "unknown device `gpu0`"),
        (["plan.csv"], "plan.csv is a plan"),
        ([], "no script or command"),
    ],
)
def test_nothing_runs_and_the_reason_is_reported_when_the_arguments_are_wrong(
    command: Command, words: list[str], message: str
) -> None:
    command.script("model.py", "open('ran', 'w')")
    done = command("run", *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (command.folder / "ran").exists()
    assert command.runs() == []


def test_nothing_runs_when_the_state_folder_cannot_be_written(command: Command, tmp_path: Path) -> None:
    command.script("model.py", "open('ran', 'w')")
    (tmp_path / "file").write_text("")
    command.home = tmp_path / "file"
    done = command("run", "model.py")
    assert done.returncode != 0
    assert "cannot write to" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (command.folder / "ran").exists()


def test_environment_is_recorded_without_secrets_when_a_run_has_ended(command: Command) -> None:
    command.variables = {"MY_TOKEN": "hush", "DATABASE": "postgresql://me:hush@host/db", "SIZE": "3"}
    command.script("model.py", "")
    assert command("run", *LIGHT, "--record-env", "MY_*,DATABASE,SIZE", "model.py").returncode == 0
    environment = command.only_run().environment
    assert environment is not None
    assert "hush" not in json.dumps(environment)
    assert isinstance(environment["environ"], dict)
    assert environment["environ"]["SIZE"] == "3"
    assert isinstance(environment["packages"], dict)
    assert "pytest" in environment["packages"]


def test_runs_are_listed_and_shown_when_no_server_is_there(command: Command) -> None:
    command.script(
        "model.py",
        "import clusterscape\n"
        "with clusterscape.run() as run:\n"
        "    run.params({'lr': 0.1})\n"
        "    run.epoch(0)\n"
        "    with run.phase('validation'):\n"
        "        run.log({'loss': 0.5, 'odd': float('nan')}, step=1)\n",
    )
    assert command("run", "-e", "sizes", *LIGHT, "model.py").returncode == 0
    listed = json.loads(command("runs", "list", "--json").stdout)
    assert [(run["experiment"], run["state"], run["params"]) for run in listed] == [
        ("sizes", "completed", {"lr": "0.1"})
    ]
    shown = json.loads(command("runs", "show", listed[0]["run"][-6:], "--json").stdout)
    assert [mark["name"] for mark in shown["marks"]] == ["0", "validation", "validation"]
    assert {metric["name"]: metric["last"] for metric in shown["metrics"]} == {"loss": 0.5, "odd": None}
    assert "loss" in command("runs", "show", listed[0]["run"]).stdout
    assert command("runs", "show", "nope").returncode == 1


def test_state_folder_is_for_its_user_alone_when_a_run_is_tracked_under_an_open_umask(command: Command) -> None:
    old = command.state / "runs" / "20200101-000000-abcdef"
    old.mkdir(parents=True)
    for folder in (command.state, command.state / "runs", old):
        folder.chmod(0o777)  # as an older version left them
    done = subprocess.run(
        command.words("run", *LIGHT, "--", "sh", "-c", "umask"),
        cwd=command.folder,
        env=command.environ,
        umask=0,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "0000"  # the script's own umask is as it was
    assert command.state.stat().st_mode & 0o777 == 0o700
    new = next(path for path in (command.state / "runs").iterdir() if path != old)
    wide = [path for path in (new, *new.rglob("*")) if path.stat().st_mode & 0o077]
    assert [path.name for path in wide] == []
