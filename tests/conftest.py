"""Fixtures that restore global state after every test."""

import os
from collections.abc import Iterator

import pytest

# Dozens of servers are started at once: each compiles what it is asked for, and finds what the others have compiled.
os.environ["CLUSTERSCAPE_SERVER__COMPILE_AHEAD"] = "false"


@pytest.fixture(autouse=True)
def unchanged_umask() -> Iterator[None]:
    """Commands that open a site's stores create private files from then on; called within a test they change its process."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)
