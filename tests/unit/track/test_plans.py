"""Plans: radT's CSV and TOML with sweeps; runs of a workload start together, a stopped plan resumes."""

import csv
import json
import signal
from pathlib import Path

import pytest
from tracking.command import Command, wait_for

from clusterscape.errors import ConfigError, StoreBusyError
from clusterscape.track.devices import check_devices, reserve
from clusterscape.track.plans.collocation import Collocation, collocate, parse_collocation
from clusterscape.track.plans.plan import read_params
from clusterscape.track.plans.radt_csv import read_csv_plan
from clusterscape.track.plans.toml_plan import read_toml_plan

# As in radT's examples, with devices that every machine has.
RADT = """\
Experiment,Workload,Status,Run,Devices,Collocation,    File,    Listeners,Params
         1,       1,      ,   ,    cpu,          -,train.py,smi+top,--batch-size 128
         1,       1,      ,   ,    cpu,          -,train.py,smi+top,--batch-size 256
         1,       2,      ,   ,    cpu,        mps,train.py,smi+top+dcgmi,batch-size=64
"""
TRAIN = """\
import os, pathlib, sys, time
size = sys.argv[sys.argv.index("--batch-size") + 1]
with open("started", "a") as file:
    file.write(f"{size} {time.time()}\\n")
if size == "256" and not os.path.exists("fixed"):
    sys.exit(3)
"""


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def started(command: Command) -> list[str]:
    return [line.split()[0] for line in (command.folder / "started").read_text().splitlines()]


def test_radt_plan_runs_as_it_is_and_resumes_what_failed_when_run_again(command: Command) -> None:
    plan = command.script("plan.csv", RADT)
    command.script("train.py", TRAIN)
    done = command("plan", "plan.csv")
    assert done.returncode == 1
    assert "2 finished, 1 failed, 0 stopped, 0 skipped" in done.stdout
    assert sorted(started(command)) == ["128", "256", "64"]
    assert [row["Status"] for row in rows(plan)] == ["FINISHED", "FAILED (exit code 3)", "FINISHED"]
    assert sorted(path.name for path in command.folder.iterdir()) == ["plan.csv", "started", "train.py"]
    runs = {run.run: run for run in command.runs()}
    assert [runs[row["Run"]].about["letter"] for row in rows(plan)] == ["cpu_A", "cpu_B", "cpu_mps"]
    first, second = (runs[row["Run"]] for row in rows(plan)[:2])
    assert abs(first.moments["running"] - second.moments["running"]) <= 100
    assert first.params == {"batch-size": "128"}
    command.script("fixed", "")
    done = command("plan", "plan.csv")
    assert done.returncode == 0, done.stderr
    assert "1 finished, 0 failed, 0 stopped, 2 skipped" in done.stdout
    assert started(command)[3:] == ["256"]
    assert [row["Status"] for row in rows(plan)] == ["FINISHED"] * 3


def test_plan_goes_on_where_it_was_when_it_is_killed_in_the_middle(command: Command) -> None:
    plan = command.script("plan.csv", RADT.replace("256", "1"))
    command.script("train.py", TRAIN + "if size == '64' and not os.path.exists('fixed'):\n    time.sleep(600)\n")
    with command.started("plan", "plan.csv") as tracker:
        wait_for(lambda: (command.folder / "started").exists() and "64" in started(command), "the second workload")
        tracker.send_signal(signal.SIGKILL)
        tracker.wait(60)
    assert [row["Status"] for row in rows(plan)] == ["FINISHED", "FINISHED", "RUNNING"]
    command.script("fixed", "")
    assert command("plan", "plan.csv").returncode == 0
    assert sorted(started(command)) == ["1", "128", "64", "64"]


def test_failures_are_retried_or_skipped_when_an_option_says_so(command: Command) -> None:
    plan = command.script("plan.csv", RADT)
    command.script("train.py", TRAIN)
    assert command("plan", "plan.csv", "--retries", "2", "--stop").returncode == 1
    assert sorted(started(command)) == ["128", "256", "256", "256"]
    assert rows(plan)[2]["Status"] == ""
    done = command("plan", "plan.csv", "--skip-failed", "--json")
    assert json.loads(done.stdout) == {"finished": 1, "failed": 0, "cancelled": 0, "skipped": 2}


def test_plan_is_printed_and_nothing_runs_when_it_is_a_dry_run(command: Command) -> None:
    plan = command.script("plan.csv", RADT)
    command.script("train.py", TRAIN)
    plan_json = json.loads(command("plan", "plan.csv", "--dry-run", "--json").stdout)
    assert [[run["letter"] for run in group] for group in plan_json["workloads"]] == [["cpu_A", "cpu_B"], ["cpu_mps"]]
    assert plan_json["workloads"][1][0]["arguments"] == ["--batch-size", "64"]
    assert "cpu_A: train.py --batch-size 128" in command("plan", "plan.csv", "--dry-run").stdout
    assert plan.read_text() == RADT
    assert command.runs() == []


