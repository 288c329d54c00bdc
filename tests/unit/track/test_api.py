"""``clusterscape.run()`` in a script: cheap, without side effects, and complete for any end of the script."""

import subprocess
import sys
from pathlib import Path

import pytest
from tracking.command import Command

from clusterscape.track.spool import RunClock
from clusterscape.track.spooled import read_run


def run_python(command: Command, code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=command.folder,
        env=command.environ,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_nothing_heavy_is_imported_when_a_script_asks_for_its_run(command: Command) -> None:
    code = (
        "import sys, clusterscape\nassert 'clusterscape.track' not in sys.modules\nclusterscape.run\n"
        "print(sorted({'numpy', 'polars', 'asyncio', 'pydantic', 'typer', 'dataclasses'} & set(sys.modules)))"
    )
    done = run_python(command, code)
    assert done.stdout.strip() == "[]", done.stderr


def test_own_run_begins_and_ends_when_nobody_tracks_the_script(command: Command) -> None:
    code = (
        "import clusterscape\n"
        "with clusterscape.run(name='alone', experiment='x') as run:\n"
        "    run.log({'loss': 2})\n"
        "    assert clusterscape.run() is run\n"
    )
    assert run_python(command, code).returncode == 0
    run = command.only_run()
    assert (run.state, run.about["name"], run.about["experiment"], run.samples) == ("completed", "alone", "x", 1)


def test_cause_is_reported_when_an_own_run_raises(command: Command) -> None:
    done = run_python(command, "import clusterscape\nwith clusterscape.run():\n    raise ValueError('wrong')\n")
    assert done.returncode == 1
    assert command.only_run().cause == "ValueError: wrong"


def test_both_processes_are_kept_when_a_script_forks(command: Command) -> None:
    code = (
        "import clusterscape, os\n"
        "run = clusterscape.run()\nrun.log({'a': 1.0})\npid = os.fork()\nrun.log({'b': 1.0})\n"
        "run.close()\nif pid: os.waitpid(pid, 0)\nelse: os._exit(0)\n"
    )
    done = run_python(command, code)
    assert done.returncode == 0, done.stderr
    run = command.only_run()
    assert {metric.name: metric.samples for metric in run.metrics} == {"a": 1, "b": 2}
    assert run.state == "completed"


@pytest.mark.parametrize("value", ["'0.5'", "None", "object()", "b'1'"])
def test_value_is_refused_when_it_is_no_number(command: Command, value: str) -> None:
    done = run_python(command, f"import clusterscape\nclusterscape.run().log({{'loss': {value}}})")
    assert "TypeError: metric 'loss' is" in done.stderr


def test_numbers_of_other_kinds_are_read_at_once_when_logged(command: Command) -> None:
    code = (
        "import clusterscape, numpy\n"
        "loss = numpy.array(0.5)\n"
        "run = clusterscape.run()\nrun.log({'loss': loss, 'flag': True, 'n': numpy.int64(3)}, step=1)\nloss += 1\nrun.close()\n"
    )
    done = run_python(command, code)
    assert done.returncode == 0, done.stderr
    assert {metric.name: metric.last for metric in command.only_run().metrics} == {"loss": 0.5, "flag": 1.0, "n": 3.0}


def test_time_never_goes_back_when_the_wall_clock_does(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = RunClock()
    first = clock.now_us()
    monkeypatch.setattr("time.time_ns", lambda: 0)
    assert clock.now_us() >= first
    assert RunClock(clock.anchor_ns).now_us() >= first


def test_run_is_found_torn_when_a_file_was_cut(tmp_path: Path, command: Command) -> None:
    assert run_python(command, "import clusterscape\nclusterscape.run().log({'a': 1.0})").returncode == 0
    (file,) = command.only_run().folder.glob("script-*.spool")
    file.write_bytes(file.read_bytes()[:-5])
    run = read_run(file.parent)
    assert run.is_torn
    assert run.about["name"]
