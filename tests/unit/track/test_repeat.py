"""``clusterscape run --repeat``: the same command again, and what is not the same now."""

import json
import os
import subprocess

import pytest
from tracking.command import Command

from clusterscape.track.repeat import compare

LIGHT = ("-l", "none")


def git(command: Command, *words: str) -> None:
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    who = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    subprocess.run(["git", *who, *words], cwd=command.folder, check=True, capture_output=True, env=environ)


@pytest.fixture
def recorded(command: Command) -> Command:
    """A run in a repository, with a variable."""
    command.script(
        "model.py",
        "import clusterscape, sys\nprint(sys.argv[1:])\nwith clusterscape.run() as run: run.params({'lr': 1})\n",
    )
    git(command, "init", "-q")
    git(command, "add", "model.py")
    git(command, "commit", "-q", "-m", "first")
    command.variables = {"OMP_NUM_THREADS": "2", "MY_TOKEN": "hush"}
    done = command("run", "-e", "sizes", "-w", "one", "-d", "cpu", "-l", "proc", "model.py", "--size", "3")
    assert done.returncode == 0, done.stderr
    return command


def test_run_is_the_same_again_when_nothing_changed(recorded: Command) -> None:
    first = recorded.only_run()
    done = recorded("run", "--repeat", first.run)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['--size', '3']\n"
    assert "not the same" not in done.stderr
    again = recorded.runs()[1]
    for name in ("command", "cwd", "experiment", "workload", "devices", "listeners"):
        assert again.about[name] == first.about[name]
    assert again.params == first.params
    assert again.tags == {"repeats": first.run}


def test_differences_are_listed_when_the_surroundings_changed(recorded: Command) -> None:
    recorded.variables = {"OMP_NUM_THREADS": "4", "MY_TOKEN": "other", "NEW": "1"}
    done = recorded("run", "--repeat", recorded.only_run().run)
    assert done.returncode == 0, done.stderr
    assert "not the same: variable OMP_NUM_THREADS: 4; it was 2" in done.stderr
    assert "not the same: variable NEW: 1; it was not there" in done.stderr
    assert "MY_TOKEN" not in done.stderr


def test_repeat_is_refused_when_the_code_changed(recorded: Command) -> None:
    run = recorded.only_run().run
    recorded.script("model.py", "print('other')\n")
    done = recorded("run", "--repeat", run)
    assert done.returncode == 2
    assert "the code is not that of run" in done.stderr
    git(recorded, "commit", "-q", "-a", "-m", "second")
    done = recorded("run", "--repeat", run)
    assert done.returncode == 2
    assert "not the same: commit:" in done.stderr
    assert len(recorded.runs()) == 1
    assert recorded("run", *LIGHT, "--anyway", "--repeat", run).stdout == "other\n"


def test_reason_is_told_when_a_run_cannot_be_repeated(recorded: Command) -> None:
    assert "no run `nope`" in recorded("run", "--repeat", "nope").stderr
    assert "takes no script" in recorded("run", "--repeat", recorded.only_run().run, "model.py").stderr


def test_packages_and_driver_are_compared_when_they_were_recorded() -> None:
    then = {"packages": {"torch": "2.12"}, "driver": "580.1", "git": {"commit": "a", "diff": ""}}
    now = {"packages": {"torch": "2.13"}, "driver": "590.2", "git": None}
    found = compare(then, now)
    assert found.code == ["the folder is no git repository now; it was at commit a"]
    assert found.surroundings == ["package torch: 2.13; it was 2.12", "driver: 590.2; it was 580.1"]
    assert json.dumps(compare({}, {})) == "[[], []]"
