"""A real multi-node Slurm on this one machine: munged, slurmctld, one slurmd a node, slurmrestd and, if asked, accounting.

Everything listens on loopback, keeps its state in one temporary folder and is ended by pid. Needs root: slurmd starts jobs
as other users and fake GPUs are device nodes (clones of /dev/null). The Slurm is this machine's, or one of another version in
a root folder of its own (`servers.roots`), whose commands then come first on the PATH.
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
from servers.roots import enter, slurm_root, write_commands
from servers.slurm_conf import NodeGroup, Ports, write_slurm_conf

PACKAGES = "slurmctld slurmd slurmrestd slurmdbd slurm-client munge mariadb-server"
START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 10.0
REST_USER = "nobody"  # slurmrestd refuses root and SlurmUser
COMMANDS = (
    "sacct", "sacctmgr", "salloc", "sbatch", "scancel", "scontrol", "sdiag", "sinfo", "sprio", "squeue", "srun", "sshare",
)  # fmt: skip
ROOT_PROGRAMS = ("slurmctld", "slurmd", "slurmdbd", "slurmrestd")

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
    ports: Ports
    node_groups: tuple[NodeGroup, ...]
    launcher: tuple[str, ...]  # what root's daemons are started through
    root: Path | None = None  # where another version of Slurm lies
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def conf(self) -> Path:
        """The SLURM_CONF of this server."""
        return self.folder / "etc" / "slurm.conf"

    @property
    def rest_socket(self) -> Path:
        """Where slurmrestd listens without asking for tokens."""
        return self.folder / "rest" / "sock"

    @property
    def rest_port(self) -> int:
        """Where slurmrestd listens and asks for tokens, if ``jwt`` was asked for."""
        return self.ports.rest

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which Slurm's commands speak to this server and no other."""
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}" if self.root else os.environ["PATH"]
        return {**os.environ, "SLURM_CONF": str(self.conf), "PATH": path}

    @property
    def node_names(self) -> list[str]:
        """Every node."""
        return [name for group in self.node_groups for name in group.names]

    # jobs

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

    def _states(self, job: int) -> set[str]:
        return set(self.command("squeue", "-h", "-t", "all", "-o", "%T", "-j", str(job)).split())

    def start_requeued(self, job: int) -> None:
        """Start a requeued job now: Slurm would hold it back for two minutes from the end of its former life."""
        # The node refuses a new life that begins within the second in which the former one was revoked.
        time.sleep(2)
        self.command("scontrol", "update", f"jobid={job}", "starttime=now")
        self.wait_for_state(job, "RUNNING")

    def reason_of(self, job: int) -> str:
        """Slurm's reason for which a job waits."""
        return self.command("squeue", "-h", "-o", "%r", "-j", str(job)).strip()

    def is_accounted(self, *jobs: int) -> bool:
        """Whether the accounting lists all these jobs as ended; it lists by eligibility, which comes seconds later."""
        lines = self.command("sacct", "-n", "-X", "-P", "-a", "-o", "jobid,end").split()
        return {f"{job}" for job in jobs} <= {line.split("|")[0] for line in lines if "Unknown" not in line}

    def cancel_all(self) -> None:
        """Cancel every job and wait until none is left."""
        self.command("scancel", "--me")
        self.wait_until(lambda: not self.command("squeue", "-h", "-t", "PD,R,CG,S").strip(), "the queue to be empty")

    def make_token(self, user: str, life_s: int) -> str:
        """A token that slurmrestd takes on its port for this many seconds."""
        printed = self.command("scontrol", "token", f"username={user}", f"lifespan={life_s}")
        return printed.strip().partition("=")[2]

    # daemons

    def wait_until(self, is_done: Callable[[], bool], awaited: str, timeout_s: float = START_TIMEOUT_S) -> None:
        """Ask again and again until done; fails, with the tails of the logs, at the time limit or when a daemon ends."""
        deadline = time.monotonic() + timeout_s
        while True:
            with contextlib.suppress(RuntimeError, OSError):
                if is_done():
                    return
            dead = [name for name, process in self.processes.items() if process.poll() is not None]
            if dead or time.monotonic() > deadline:
                why = f"{', '.join(dead)} ended" if dead else f"{timeout_s:.0f} s were not enough"
                raise TimeoutError(f"waited in vain for {awaited}: {why}\n{self._log_tails(dead)}")
            time.sleep(0.05)

    def _log_tails(self, names: list[str]) -> str:
        logs = [self.folder / "log" / f"{name}.out" for name in names or self.processes]
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-600:]}" for log in logs)

    def start(
        self, name: str, *arguments: str, user: str | None = None, extra: Mapping[str, str] | None = None
    ) -> None:
        """Start one daemon in the foreground; its output goes to the folder's ``log``."""
        with (self.folder / "log" / f"{name}.out").open("ab") as log:
            if self.root is not None and arguments[0] in ROOT_PROGRAMS:
                user, arguments = None, (*enter(self.root, user=user), *arguments)
            elif user is None:
                arguments = (*self.launcher, *arguments)
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

    def stop(self, name: str) -> None:
        """End one daemon, such as ``slurmctld``."""
        process = self.processes.pop(name)
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def start_munge(self) -> None:
        """Start munged and wait for its socket."""
        run, private = self.folder / "munge", self.folder / "key"
        self.start(
            "munged",
            "munged",
            "--foreground",
            "--origin=127.0.0.1",  # else it must resolve this machine's own name
            f"--key-file={private / 'munge.key'}",
            f"--socket={run / 'sock'}",
            f"--pid-file={run / 'pid'}",
            f"--log-file={private / 'log'}",
            f"--seed-file={private / 'seed'}",
        )
        self.wait_until((run / "sock").exists, "munged")

    def start_accounting_daemon(self) -> None:
        """Start slurmdbd and wait until it answers."""
        self.start("slurmdbd", "slurmdbd", "-D")
        self.wait_until(lambda: "root" in self.command("sacctmgr", "-n", "show", "account"), "slurmdbd")

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
    *,
    node_groups: tuple[NodeGroup, ...] = NODE_GROUPS,
    accounting: bool = False,
    jwt: bool = False,
    options: tuple[str, ...] = (),
    version: str | None = None,
) -> Iterator[SlurmServer]:
    """Start Slurm; on leaving, jobs are cancelled, every process is ended and the folder is removed.

    ``accounting`` adds MariaDB and slurmdbd (some seconds more). ``jwt`` lets slurmrestd's TCP port take tokens. ``options``
    are more lines of ``slurm.conf``. ``version``: one of `servers.roots.SUITES`; None: this machine's, 22.05 on Debian 12.
    """
    launcher = _need_everything(accounting=accounting, jwt=jwt)
    names = [name for group in node_groups for name in group.names]
    controller, accounts, database, rest, *node_ports = _free_ports(4 + len(names))
    ports = Ports(
        controller=controller,
        accounting=accounts,
        database=database,
        rest=rest,
        nodes=dict(zip(names, node_ports, strict=True)),
    )
    # In /tmp and short: a unix socket's path may have at most 107 characters. 0755: slurmrestd runs as another user.
    root = slurm_root(version) if version else None
    server = SlurmServer(
        Path(tempfile.mkdtemp(prefix="cs-slurm-", dir="/tmp")), ports, node_groups, launcher, root=root
    )
    server.folder.chmod(0o755)
    try:
        _prepare_folder(server)
        write_slurm_conf(
            server.folder,
            node_groups,
            ports,
            accounting=accounting,
            jwt=jwt,
            options=options,
            is_newer=root is not None,
        )
        _start_everything(server, accounting=accounting, jwt=jwt)
        yield server
    finally:
        _end_everything(server)
        shutil.rmtree(server.folder, ignore_errors=True)


