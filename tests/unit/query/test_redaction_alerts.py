"""Alert channels as seen by viewers with redacted names."""

from pathlib import Path

import pytest
from alerting.channels import PaperChannel
from alerting.turns import started
from clusters.opened import open_queries
from unit.watch.site import WatchedSite

from clusterscape.model import UnixMs
from clusterscape.model.access import Role, Viewer
from clusterscape.query import QueryContext
from clusterscape.store.changes import Changes
from clusterscape.watch.alerts import Alerts
from clusterscape.watch.alerts.contract import DeliveryResult

REFUSAL = DeliveryResult(is_accepted=False, text="550 5.1.1 <zqbob@example.org>: no such user")


@pytest.mark.parametrize("role", Role)
async def test_channel_responses_are_shown_to_operators_only_when_the_site_is_private(
    role: Role, tmp_path: Path
) -> None:
    paper = PaperChannel(answers=[REFUSAL])
    site = WatchedSite(tmp_path, alerts=Alerts([paper], tmp_path / "alerts.db", clock=lambda: site.now))
    assert site.alerts is not None
    site.alerts.post([started(user="zqbob")])
    site.now = UnixMs(max(site.now, paper_time()) + 600_000)
    await site.alerts.deliver_due()
    context = QueryContext(
        metrics=site.metrics,
        records=site.records,
        changes=Changes(),
        clock=lambda: site.now,
        cluster="private",
        is_private=True,
    )
    viewer = Viewer(login="zqada", role=role, projects=frozenset({"p1"}))
    queries = open_queries(context, watch=site.watch).scoped_to(viewer)
    state = queries.alerts.state()
    answer = state if queries.redactor is None else queries.redactor.redact(state)
    site.close()
    (channel,) = answer.channels
    assert (channel.name, channel.waiting, channel.attempts, channel.delivered) == ("paper", 1, 1, 0)
    if role.is_at_least(Role.OPERATOR):
        assert channel.last_error == REFUSAL.text
    else:
        assert channel.last_error == "hidden; operators can see it"
        assert "zqbob" not in repr(answer)


def paper_time() -> UnixMs:
    """When the reported violation began."""
    return started().at
