"""Slurm's controller and the metrics server away for an hour (``SOAK_OUTAGE_MINUTES``) while a real server goes on collecting."""

import os
from pathlib import Path

import pytest
from servers.outages import live_through
from servers.reliability import note

pytestmark = pytest.mark.server

MINUTES = float(os.environ.get("SOAK_OUTAGE_MINUTES", "60"))
MEMORY_SLACK = 0.25


def test_no_data_is_lost_and_holders_are_right_when_servers_are_down_for_long(tmp_path: Path) -> None:
    result = live_through(tmp_path, outage_s=MINUTES * 60, scrape_s=15, look_s=15)
    earlier_mb, later_mb = result.memory_thirds()
    assert later_mb < earlier_mb * (1 + MEMORY_SLACK), f"{earlier_mb:.0f} MB, then {later_mb:.0f} MB"
    note(
        "fault",
        what=f"slurmctld and the metrics server are down for {MINUTES:g} minutes, scrapes every 15 s",
        promised="each scrape is stored once; jobs hold units until Slurm says they ended; few lines; flat memory",
        measured=f"{result.scrapes:,} scrapes of each unit, all there once; {result.waited_samples:,} samples waited in "
        f"{result.spool_bytes / 1000:,.0f} kB; {len(result.log_lines)} log lines; {earlier_mb:.0f} MB, then {later_mb:.0f} MB",
    )
