"""Slurm's controller and the metrics server go away for seconds and come back; ``tests/soak`` does the same for an hour."""

from pathlib import Path

import pytest
from servers.outages import live_through
from servers.reliability import note

pytestmark = pytest.mark.server


def test_every_scrape_and_every_end_is_right_when_slurm_and_the_metrics_server_were_away(tmp_path: Path) -> None:
    result = live_through(tmp_path, outage_s=4, scrape_s=0.5, look_s=1)
    note(
        "fault",
        what="slurmctld and the metrics server go away and come back; then Slurm is out of reach",
        promised="each scrape is stored once; jobs hold units until Slurm says they ended, also those that nobody saw end",
        measured=f"{result.scrapes:,} scrapes of each unit, all there once; ends as in Slurm's accounting; "
        f"{len(result.log_lines)} log lines",
    )
