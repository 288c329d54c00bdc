"""What viewers who may not read every name are told of alert channels."""

from pathlib import Path

import pytest
from alerting.channels import PaperChannel
from alerting.turns import started
from unit.watch.site import WatchedSite

from clusterscape.model import UnixMs
from clusterscape.model.viewers import Role, Viewer
from clusterscape.query import Queries, QueryContext
from clusterscape.store.changes import Changes
from clusterscape.watch.alerts import Alerts
from clusterscape.watch.alerts.contract import Answer

REFUSAL = Answer(is_accepted=False, text="550 5.1.1 <zqbob@example.org>: no such user")


@pytest.mark.parametrize("role", Role)
async def test_what_a_channel_answered_is_for_operators_when_the_site_is_private(role: Role, tmp_path: Path) -> None:
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
    queries = Queries(context, watch=site.watch).scoped_to(viewer)
    state = queries.alerts.state()
    answer = state if queries.redactor is None else queries.redactor.redact(state)
    site.close()
    (channel,) = answer.channels
    assert (channel.name, channel.waiting, channel.attempts, channel.delivered) == ("paper", 1, 1, 0)
    if role.reaches(Role.OPERATOR):
        assert channel.last_error == REFUSAL.text
    else:
        assert channel.last_error == "an operator can see why"
        assert "zqbob" not in repr(answer)


def paper_time() -> UnixMs:
    """When the violation that is told of began."""
    return started().at
