"""A real multi-node Slurm on this one machine: munged, slurmctld, one slurmd a node, slurmrestd and, if asked, accounting.

Everything listens on loopback, keeps its state in one temporary folder and is ended by pid. Needs root: slurmd starts jobs
as other users and pretend GPUs are device nodes (clones of /dev/null).
"""

import contextlib
import os
import pwd
import random
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from servers.programs import need_program

PACKAGES = "slurmctld slurmd slurmrestd slurmdbd slurm-client munge mariadb-server"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0
REST_USER = "nobody"  # slurmrestd refuses root and SlurmUser


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """Nodes alike, which form a partition of the same name as their GPU type unless ``partitions`` says otherwise."""

    names: tuple[str, ...]
    gpu_type: str
    gpus: int
    partitions: tuple[str, ...]
    features: str = ""
    shards: int = 0


NODE_GROUPS = (
    NodeGroup(
        names=("gpu01", "gpu02", "gpu03"), gpu_type="a100", gpus=8, partitions=("a100", "all"), features="a100,nvlink"
    ),
    NodeGroup(names=("vgpu1",), gpu_type="v100", gpus=4, partitions=("v100", "all"), features="v100", shards=8),
)


@dataclass
class SlurmServer:
    """A running Slurm. ``conf`` is its SLURM_CONF and ``rest_socket`` where slurmrestd listens."""

    folder: Path
    conf: Path
    rest_socket: Path
    rest_port: int
    node_groups: tuple[NodeGroup, ...]
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which Slurm's commands speak to this server and no other."""
        return {**os.environ, "SLURM_CONF": str(self.conf)}

    @property
    def node_names(self) -> list[str]:
        """Every node."""
        return [name for group in self.node_groups for name in group.names]

    def command(self, *arguments: str) -> str:
        """Run one of Slurm's commands and return what it printed."""
        done = subprocess.run(
            arguments, env=self.environment, cwd=self.folder, capture_output=True, text=True, timeout=30, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def submit(self, *options: str, script: str = "sleep 600") -> int:
        """sbatch; returns the job id."""
        printed = self.command("sbatch", "--parsable", "--output=/dev/null", *options, f"--wrap={script}")
        return int(printed.strip().split(";")[0])

    def wait_for_state(self, job: int, *states: str) -> None:
        """Wait until every part of the job is in one of these states, such as RUNNING."""
        self.wait_until(lambda: self._states(job) <= set(states), f"job {job} to be {' or '.join(states)}")

    def wait_until(self, is_done: Callable[[], bool], what: str, timeout_s: float = START_TIMEOUT_S) -> None:
        """Ask again and again until done; fails, with the tails of the logs, at the time limit or when a daemon ends."""
        deadline = time.monotonic() + timeout_s
        while True:
            with contextlib.suppress(RuntimeError, OSError):
                if is_done():
                    return
            dead = [name for name, process in self.processes.items() if process.poll() is not None]
            if dead or time.monotonic() > deadline:
                why = f"{', '.join(dead)} ended" if dead else f"{timeout_s:.0f} s were not enough"
                raise TimeoutError(f"waited in vain for {what}: {why}\n{self._log_tails(dead)}")
            time.sleep(0.05)

    def _log_tails(self, names: list[str]) -> str:
        logs = [self.folder / "log" / f"{name}.out" for name in names or self.processes]
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-600:]}" for log in logs)

    def _states(self, job: int) -> set[str]:
        return set(self.command("squeue", "-h", "-t", "all", "-o", "%T", "-j", str(job)).split())

    def stop(self, name: str, *, signal_number: int = signal.SIGTERM) -> None:
        """End one daemon, such as ``slurmctld``."""
        process = self.processes.pop(name)
        process.send_signal(signal_number)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def start(
        self, name: str, *arguments: str, user: str | None = None, extra: Mapping[str, str] | None = None
    ) -> None:
        """Start one daemon in the foreground; its output goes to the folder's ``log``."""
        with (self.folder / "log" / f"{name}.out").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                arguments,
                env=self.environment | dict(extra or {}),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=user,
                group=pwd.getpwnam(user).pw_gid if user else None,
                extra_groups=[] if user else None,
            )

    def start_controller(self) -> None:
        """Start slurmctld and wait until it answers."""
        self.start("slurmctld", "slurmctld", "-D")
        self.wait_until(lambda: "is UP" in self.command("scontrol", "ping"), "slurmctld to answer")

    def wait_for_nodes(self) -> None:
        """Wait until every slurmd has reported to the controller."""
        usable = {"idle", "mixed", "allocated"}
        self.wait_until(lambda: self._node_states() <= usable, "all nodes to be up")

    def _node_states(self) -> set[str]:
        return set(self.command("sinfo", "-h", "-N", "-o", "%T").split())


