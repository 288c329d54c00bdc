"""``srun clusterscape run -- torchrun …`` on two nodes of a real Slurm: a rank of the second node hangs."""

import json
import sys
from pathlib import Path

import pytest
from integration.test_runs_server import get, server
from servers.programs import free_port
from servers.slurm import SlurmServer, slurm_server
from servers.slurm_conf import NodeGroup
from tracking.command import wait_for

pytest.importorskip("torch")
pytestmark = pytest.mark.server
NODES = (NodeGroup(names=("node1", "node2"), gpu_type="a100", gpus=1, partitions=("all",), features="a100"),)
TRAIN = """\
import os, time
import torch
import torch.distributed as dist
import clusterscape
def load():
    time.sleep(600)
dist.init_process_group("gloo")
run = clusterscape.run()
for step in range(1000):
    if step == 20 and dist.get_rank() == 1:
        load()
    dist.all_reduce(torch.ones(8))
    time.sleep(0.1)
    if dist.get_rank() == 0:
        run.log({"loss": 1.0}, step=step)
"""


def submit(slurm: SlurmServer, folder: Path, url: str, port: int) -> int:
    """The job as users write it: Slurm starts a tracker and a launcher on each node, which starts the node's ranks."""
    environ = {
        "XDG_STATE_HOME": str(folder),
        "OMP_NUM_THREADS": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    torchrun = (
        f"{sys.executable} -m torch.distributed.run --nnodes 2 --nproc-per-node 1 --node-rank $SLURM_NODEID "
        f"--master-addr 127.0.0.1 --master-port {port} train.py"
    )
    script = folder / "job.sh"
    exports = "\n".join(f"export {name}={value}" for name, value in environ.items())
    tracked = f"{sys.executable} -m clusterscape.cli run -l none --url {url} -- sh -c '{torchrun}'"
    script.write_text(f"#!/bin/sh\n{exports}\ncd {folder}\nexec srun -N2 --ntasks-per-node=1 {tracked}\n")
    printed = slurm.command("sbatch", "--parsable", "-N2", "--ntasks-per-node=1", f"--output={folder}/out", str(script))
    return int(printed.strip().split(";")[0])


def test_rank_of_the_second_node_is_named_when_srun_started_the_launchers(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    tmp_path.chmod(0o755)
    with server(tmp_path / "data", free_port()) as (url, _), slurm_server(node_groups=NODES) as slurm:
        job = submit(slurm, tmp_path, url, free_port())
        rows = f"{url}/api/v1/hangs?workload=slurm:{job}"
        try:
            wait_for(lambda: any(row["ranks"] == [1] and row["is_sure"] for row in get(rows)["rows"]), "a verdict")
        except AssertionError:
            print((tmp_path / "out").read_text(errors="replace")[-3000:], json.dumps(get(rows)))
            raise
        [row] = get(rows)["rows"]
        answer = get(f"{url}/api/v1/runs/{row['run']}/hang")
    verdict = answer["report"]["verdict"]
    assert (verdict["kind"], verdict["ranks"], verdict["world_size"]) == ("absent", [1], 2)
    assert verdict["place"].endswith("in load")
    assert (len(answer["runs"]), answer["report"]["is_partial"]) == (2, False)
