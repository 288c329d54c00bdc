"""A process that posts turns and delivers them to a webhook, to be killed: ``python -m alerting.worker SPOOL URL FIRST LAST``.

Prints the number of each turn once its post has returned.
"""

import asyncio
import sys
import time
from pathlib import Path

from alerting.turns import started
from clusterscape.model.ids import UnixMs
from clusterscape.watch.alerts import Alerts, SendingPolicy
from clusterscape.watch.alerts.channels.site_info import SiteInfo
from clusterscape.watch.alerts.channels.webhook import WebhookChannel


def clock() -> UnixMs:
    return UnixMs(time.time_ns() // 1_000_000)


async def work(spool: Path, url: str, first: int, last: int) -> None:
    channel = WebhookChannel(
        name="hook",
        policy=SendingPolicy(group_by=("workload",)),
        site=SiteInfo(cluster="test"),
        clock=clock,
        url=url,
        headers={},
    )
    alerts = Alerts([channel], spool, clock=clock)
    running = asyncio.create_task(alerts.run())
    for number in range(first, last):
        await asyncio.to_thread(alerts.post, [started(f"w{number}", number)])
        print(number, flush=True)
    while alerts.state()[0].waiting_turns:  # noqa: ASYNC110 – the spool calls nobody
        await asyncio.sleep(0.02)
    running.cancel()
    await asyncio.wait({running})
    alerts.close()


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