@contextlib.contextmanager
def slurm_server(
    *, node_groups: tuple[NodeGroup, ...] = NODE_GROUPS, accounting: bool = False, jwt: bool = False
) -> Iterator[SlurmServer]:
    """Start Slurm; on leaving, jobs are cancelled, every process is ended and the folder is removed.

    ``accounting`` adds MariaDB and slurmdbd (some seconds more). ``jwt`` lets slurmrestd's TCP port take tokens.
    """
    _need_everything(accounting=accounting, jwt=jwt)
    # In /tmp and short: a unix socket's path may have at most 107 characters. 0755: slurmrestd runs as another user.
    folder = Path(tempfile.mkdtemp(prefix="cs-slurm-", dir="/tmp"))
    folder.chmod(0o755)
    server = SlurmServer(
        folder=folder,
        conf=folder / "etc" / "slurm.conf",
        rest_socket=folder / "rest" / "sock",
        rest_port=0,
        node_groups=node_groups,
    )
    try:
        _start_everything(server, accounting=accounting, jwt=jwt)
        yield server
    finally:
        _end_everything(server)
        shutil.rmtree(folder, ignore_errors=True)


def _need_everything(*, accounting: bool, jwt: bool) -> None:
    for name in ("munged", "slurmctld", "slurmd", "slurmrestd", "sbatch"):
        need_program(name, PACKAGES)
    if accounting:
        need_program("slurmdbd", PACKAGES)
        need_program("mariadbd", PACKAGES)
    problem = None
    if os.geteuid() != 0:
        problem = "a real Slurm starts only as root (slurmd switches users, mknod); run the tests as root"
    elif jwt and not any(Path("/usr/lib").glob("*/slurm-wlm/auth_jwt.so")):
        problem = "Slurm's auth_jwt.so is not installed; `apt-get install slurm-wlm-jwt-plugin` brings it"
    if problem is None:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(problem)
    pytest.skip(problem)


