"""Simulated clusters, built once: a small one without the 64-GPU run, and one of the default size."""

import pytest

from clusterscape.demo.scenario import DemoScenario
from clusterscape.demo.telemetry import DemoTelemetry
from clusterscape.model import UnixMs

ANCHOR = UnixMs(1_794_736_800_000)  # 2026-11-15 10:00 UTC


@pytest.fixture(scope="session")
def anchor() -> UnixMs:
    return ANCHOR


@pytest.fixture(scope="session")
def small() -> DemoScenario:
    scenario = DemoScenario(128, 7, ANCHOR)
    scenario.advance(ANCHOR)
    return scenario


@pytest.fixture(scope="session")
def small_telemetry(small: DemoScenario) -> DemoTelemetry:
    return DemoTelemetry(small)


@pytest.fixture(scope="session")
def usual() -> DemoScenario:
    scenario = DemoScenario(1024, 7, ANCHOR)
    scenario.advance(ANCHOR)
    return scenario