def test_sweep_is_one_workload_for_each_combination_when_a_plan_is_toml(command: Command) -> None:
    command.script("train.py", "")
    path = command.script(
        "plan.toml",
        'experiment = "sizes"\nfile = "train.py"\ndevices = "cpu"\nlisteners = "none"\n'
        "[[workload]]\nname = 'pair'\n[[workload.run]]\nparams = { lr = 0.1 }\ncopies = 2\n"
        "[[sweep]]\ncopies = 2\nrepeat = 2\n[sweep.grid]\nlr = [1, 2]\nsize = [3]\n",
    )
    plan = read_toml_plan(path, command.state)
    assert [len(group) for group in plan.workloads()] == [2, 2, 2, 2, 2]
    assert [group[0].workload for group in plan.workloads()][1:] == [
        "sweep 1 lr=1 size=3",
        "sweep 1 lr=1 size=3 #2",
        "sweep 1 lr=2 size=3",
        "sweep 1 lr=2 size=3 #2",
    ]
    assert plan.runs[2].words == ("--lr", "1", "--size", "3")
    assert command("plan", "plan.toml").returncode == 0
    assert json.loads(command("plan", "plan.toml", "--json").stdout)["skipped"] == 10
    assert {run.state for run in command.runs()} == {"completed"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("Listeners", "Listners"), "unknown column `Listners`"),
        (("smi+top,--batch-size 128", "smi+nose,--batch-size 128"), "line 2: unknown listener `nose`"),
        (("cpu,          -", "7,          -"), "line 2: this machine has no GPU 7"),
        (("cpu,          -", "gpu,          -"), "line 2: unknown device `gpu`"),
        (("     mps,train.py", " 3g.20gb,train.py"), "line 4: a MIG instance (3g.20gb) needs its GPU named"),
        (("       -,train.py", " 3x,train.py"), "line 2: unknown collocation `3x`"),
        (("train.py", "gone.py"), "line 2: there is no script gone.py"),
        (("--batch-size 128", '"--batch-size 128'), "line 4: unexpected end of data"),
        (("--batch-size 128", "--batch 'x"), "line 2: params `--batch 'x`: No closing quotation"),
        (("--batch-size 128", "--sizes 1,2,3"), "line 2: 11 cells for 9 columns"),
        (("         1,       1,      ,   ,    cpu,          -", "1,1,,,cpu,mps"), "mixes collocations"),
    ],
)
def test_nothing_runs_and_the_line_is_reported_when_a_plan_is_wrong(
    command: Command, change: tuple[str, str], message: str
) -> None:
    command.script("plan.csv", RADT.replace(*change, 1))
    command.script("train.py", TRAIN)
    done = command("plan", "plan.csv")
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert not (command.folder / "started").exists()


@pytest.mark.parametrize("text", ["", "Experiment,Workload\n", "Experiment,Workload,File\n"])
def test_plan_is_refused_when_it_holds_no_run(command: Command, text: str) -> None:
    command.script("plan.csv", text)
    assert command("plan", "plan.csv").returncode == 2


def test_second_plan_waits_for_its_device_when_the_first_holds_it(tmp_path: Path) -> None:
    waits: list[str] = []
    with reserve(["cpu"], tmp_path, wait_s=0, on_wait=waits.append):
        with reserve(["0"], tmp_path, wait_s=0, on_wait=waits.append):
            pass
        with (
            pytest.raises(StoreBusyError, match="another plan uses device cpu"),
            reserve(["cpu"], tmp_path, wait_s=0, on_wait=waits.append),
        ):
            pass
    with reserve(["cpu"], tmp_path, wait_s=0, on_wait=waits.append):
        pass
    assert waits == []


def test_missing_gpus_are_named_when_a_machine_has_fewer() -> None:
    check_devices(["0", "1"], gpu_count=lambda: 2)
    with pytest.raises(ConfigError, match="no GPU 2: it has 2"):
        check_devices(["1", "2"], gpu_count=lambda: 2)


def test_mps_daemon_lives_as_long_as_the_workload_when_gpus_are_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The MPS control program is a fake that records its calls, because there is no GPU."""
    program = tmp_path / "nvidia-cuda-mps-control"
    program.write_text(
        '#!/bin/sh\n[ "$1" = -d ] || read -r line\necho "$1$line $CUDA_MPS_PIPE_DIRECTORY" >> "$CALLS"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    sharing = collocate("mps", ["0"], tmp_path / "state")
    pipe = sharing.__enter__()["CUDA_MPS_PIPE_DIRECTORY"]
    assert Path(pipe).is_dir()
    assert not sharing.__exit__(RuntimeError, RuntimeError(), None)
    assert (tmp_path / "calls").read_text().splitlines() == [f"-d {pipe}", f"quit {pipe}"]
    assert not Path(pipe).exists()
    assert parse_collocation("mps=30") == Collocation("mps", 30)


def test_params_are_words_and_names_when_written_either_way() -> None:
    assert read_params("batch-size=128 --fast --name='a b'") == (
        ["--batch-size", "128", "--fast", "--name=a b"],
        {"batch-size": "128", "fast": "true", "name": "a b"},
    )
    assert read_params({"lr": 0.1, "fast": True, "slow": False})[0] == ["--lr", "0.1", "--fast"]


def test_other_columns_stay_when_states_are_written(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    path = tmp_path / "plan.csv"
    path.write_text('Name,Experiment,Workload,File,Devices,Params\n"x, y",1,1,a.py,cpu,"--a ""b"""\n')
    plan = read_csv_plan(path)
    plan.book.write({plan.runs[0].key: ("FINISHED", "id")})
    assert rows(path)[0] == {
        "Name": "x, y", "Experiment": "1", "Workload": "1", "File": "a.py", "Devices": "cpu",
        "Params": '--a "b"', "Status": "FINISHED", "Run": "id",
    }  # fmt: skip
    assert read_csv_plan(path).book.status(plan.runs[0].key) == "FINISHED"
