"""The plan on a slide of radT's authors: three workloads, of which one shares a GPU by MIG. It is checked on a machine without
GPUs, where it cannot run, and then with the CPU in place of the GPUs, where it can.
"""

import csv
import json

from tracking.command import Command

from clusterscape.track.devices import count_gpus

SLIDE = """\
Experiment,Workload,Status,Run,Devices,Collocation,File,Listeners,Params
1,1,,,0,-,model.py,smi+top+dcgmi,batch-size=128
1,1,,,1,-,model.py,smi+top+dcgmi,batch-size=128
1,2,,,2,3g.20gb,model.py,smi+top+dcgmi,batch-size=128
1,2,,,2,3g.20gb,model.py,smi+top+dcgmi,batch-size=128
1,3,,,1,-,model.py,smi+top+dcgmi,batch-size=256
"""
MODEL = """\
import sys
assert sys.argv[1] == "--batch-size"
"""


def test_researcher_checks_the_plan_of_the_slide_on_a_login_node_and_runs_it_elsewhere(command: Command) -> None:
    plan = command.script("plan.csv", SLIDE)
    command.script("model.py", MODEL)

    # On a login node: what would run, on which GPUs, shared how; nothing is started or written.
    checked = command("plan", "plan.csv", "--dry-run")
    assert checked.returncode == 0, checked.stderr
    assert "2_B_3g.20gb: model.py --batch-size 128  (GPU 2, 3g.20gb)" in checked.stdout
    answer = json.loads(command("plan", "plan.csv", "--dry-run", "--json").stdout)
    assert [[run["letter"] for run in group] for group in answer["workloads"]] == [
        ["0", "1"],
        ["2_A_3g.20gb", "2_B_3g.20gb"],
        ["1"],
    ]
    assert answer["workloads"][2][0]["arguments"] == ["--batch-size", "256"]
    if count_gpus() == 0:
        assert answer["missing_devices"][0] == "plan.csv, line 2: this machine has no GPU 0: it has no NVIDIA GPU"
        assert "cannot be executed here" in checked.stderr
        refused = command("plan", "plan.csv", "--allow-mig")
        assert refused.returncode == 2
        assert "this machine has no GPU 0" in refused.stderr
    assert plan.read_text() == SLIDE
    assert command.runs() == []

    # Where it can run, the runs of a workload are together, and their states are written into the plan.
    lines = [line.replace(",0,-", ",cpu,-").replace(",1,-", ",cpu,-") for line in SLIDE.splitlines()]
    plan.write_text("\n".join(line for line in lines if "3g.20gb" not in line) + "\n")
    done = command("plan", "plan.csv", "--json")
    assert json.loads(done.stdout) == {"finished": 3, "failed": 0, "cancelled": 0, "skipped": 0}, done.stderr
    with plan.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["Status"] for row in rows] == ["FINISHED"] * 3
    runs = {run.run: run for run in command.runs()}
    assert [runs[row["Run"]].params for row in rows] == [{"batch-size": size} for size in ("128", "128", "256")]
