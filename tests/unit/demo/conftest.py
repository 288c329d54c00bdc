"""Pretend clusters, built once: a small one that shows everything but the 64-GPU run, and the demo's own size."""

import pytest

from clusterscape.demo.scenario import Scenario
from clusterscape.demo.telemetry import Telemetry
from clusterscape.model import UnixMs

ANCHOR = UnixMs(1_794_736_800_000)  # 2026-11-15 10:00 UTC


@pytest.fixture(scope="session")
def anchor() -> UnixMs:
    return ANCHOR


@pytest.fixture(scope="session")
def small() -> Scenario:
    scenario = Scenario(128, 7, ANCHOR)
    scenario.advance(ANCHOR)
    return scenario


@pytest.fixture(scope="session")
def small_telemetry(small: Scenario) -> Telemetry:
    return Telemetry(small)


@pytest.fixture(scope="session")
def usual() -> Scenario:
    scenario = Scenario(1024, 7, ANCHOR)
    scenario.advance(ANCHOR)
    return scenario
