"""A real PostgreSQL from Debian's package: own data folder, own port of loopback, gone afterwards."""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import BinaryIO

from servers.programs import free_port, need_program

START_TIMEOUT_S = 60.0
USER = "clusterscape"


@dataclass(frozen=True)
class PostgresServer:
    """A running server; each ``new_database`` starts empty."""

    port: int
    password: str = field(repr=False)
    _running: "list[subprocess.Popen[bytes]]" = field(default_factory=list, repr=False)
    _starting: "list[Callable[[], subprocess.Popen[bytes]]]" = field(default_factory=list, repr=False)
    _numbers: Iterator[int] = field(default_factory=count, repr=False)

    def url(self, database: str, *, password: str | None = None) -> str:
        """The address of ``database``, as a user would write it."""
        return f"postgresql://{USER}:{password or self.password}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """The address of a fresh database, whose own order of text is a dictionary's (ICU), not bytewise."""
        name = f"records_{next(self._numbers)}"
        self.execute(
            f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C'"
        )
        return self.url(name)

    def stop(self) -> None:
        """End the server: sessions are cut off, files closed."""
        process = self._running.pop()
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        process.wait(30)

    def start(self) -> None:
        """Start it (again), at the same port and with the same data."""
        self._running.append(self._starting[0]())

    def execute(self, statement: str, *, url: str | None = None) -> None:
        """Run one statement outside any transaction."""
        import psycopg

        with psycopg.connect(url or self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Start a server; it is up within seconds."""
    bin_dir = _bin_dir()
    initdb = need_program("initdb", "postgresql", search=bin_dir)
    postgres = need_program("postgres", "postgresql", search=bin_dir)
    account = _account()
    folder = Path(tempfile.mkdtemp(prefix="clusterscape-postgres-"))  # not pytest's: its parents are closed to others
    server = PostgresServer(port=free_port(), password=secrets.token_hex(8))
    try:
        password_file = folder / "password"
        password_file.write_text(server.password)
        if account is not None:
            for path in (folder, password_file):
                os.chown(path, account.pw_uid, account.pw_gid)
        data = folder / "data"
        with (folder / "log").open("wb") as log:
            _run_as(account, [
                initdb, "-D", str(data), "-U", USER, "-E", "UTF8", "--no-locale", "--no-sync",
                "-A", "scram-sha-256", f"--pwfile={password_file}",
            ], log).wait(START_TIMEOUT_S)  # fmt: skip

        def start() -> "subprocess.Popen[bytes]":
            with (folder / "log").open("ab") as log:
                process = _run_as(account, [
                    postgres, "-D", str(data), "-p", str(server.port), "-k", str(folder),
                    "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "shared_buffers=64MB",
                ], log)  # fmt: skip
            _wait_until_up(server, process, folder / "log")
            return process

        server._starting.append(start)
        server.start()
        yield server
    finally:
        if server._running:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _bin_dir() -> str | None:
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    if versions:
        return str(versions[-1])
    pg_config = shutil.which("pg_config")
    return subprocess.check_output([pg_config, "--bindir"], text=True).strip() if pg_config else None


def _account() -> pwd.struct_passwd | None:
    """Account that the server runs as; it refuses root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def _run_as(account: pwd.struct_passwd | None, command: list[str], log: BinaryIO) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
        extra_groups=[] if account else None,
    )


def _wait_until_up(server: PostgresServer, process: "subprocess.Popen[bytes]", log: Path) -> None:
    import psycopg

    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            psycopg.connect(server.url("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text()}") from None
            time.sleep(0.05)
        else:
            return