def _start_everything(server: SlurmServer, *, accounting: bool, jwt: bool) -> None:
    folder = server.folder
    # munged wants its key in a private folder and its socket in a public one.
    for name, mode in {"etc": 0o755, "key": 0o700, "munge": 0o755, "log": 0o755, "state": 0o755, "dev": 0o755}.items():
        (folder / name).mkdir(mode=mode)
    (folder / "rest").mkdir()
    shutil.chown(folder / "rest", REST_USER)
    for index in range(max(group.gpus for group in server.node_groups)):
        os.mknod(folder / "dev" / f"nvidia{index}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    for name in server.node_names:
        (folder / "spool" / name).mkdir(parents=True)
    controller, accounts, database, rest, *node_ports = _free_ports(4 + len(server.node_names))
    server.rest_port = rest
    _write_configuration(
        server, controller, dict(zip(server.node_names, node_ports, strict=True)), accounts, accounting, jwt
    )
    _start_munge(server)
    if accounting:
        _start_accounting(server, accounts, database)
    server.start_controller()
    for name in server.node_names:
        server.start(f"slurmd-{name}", "slurmd", "-D", "-N", name)
    _start_rest(server, accounting=accounting, jwt=jwt)
    server.wait_for_nodes()


def _start_munge(server: SlurmServer) -> None:
    folder = server.folder
    key = folder / "key" / "munge.key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o600)
    server.start(
        "munged",
        "munged",
        "--foreground",
        "--origin=127.0.0.1",  # else it must resolve this machine's own name
        f"--key-file={key}",
        f"--socket={folder / 'munge' / 'sock'}",
        f"--pid-file={folder / 'munge' / 'pid'}",
        f"--log-file={folder / 'key' / 'log'}",
        f"--seed-file={folder / 'key' / 'seed'}",
    )
    server.wait_until((folder / "munge" / "sock").exists, "munged")


def _start_accounting(server: SlurmServer, accounts_port: int, database_port: int) -> None:
    folder = server.folder
    data = folder / "mysql"
    data.mkdir()
    shutil.chown(data, "mysql")
    server.command(
        "mariadb-install-db", "--no-defaults", "--user=mysql", f"--datadir={data}", "--skip-test-db",
        "--auth-root-authentication-method=normal",
    )  # fmt: skip
    server.start(
        "mariadbd", "mariadbd", "--no-defaults", "--user=mysql", f"--datadir={data}", f"--socket={data / 'sock'}",
        f"--pid-file={data / 'pid'}", "--bind-address=127.0.0.1", f"--port={database_port}",
        "--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900",
    )  # fmt: skip
    database = ("mariadb", "--no-defaults", "-uroot", f"--socket={data / 'sock'}", "-e")
    server.wait_until(lambda: bool(server.command(*database, "select 1")), "MariaDB")
    users = [
        f"create user slurm@{host} identified by 'x'; grant all on slurm_acct.* to slurm@{host};"
        for host in ("127.0.0.1", "localhost")
    ]
    server.command(*database, "create database slurm_acct; " + " ".join(users))
    conf = folder / "etc" / "slurmdbd.conf"
    conf.write_text(_slurmdbd_conf(folder, accounts_port, database_port))
    conf.chmod(0o600)
    server.start("slurmdbd", "slurmdbd", "-D")
    server.wait_until(lambda: _is_listening(accounts_port), "slurmdbd")
    server.command("sacctmgr", "-i", "add", "cluster", "test")


def _start_rest(server: SlurmServer, *, accounting: bool, jwt: bool) -> None:
    # The openapi/dbv0.0.38 plugin, loaded by default, refuses to start without slurmdbd.
    plugins = ("-s", "openapi/v0.0.38,openapi/dbv0.0.38" if accounting else "openapi/v0.0.38")
    server.start(
        "slurmrestd", "slurmrestd", *plugins, "-a", "rest_auth/local", f"unix:{server.rest_socket}", user=REST_USER
    )
    server.wait_until(server.rest_socket.exists, "slurmrestd")
    if jwt:
        listen = f"127.0.0.1:{server.rest_port}"
        server.start("slurmrestd-jwt", "slurmrestd", *plugins, "-a", "rest_auth/jwt", listen, user=REST_USER)
        server.wait_until(lambda: _is_listening(server.rest_port), "slurmrestd's port")


def _end_everything(server: SlurmServer) -> None:
    with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
        server.command("scancel", "--me")
    for name in reversed(list(server.processes)):
        server.stop(name)
    _end_strays(server.folder)


def _end_strays(folder: Path) -> None:
    """End slurmstepd and jobs, which outlive their slurmd; known by the SLURM_CONF they inherited."""
    mark = f"SLURM_CONF={folder}/etc/slurm.conf".encode()
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in environment.read_bytes().split(b"\0"):
                os.kill(int(environment.parent.name), signal.SIGKILL)


def _free_ports(count: int) -> list[int]:
    """Ports below the ephemeral range, so that no outgoing connection takes one before its daemon listens."""
    ports: list[int] = []
    for port in random.SystemRandom().sample(range(20_000, 32_000), 4_000):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            ports.append(port)
        if len(ports) == count:
            return ports
    raise RuntimeError(f"no {count} free ports between 20000 and 32000")


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _write_configuration(
    server: SlurmServer, controller: int, node_ports: Mapping[str, int], accounts: int, accounting: bool, jwt: bool
) -> None:
    folder = server.folder
    lines = [_SLURM_CONF.format(folder=folder, controller_port=controller)]
    if accounting:
        lines.append(_ACCOUNTING_CONF.format(folder=folder, port=accounts))
    if jwt:
        key = folder / "etc" / "jwt.key"
        key.write_bytes(secrets.token_bytes(32))
        key.chmod(0o600)
        lines.append(f"AuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key={key}")
    gres = []
    partitions: dict[str, list[str]] = {}
    for group in server.node_groups:
        nodes = ",".join(group.names)
        gres.append(f"NodeName={nodes} Name=gpu Type={group.gpu_type} File={folder}/dev/nvidia[0-{group.gpus - 1}]")
        if group.shards:
            gres.append(f"NodeName={nodes} Name=shard Count={group.shards}")
        lines.extend(_node_line(name, node_ports[name], group) for name in group.names)
        for partition in group.partitions:
            partitions.setdefault(partition, []).extend(group.names)
    first = next(iter(partitions))
    lines.extend(
        f"PartitionName={name} Nodes={','.join(nodes)} Default={'YES' if name == first else 'NO'} MaxTime=7-0 State=UP"
        for name, nodes in partitions.items()
    )
    server.conf.write_text("\n".join(lines) + "\n")
    (folder / "etc" / "gres.conf").write_text("\n".join(gres) + "\n")


def _node_line(name: str, port: int, group: NodeGroup) -> str:
    shards = f",shard:{group.shards}" if group.shards else ""
    features = f" Feature={group.features}" if group.features else ""
    return (
        f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=32 Boards=1 SocketsPerBoard=2 "
        f"CoresPerSocket=16 ThreadsPerCore=1 RealMemory=256000 Gres=gpu:{group.gpu_type}:{group.gpus}{shards}{features} "
        "State=UNKNOWN"
    )


# config_overrides lets this machine claim more CPUs and memory than it has; No*InAddrAny keeps every daemon on loopback.
_SLURM_CONF = """\
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller_port}
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
SwitchType=switch/none
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
DefMemPerCPU=1000
"""

_ACCOUNTING_CONF = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge/sock
AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:v100
AccountingStoreFlags=job_comment
TrackWCKey=no
"""


def _slurmdbd_conf(folder: Path, port: int, database_port: int) -> str:
    return f"""\
AuthType=auth/munge
AuthInfo=socket={folder}/munge/sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
LogFile={folder}/log/slurmdbd.log
PidFile={folder}/state/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database_port}
StorageUser=slurm
StoragePass=x
StorageLoc=slurm_acct
CommunicationParameters=NoInAddrAny
"""