def _need_everything(*, accounting: bool, jwt: bool) -> tuple[str, ...]:
    """What root's daemons are started through; without what is needed the test is skipped, or fails in CI."""
    programs = ["munged", "slurmctld", "slurmd", "slurmrestd", "sbatch"]
    for name in [*programs, "slurmdbd", "mariadbd"] if accounting else programs:
        need_program(name, PACKAGES)
    launcher = _find_launcher()
    problem = None
    if os.geteuid() != 0:
        problem = "a real Slurm starts only as root (slurmd switches users, mknod); run the tests as root"
    elif launcher is None:
        problem = "Slurm listens at the address of this machine's own name: add a line `127.0.0.1 NAME` to /etc/hosts"
    elif jwt and not any(Path("/usr/lib").glob("*/slurm*/auth_jwt.so")):
        problem = "Slurm's auth_jwt.so is not installed; `apt-get install slurm-wlm-jwt-plugin` brings it"
    if problem and os.environ.get("CI") == "true":
        pytest.fail(problem)
    elif problem:
        pytest.skip(problem)
    return launcher or ()


def _find_launcher() -> tuple[str, ...] | None:
    """Slurm's daemons listen where their host's name leads, so they get a host name of their own that leads to loopback."""
    as_localhost = ("unshare", "--uts", "--", "sh", "-c", 'hostname localhost && exec "$@"', "sh")
    with contextlib.suppress(FileNotFoundError):
        if subprocess.run([*as_localhost, "true"], capture_output=True, check=False).returncode == 0:
            return as_localhost
    with contextlib.suppress(OSError):
        if socket.gethostbyname(socket.gethostname()) == "127.0.0.1":
            return ()
    return None


