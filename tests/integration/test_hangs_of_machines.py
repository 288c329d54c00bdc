"""Ranks of one job under two trackers that hang, as on two machines: their looks come together on a real server."""

from pathlib import Path

import pytest
from integration.test_runs_server import get, server
from servers.programs import free_port
from tracking.command import Command, wait_for

pytest.importorskip("torch")
pytestmark = pytest.mark.server

TRAIN = """\
import os, time
import torch
import torch.distributed as dist
import clusterscape
def load():
    time.sleep(600)
rank = int(os.environ["RANK"])
dist.init_process_group("gloo")
run = clusterscape.run()
for step in range(40):
    if step == 30 and rank == 1:
        load()
    dist.all_reduce(torch.ones(8))
    time.sleep(0.1)
    if rank == 0:
        run.log({"loss": 1.0}, step=step)
"""


def test_rank_of_the_other_machine_is_named_when_only_the_first_one_logs(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    meeting = free_port()
    commands = []
    for rank in range(2):
        variables = {"RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                     "MASTER_PORT": str(meeting), "OMP_NUM_THREADS": "1", "SLURM_JOB_ID": "4711"}  # fmt: skip
        commands.append(Command(folder=tmp_path / "code", home=tmp_path / f"home{rank}", variables=variables))
    commands[0].script("train.py", TRAIN)
    with server(tmp_path / "data", free_port()) as (url, _):

        def words(name: str) -> tuple[str, ...]:
            return ("run", "-l", "none", "--url", url, "-n", name, "train.py")

        with commands[0].started(*words("first")) as first, commands[1].started(*words("second")) as second:
            wait_for(
                lambda: any(not row["is_over"] and row["ranks"] == [1] for row in get(f"{url}/api/v1/hangs")["rows"]),
                "a verdict that names rank 1",
            )
            [row] = get(f"{url}/api/v1/hangs?workload=slurm:4711")["rows"]
            answer = get(f"{url}/api/v1/runs/{row['run']}/hang")
            for process in (first, second):
                process.kill()
                process.wait(60)
    verdict = answer["report"]["verdict"]
    assert (verdict["kind"], verdict["ranks"], verdict["world_size"]) == ("absent", [1], 2)
    assert verdict["place"].endswith("in load")
    assert len(answer["runs"]) == 2
    assert not answer["report"]["is_partial"]
    [states] = [row["state"] for row in answer["report"]["rows"]]
    assert [answer["report"]["states"][state] for state in states] == ["waiting", "absent"]
