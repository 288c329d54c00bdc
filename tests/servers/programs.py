"""Finds the programs that integration tests start; their absence is a failure in CI and a stated skip elsewhere."""

import os
import shutil
import socket

import pytest


def need_program(name: str, package: str, *, search: str | None = None) -> str:
    """The path of ``name``; without it the test fails in CI (``CI=true``) and is skipped elsewhere, naming the package.

    ``search`` is an extra folder to look in, such as PostgreSQL's own bin folder.
    """
    path = os.pathsep.join(filter(None, [search, os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))
    found = shutil.which(name, path=path)
    if found:
        return found
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
