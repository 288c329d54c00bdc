"""Slurm's controller and the metrics server away for an hour (``SOAK_OUTAGE_MINUTES``) while a real server goes on collecting."""

import os
from pathlib import Path

import pytest
from servers.outages import live_through
from servers.reliability import note

pytestmark = pytest.mark.server

MINUTES = float(os.environ.get("SOAK_OUTAGE_MINUTES", "60"))
MEMORY_SLACK = 0.25


def test_nothing_is_lost_and_nobody_holds_what_they_do_not_when_servers_are_away_for_long(tmp_path: Path) -> None:
    seen = live_through(tmp_path, outage_s=MINUTES * 60, scrape_s=15, look_s=15)
    earlier_mb, later_mb = seen.memory_thirds()
    assert later_mb < earlier_mb * (1 + MEMORY_SLACK), f"{earlier_mb:.0f} MB, then {later_mb:.0f} MB"
    note(
        "fault",
        what=f"slurmctld and the metrics server are down for {MINUTES:g} minutes, scrapes every 15 s",
        promised="each scrape is stored once; jobs hold units until Slurm says they ended; few lines; flat memory",
        measured=f"{seen.scrapes:,} scrapes of each unit, all there once; {seen.waited_samples:,} samples waited in "
        f"{seen.spool_bytes / 1000:,.0f} kB; {len(seen.log_lines)} log lines; {earlier_mb:.0f} MB, then {later_mb:.0f} MB",
    )
