"""Finds the programs that integration tests start; their absence is a failure in CI and a stated skip elsewhere."""

import contextlib
import os
import random
import shutil
import socket

import pytest


def need_program(name: str, package: str, *, search: str | None = None) -> str:
    """The path of ``name``; without it the test fails in CI (``CI=true``) and is skipped elsewhere, naming the package.

    ``search`` is an extra folder to look in, such as PostgreSQL's own bin folder.
    """
    path = os.pathsep.join(filter(None, [search, os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))
    program_path = shutil.which(name, path=path)
    if program_path:
        return program_path
    message = f"{name} is not installed; `apt-get install {package}` brings it"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


def free_port() -> int:
    """A TCP port of the loopback interface that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def lasting_port() -> int:
    """A port for a server that is stopped and started again: out of the range from which others get theirs meanwhile."""
    for port in random.SystemRandom().sample(range(10_000, 20_000), 1_000):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no free port between 10000 and 20000")
