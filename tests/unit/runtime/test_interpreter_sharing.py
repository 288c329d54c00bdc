"""Requests interrupt threads that compute in Python sooner than by default; benchmarks/request_wait.py measures the effect."""

import sys
from collections.abc import Iterator

import pytest

from clusterscape.runtime.server import share_interpreter


@pytest.fixture(autouse=True)
def interval_stays() -> Iterator[None]:
    before_s = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before_s)


def test_interpreter_changes_hands_sooner_when_a_server_runs() -> None:
    sys.setswitchinterval(0.005)
    share_interpreter()
    assert sys.getswitchinterval() < 0.001
