"""Alerts on jobs that hang: one for each stall, one at its end, without names of code."""

from pathlib import Path

import pytest
from alerting.channels import PaperChannel
from hangs.made_up import write_case
from tracking.site import NOW, run_stores
from unit.query.test_hang_query import LOOKED, send

from clusterscape.collect.hangs.reading import read_looks
from clusterscape.model.run_frames import encode_event
from clusterscape.services.hang_alerts import HangAlerts
from clusterscape.watch.alerts import Alerts, SendingPolicy


@pytest.mark.asyncio
async def test_one_message_is_sent_for_a_stall_and_one_for_its_end(tmp_path: Path) -> None:
    case = write_case("absent", 3, tmp_path / "looks")
    looks = read_looks(list(case.looks))
    channel = PaperChannel(SendingPolicy())
    with run_stores(tmp_path / "data") as stores:
        alerts = Alerts([channel], tmp_path / "alerts.db", clock=lambda: NOW)
        hangs = HangAlerts(stores.queries.hangs, alerts, stores.queries.context.changes, lambda: NOW)
        try:
            send(stores, "run-a", looks, range(4))
            send(stores, "run-b", looks, range(4, 8))
            for _ in range(2):
                hangs.update()
                await alerts.deliver_due()
            [message] = channel.received
            [turn] = message.turns
            assert (turn.rule, turn.workload in ("run:run-a", "run:run-b"), turn.user) == ("hang", True, "me")
            [rank] = case.ranks
            assert turn.reason == f"Rank {rank} of 8: does not make the call that the others wait in."
            for run in ("run-a", "run-b"):
                offset = stores.intake.offsets(run)["tracker.spool"]
                event = encode_event({"event": "hang_end", "at": LOOKED + 1000})
                stores.intake.take(run, "tracker.spool", offset, event)
            hangs.update()
            await alerts.deliver_due()
            assert [turn.turn.value for turn in channel.received[-1].turns] == ["stopped"]
        finally:
            alerts.close()
