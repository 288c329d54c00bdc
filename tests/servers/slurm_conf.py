"""Writes the configuration of the Slurm that tests start. What runs with it is in ``servers.slurm``."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """Nodes alike, and the partitions that hold them."""

    names: tuple[str, ...]
    gpu_type: str
    gpus: int
    partitions: tuple[str, ...]
    features: str
    shards: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Where each daemon listens on loopback."""

    controller: int
    accounting: int
    database: int
    rest: int
    nodes: Mapping[str, int]


def write_slurm_conf(
    folder: Path,
    groups: Sequence[NodeGroup],
    ports: Ports,
    *,
    accounting: bool,
    jwt: bool,
    options: Sequence[str] = (),
    is_newer: bool = False,
) -> None:
    """``slurm.conf``, ``gres.conf`` and, if asked, ``slurmdbd.conf`` and the key of tokens, in the folder's ``etc``.

    ``is_newer``: than 22.05.
    """
    etc = folder / "etc"
    lines = [_SLURM.format(folder=folder, port=ports.controller), *([] if is_newer else [_OLD]), *options]
    if is_newer:
        (etc / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
    if accounting:
        lines.append(_ACCOUNTING.format(folder=folder, port=ports.accounting))
        _write_private(etc / "slurmdbd.conf", _slurmdbd_conf(folder, ports).encode())
    if jwt:
        _write_private(etc / "jwt.key", secrets.token_bytes(32))
        lines.append(f"AuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key={etc / 'jwt.key'}")
    gres: list[str] = []
    partitions: dict[str, list[str]] = {}
    for group in groups:
        nodes = ",".join(group.names)
        gres.append(f"NodeName={nodes} Name=gpu Type={group.gpu_type} File={folder}/dev/nvidia[0-{group.gpus - 1}]")
        if group.shards:
            gres.append(f"NodeName={nodes} Name=shard Count={group.shards}")
        lines.extend(_node_line(name, ports.nodes[name], group) for name in group.names)
        for partition in group.partitions:
            partitions.setdefault(partition, []).extend(group.names)
    first = next(iter(partitions))
    lines.extend(
        f"PartitionName={name} Nodes={','.join(nodes)} Default={'YES' if name == first else 'NO'} MaxTime=7-0 State=UP"
        for name, nodes in partitions.items()
    )
    (etc / "slurm.conf").write_text("\n".join(lines) + "\n")
    (etc / "gres.conf").write_text("\n".join(gres) + "\n")


def _write_private(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)


def _node_line(name: str, port: int, group: NodeGroup) -> str:
    shards = f",shard:{group.shards}" if group.shards else ""
    return (
        f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=32 Boards=1 SocketsPerBoard=2 "
        f"CoresPerSocket=16 ThreadsPerCore=1 RealMemory=256000 Gres=gpu:{group.gpu_type}:{group.gpus}{shards} "
        f"Feature={group.features} State=UNKNOWN"
    )


# config_overrides lets this machine claim more CPUs and memory than it has; No*InAddrAny keeps every daemon on loopback;
# localhost stands for whatever this machine is called, so that its name need not resolve.
_SLURM = """\
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/sock
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/state/slurmctld.pid
SlurmdPidFile={folder}/spool/%n/pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1
PriorityType=priority/multifactor
GresTypes=gpu,shard
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
MessageTimeout=5
DefMemPerCPU=1000
"""

# Gone from later versions, which take it for an error.
_OLD = "SwitchType=switch/none"

# The munge socket is named a second time here, and a third time for slurmdbd: each looks in its own place.
_ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge/sock
AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:v100
AccountingStoreFlags=job_comment
"""


def _slurmdbd_conf(folder: Path, ports: Ports) -> str:
    return f"""\
AuthType=auth/munge
AuthInfo=socket={folder}/munge/sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={ports.accounting}
SlurmUser=root
LogFile={folder}/log/slurmdbd.log
PidFile={folder}/state/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={ports.database}
StorageUser=slurm
StoragePass=x
StorageLoc=slurm_acct
CommunicationParameters=NoInAddrAny
"""
