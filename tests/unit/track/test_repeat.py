"""``clusterscape run --repeat``: the same command again, and a list of differences."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tracking.command import Command

from clusterscape.errors import ConfigError
from clusterscape.track.repeat import RecordedRun, compare, request_of

LIGHT = ("-l", "none")


def git(command: Command, *words: str) -> None:
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    author = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    subprocess.run(["git", *author, *words], cwd=command.folder, check=True, capture_output=True, env=environ)


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
    recorded.variables = {"OMP_NUM_THREADS": "4", "MY_TOKEN": "other", "NCCL_NEW": "1", "NEITHER": "1"}
    done = recorded("run", "--repeat", recorded.only_run().run)
    assert done.returncode == 0, done.stderr
    assert "changed: variable OMP_NUM_THREADS: 4; it was 2" in done.stderr
    assert "changed: variable NCCL_NEW: 1; it was not there" in done.stderr
    assert "MY_TOKEN" not in done.stderr
    assert "NEITHER" not in done.stderr


def test_only_recorded_variables_are_compared_when_a_run_recorded_others(command: Command) -> None:
    command.script("model.py", "")
    command.variables = {"MY_SIZE": "3", "MY_TOKEN": "hush-hush-7", "OMP_NUM_THREADS": "2"}
    assert command("run", *LIGHT, "--record-env", "none,MY_*", "model.py").returncode == 0
    command.variables = {"MY_SIZE": "4", "OMP_NUM_THREADS": "5"}
    done = command("run", "--repeat", command.only_run().run)
    assert done.returncode == 0, done.stderr
    assert "changed: variable MY_SIZE: 4; it was 3" in done.stderr
    assert "changed: variable MY_TOKEN: not set; its value was masked" in done.stderr
    assert "OMP_NUM_THREADS" not in done.stderr


def test_masked_words_are_filled_from_variables_when_a_run_is_repeated(command: Command) -> None:
    command.script("model.py", "import sys\nprint(sys.argv[1:])\n")
    words = ("model.py", "--api-key", "first-Key-77", "--note=password='second-Key-88'")
    assert command("run", *LIGHT, *words).stdout == f"{list(words[1:])}\n"
    run = command.only_run().run
    refused = command("run", "--repeat", run)
    assert refused.returncode == 2
    assert "masked values in the command: 2, given with --fill: 0" in refused.stderr
    assert "--fill NAME" in refused.stderr
    command.variables = {"FIRST": "first-Key-77", "SECOND": "second-Key-88"}
    assert "variable THIRD is not set" in command("run", "--fill", "THIRD", "--repeat", run).stderr
    done = command("run", "--fill", "FIRST", "--fill", "SECOND", "--repeat", run)
    assert (done.returncode, done.stdout) == (0, f"{list(words[1:])}\n"), done.stderr
    assert [recorded.about["command"] for recorded in command.runs()].count(command.runs()[0].about["command"]) == 2


def test_code_is_the_same_when_an_earlier_version_recorded_the_diff_unmasked() -> None:
    then = {"git": {"commit": "a", "diff": "diff --git a/.env b/.env\n+HF_TOKEN=Tr0ub4dor-x9\n"}}
    now = {"git": {"commit": "a", "diff": "diff --git a/.env b/.env\n+HF_TOKEN=(masked)\n"}}
    assert compare(then, now).code == []
    assert compare(now, now).surroundings == ["uncommitted changes hold masked values, which were not compared"]


def test_repeat_is_refused_when_the_code_changed(recorded: Command) -> None:
    run = recorded.only_run().run
    recorded.script("model.py", "print('other')\n")
    done = recorded("run", "--repeat", run)
    assert done.returncode == 2
    assert "the code has changed since run" in done.stderr
    git(recorded, "commit", "-q", "-a", "-m", "second")
    done = recorded("run", "--repeat", run)
    assert done.returncode == 2
    assert "changed: commit:" in done.stderr
    assert len(recorded.runs()) == 1
    assert recorded("run", *LIGHT, "--anyway", "--repeat", run).stdout == "other\n"


def test_reason_is_reported_when_a_run_cannot_be_repeated(recorded: Command) -> None:
    assert "no run `nope`" in recorded("run", "--repeat", "nope").stderr
    assert "takes no script" in recorded("run", "--repeat", recorded.only_run().run, "model.py").stderr


def test_packages_and_driver_are_compared_when_they_were_recorded() -> None:
    then = {"packages": {"torch": "2.12"}, "driver": "580.1", "git": {"commit": "a", "diff": ""}}
    now = {"packages": {"torch": "2.13"}, "driver": "590.2", "git": None}
    differences = compare(then, now)
    assert differences.code == ["the folder is not a git repository now; it was at commit a"]
    assert differences.surroundings == ["package torch: 2.13; it was 2.12", "driver: 590.2; it was 580.1"]
    assert json.dumps(compare({}, {})) == "[[], []]"


PAIR = """\
Experiment,Workload,Devices,Collocation,File,Listeners,Params
1,pair,cpu,-,model.py,none,size=1
1,pair,cpu,-,model.py,none,size=2
1,other,cpu,-,model.py,none,size=3
"""


def test_runs_execute_together_again_when_they_did_in_a_plan(command: Command) -> None:
    command.script("model.py", "import sys\nprint(sys.argv[1:])\n")
    command.script("plan.csv", PAIR)
    assert command("plan", "plan.csv").returncode == 0
    first, second, _ = command.runs()
    done = command("run", "--repeat", second.run)
    assert done.returncode == 0, done.stderr
    assert "repeating 2 runs that ran together" in done.stderr
    again = command.runs()[3:]
    assert [run.params for run in again] == [{"size": "1"}, {"size": "2"}]
    assert [run.tags for run in again] == [{"repeats": first.run}, {"repeats": second.run}]
    assert [run.about["letter"] for run in again] == ["cpu_A", "cpu_B"]
    assert len({run.about["queued_at"] for run in again}) == 1
    assert (again[1].folder / "output.log").read_text() == "['--size', '2']\n"
    done = command("run", "--alone", "--repeat", second.run)
    assert (done.returncode, done.stdout) == (0, "['--size', '2']\n"), done.stderr
    alone = command.runs()[-1]
    assert (alone.about["workload"], alone.about["collocation"]) == (None, None)


def test_run_is_repeated_elsewhere_when_its_folder_is_gone(recorded: Command, tmp_path: Path) -> None:
    run = recorded.only_run().run
    recorded.folder = recorded.folder.rename(tmp_path / "moved")
    done = recorded("run", "--repeat", run)
    assert "the folder of run" in done.stderr
    assert "--cwd" in done.stderr
    done = recorded("run", "--cwd", ".", "--repeat", run)
    assert (done.returncode, done.stdout) == (0, "['--size', '3']\n"), done.stderr


def test_local_interpreter_is_used_when_the_recorded_one_does_not_exist(tmp_path: Path) -> None:
    about = {"command": ["/elsewhere/bin/python3.9", "model.py"], "cwd": str(tmp_path), "devices": ["cpu"]}
    run = RecordedRun("r", about, {}, {})
    assert request_of(run, python="/here/python").words == ["/here/python", "model.py"]
    with pytest.raises(ConfigError, match="there is no program /elsewhere/train"):
        request_of(run._replace(about=about | {"command": ["/elsewhere/train"]}), python="/here/python")
    with pytest.raises(ConfigError, match="does not say what it ran"):
        request_of(run._replace(about={}))


def test_command_starts_with_the_profiler_when_it_is_requested(command: Command, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "nsys").write_text(
        '#!/bin/sh\necho "$@" > seen\nwhile [ "${1#-}" != "$1" -o "$1" = profile ]; do shift; done\nexec "$@"\n'
    )
    (programs / "nsys").chmod(0o755)
    command.script("model.py", "import sys\nsys.exit(3)\n")
    done = command("run", *LIGHT, "--profile", "ncu", "model.py")
    assert (done.returncode, "ncu is not installed" in done.stderr) == (2, True)
    command.variables = {"PATH": f"{programs}:{os.environ['PATH']}"}
    assert command("run", *LIGHT, "--profile", "nsys", "model.py").returncode == 3
    run = command.only_run()
    assert run.about["profiler"] == "nsys"
    assert f"--output={run.folder}/profile" in (command.folder / "seen").read_text()
    assert str(run.about["command"]).endswith("'model.py']")
