"""A real server whose wall clock jumps, forward and back, while it collects: that of its process alone."""

import re
from pathlib import Path

import pytest
from servers.demo import get_json, wait_until
from servers.exporters import NodeExporter, node_exporters
from servers.jumping_clock import JumpingClock
from servers.reliability import note
from servers.serving import Served, serving

from clusterscape.model import UnixMs
from clusterscape.settings import RetentionSettings
from clusterscape.store.metrics import EmbeddedMetricStore

pytestmark = pytest.mark.server

JUMP_S = 3000
MIB = 2**20


def failing(served: Served) -> int:
    return sum(group["failing"] for group in get_json(f"{served.url}/api/v1/sources")["groups"])


def wait_for_scrapes(exporter: NodeExporter, more: int = 3) -> None:
    """Of which the last but one has been stored by now."""
    before = exporter.scrapes
    wait_until(lambda: exporter.scrapes >= before + more)


def wait_for_line(served: Served, pattern: str) -> None:
    wait_until(lambda: re.search(pattern, " ".join(served.log.read_text().split())) is not None)


def test_every_scrape_is_stored_and_all_goes_on_when_the_clock_jumps(tmp_path: Path) -> None:
    clock = JumpingClock(tmp_path)
    with node_exporters(2, counts=True) as (steady, flaky):
        config = f'[collect.dcgm]\ntargets = ["{steady.target}", "{flaky.target}"]\ninterval_s = 0.3\njitter_s = 0\n'
        with serving(tmp_path / "site", config, environment=clock.environment) as served:
            wait_for_scrapes(steady)
            wait_for_scrapes(flaky)
            clock.set_ahead(JUMP_S)
            wait_for_line(served, "clock jumped forward by (49|50) min")
            flaky.is_down = True  # when it is tried again is planned by a clock that is about to go back
            wait_until(lambda: failing(served) == 1)
            wait_for_scrapes(steady)
            clock.set_ahead(0)
            wait_for_line(served, "clock is back to its time")
            clock.set_ahead(-JUMP_S)
            wait_for_line(served, "clock jumped back by (49|50) min")
            flaky.is_down = False
            wait_for_scrapes(flaky)
            wait_until(lambda: failing(served) == 0)
        log = " ".join(served.log.read_text().split())
        assert log.count("clock jumped") == 2, log
        assert "Traceback" not in log, log
        store = EmbeddedMetricStore(tmp_path / "site/data/metrics", RetentionSettings())
        rows = store.read_all(["memory_used_bytes"], start_ms=UnixMs(0), end_ms=UnixMs(2**45))
        store.close()
        for exporter in (steady, flaky):
            values = rows.filter(unit=f"{exporter.node}:0")["value"].to_list()
            numbers = sorted(round(value / MIB) for value in values)
            assert numbers == list(range(1, len(numbers) + 1)), "each scrape is there once"
            assert len(numbers) >= exporter.scrapes - 1, "the last one may have come after the end"
        times: list[int] = rows.filter(unit=f"{steady.node}:0")["time_ms"].to_list()
        assert max(times) - min(times) > 1.9 * JUMP_S * 1000, "the clock did jump"
    note(
        "fault",
        what="the clock jumps 50 minutes forward, back, and 50 minutes back",
        promised="each scrape is stored once, one line for each jump, failing exporters are asked again at once",
        measured=f"{len(numbers):,} and more scrapes there once; nothing waited for a clock to catch up",
    )