def _prepare_folder(server: SlurmServer) -> None:
    folder = server.folder
    # munged wants its key in a private folder and its socket in a public one.
    for name, mode in {"etc": 0o755, "key": 0o700, "munge": 0o755, "log": 0o755, "state": 0o755, "dev": 0o755}.items():
        (folder / name).mkdir(mode=mode)
    for name in server.node_names:
        (folder / "spool" / name).mkdir(parents=True)
    (folder / "rest").mkdir()
    shutil.chown(folder / "rest", REST_USER)
    for index in range(max(group.gpus for group in server.node_groups)):
        os.mknod(folder / "dev" / f"nvidia{index}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    if server.root is not None:
        write_commands(folder / "bin", server.root, COMMANDS)
    key = folder / "key" / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(1024))


def _start_everything(server: SlurmServer, *, accounting: bool, jwt: bool) -> None:
    server.start_munge()
    if accounting:
        _start_database(server)
        server.start_accounting_daemon()
        server.command("sacctmgr", "-i", "add", "cluster", "test")
    server.start_controller()
    for name in server.node_names:
        server.start(f"slurmd-{name}", "slurmd", "-D", "-N", name)
    _start_rest(server, accounting=accounting, jwt=jwt)
    server.wait_for_nodes()


def _start_database(server: SlurmServer) -> None:
    data = server.folder / "mysql"
    data.mkdir()
    shutil.chown(data, "mysql")
    common = ("--no-defaults", "--user=mysql", f"--datadir={data}")
    server.command("mariadb-install-db", *common, "--skip-test-db", "--auth-root-authentication-method=normal")
    server.start(
        "mariadbd",
        "mariadbd",
        *common,
        f"--socket={data / 'sock'}",
        f"--pid-file={data / 'pid'}",
        "--bind-address=127.0.0.1",
        f"--port={server.ports.database}",
        "--innodb-buffer-pool-size=64M",
        "--innodb-lock-wait-timeout=900",
        "--innodb-flush-log-at-trx-commit=0",  # nobody needs these records after a crash
    )
    client = ("mariadb", "--no-defaults", "-uroot", f"--socket={data / 'sock'}", "-e")
    server.wait_until(lambda: bool(server.command(*client, "select 1")), "MariaDB")
    users = [
        f"create user slurm@{host} identified by 'x'; grant all on slurm_acct.* to slurm@{host};"
        for host in ("127.0.0.1", "localhost")
    ]
    server.command(*client, "create database slurm_acct; " + " ".join(users))


def _start_rest(server: SlurmServer, *, accounting: bool, jwt: bool) -> None:
    # The plugin of accounting, loaded by default, refuses to start without slurmdbd.
    plugins = ("-s", "openapi/v0.0.38,openapi/dbv0.0.38" if accounting else "openapi/v0.0.38")
    if server.root is not None:
        plugins = ("-s", "slurmctld,slurmdbd" if accounting else "slurmctld")
    by_socket = ("slurmrestd", *plugins, "-a", "rest_auth/local", f"unix:{server.rest_socket}")
    server.start("slurmrestd", *by_socket, user=REST_USER)
    server.wait_until(server.rest_socket.exists, "slurmrestd")
    if jwt:
        by_port = ("slurmrestd", *plugins, "-a", "rest_auth/jwt", f"127.0.0.1:{server.rest_port}")
        server.start("slurmrestd-jwt", *by_port, user=REST_USER, extra={"SLURM_JWT": "daemon"})
        server.wait_until(lambda: _is_listening(server.rest_port), "slurmrestd's port")


def _end_everything(server: SlurmServer) -> None:
    if "slurmctld" in server.processes:
        with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
            server.command("scancel", "--me")
    for name in reversed(list(server.processes)):
        server.stop(name)
    _end_strays(server.folder)


def _end_strays(folder: Path) -> None:
    """End slurmstepd and jobs, which outlive their slurmd where nobody could cancel them."""
    for pid in strays_of(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def strays_of(folder: Path) -> list[int]:
    """Processes that work in the folder; it need not exist any more."""
    pids = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str((process / "cwd").readlink()).removesuffix(" (deleted)") == str(folder):
                pids.append(int(process.name))
    return pids


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
