"""The steady clock when the system clock jumps."""

import logging
from dataclasses import dataclass

import pytest

from clusterscape.model import UnixMs
from clusterscape.runtime.steady_clock import ACCEPTED_AFTER_MS, SteadyClock

HOUR_MS = 3_600_000


@dataclass
class Machine:
    """``ahead_ms``: difference between its clock and the time since boot."""

    elapsed_ms: int = 1_000
    ahead_ms: int = 1_700_000_000_000

    def clock(self) -> UnixMs:
        return UnixMs(self.elapsed_ms + self.ahead_ms)

    def steady(self) -> SteadyClock:
        return SteadyClock(self.clock, lambda: self.elapsed_ms)


@pytest.fixture
def machine(caplog: pytest.LogCaptureFixture) -> Machine:
    caplog.set_level(logging.WARNING)
    return Machine()


def test_clock_is_followed_without_a_log_line_when_it_is_corrected_gradually(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    steady = machine.steady()
    for _ in range(100):
        machine.elapsed_ms += 5_000
        machine.ahead_ms += 30_000
        assert steady.now() == machine.clock()
    assert not caplog.records


def test_time_stays_steady_and_one_line_is_logged_when_the_clock_jumps_forward(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    steady = machine.steady()
    before = steady.now()
    machine.ahead_ms += 400 * 24 * HOUR_MS
    for _ in range(50):
        machine.elapsed_ms += 5_000
        assert steady.now() == before + machine.elapsed_ms - 1_000
    assert [record.message.partition(" by ")[0] for record in caplog.records] == ["the system clock jumped forward"]
    machine.elapsed_ms += ACCEPTED_AFTER_MS
    assert steady.now() == machine.clock(), "after a day it is believed"


def test_clock_is_used_again_when_it_returns(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    steady = machine.steady()
    machine.ahead_ms += 2 * HOUR_MS
    steady.now()
    machine.ahead_ms -= 2 * HOUR_MS
    assert steady.now() == machine.clock()
    assert len(caplog.records) == 2
    steady.now()
    assert len(caplog.records) == 2


def test_clock_is_followed_and_one_line_is_logged_when_it_jumps_back(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    steady = machine.steady()
    machine.ahead_ms -= 2 * HOUR_MS
    assert steady.now() == steady.now() == machine.clock()
    assert [record.message.partition(";")[0] for record in caplog.records] == ["the system clock jumped back by 2 h"]
