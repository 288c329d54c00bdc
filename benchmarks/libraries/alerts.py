"""Sends alerts by webhook and by mail over real sockets: our channels against Apprise, and how each handles a refusal.

``python -m benchmarks.libraries.alerts`` prints messages per second to a webhook and to a mail server on loopback, and for every
fault of the other side what the sender knows afterwards.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from alerting.endpoints import HttpEndpoint, SmtpEndpoint
from alerting.turns import T0, flat, started

from clusterscape.settings import AlertsSettings
from clusterscape.watch.alerts import Channel, DeliveryResult, Message, MessageKind, build_channels
from clusterscape.watch.alerts.channels.message_text import build_text, write_plain
from clusterscape.watch.alerts.channels.site_info import SiteInfo

MESSAGE = Message(key="k-1", kind=MessageKind.ALERT, created_at=T0, turns=[flat(started("slurm:1"))])
MESSAGES = 200
MOST_S = 20.0
HUGE_BYTES = 200 * 2**20
Send = Callable[[], Awaitable[object]]


def our_channel(**settings: object) -> Channel:
    """One of ours, from its settings."""
    alerts = AlertsSettings.model_validate({"channels": {"one": settings}})
    return build_channels(alerts, cluster="test", clock=lambda: T0)[0]


def our_sender(channel: Channel) -> Send:
    """Our channel."""
    return lambda: channel.send(MESSAGE)


def apprise_sender(url: str) -> Send:
    """The library as its documentation shows it."""
    from apprise import Apprise

    service = Apprise()
    service.add(url)
    site = SiteInfo(cluster="test")
    words = build_text(MESSAGE, "test", most=20)
    body = write_plain(words, site, MESSAGE.key)
    return lambda: service.async_notify(body=body, title=words.subject)


def senders(http: int, smtp: int) -> dict[str, dict[str, Send]]:
    """Senders by channel and side."""
    mail = our_channel(
        kind="email", host="127.0.0.1", port=smtp, security="plain", sender="a@b.example", to=["c@d.example"]
    )
    return {
        "webhook": {
            "ours": our_sender(our_channel(kind="webhook", url=f"http://127.0.0.1:{http}/hook")),
            "Apprise": apprise_sender(f"json://127.0.0.1:{http}/hook"),
        },
        "mail": {
            "ours": our_sender(mail),
            "Apprise": apprise_sender(
                f"mailto://127.0.0.1:{smtp}?smtp=127.0.0.1&from=a@b.example&to=c@d.example&mode=insecure"
            ),
        },
    }


def describe(outcome: Any) -> str:
    """What the sender reports."""
    if isinstance(outcome, DeliveryResult):
        lasting = "lasts" if outcome.is_lasting else "may pass"
        wait = f", retry after {outcome.retry_after_s:g} s" if outcome.retry_after_s is not None else ""
        return "accepted" if outcome.is_accepted else f"refused ({lasting}{wait}): {outcome.text[:90]}"
    messages = "; ".join(entry.message for entry in outcome.logs())
    return "accepted" if outcome else f"refused: {messages[:110]}"


async def measure() -> None:
    """Messages per second, one after another."""
    endpoint, mails = HttpEndpoint(), SmtpEndpoint()
    async with endpoint.up(), mails.up():
        for channel, sides in senders(endpoint.port, mails.port).items():
            for side, send in sides.items():
                first = await send()
                begun, sent = time.perf_counter(), 0
                while sent < MESSAGES and time.perf_counter() - begun < MOST_S:
                    await send()
                    sent += 1
                took = time.perf_counter() - begun
                print(
                    f"{channel:8} {side:8} {sent} in {took:.1f} s = {sent / took:.1f}/s ({describe(first)})", flush=True
                )


async def judge() -> None:
    """Faults of a webhook's other side."""
    for fault, status, headers, delay_s in (
        ("wrong token", 401, {}, 0.0),
        ("too many requests", 429, {"Retry-After": "120"}, 0.0),
        ("server error", 503, {}, 0.0),
        ("redirection", 302, {"Location": "/elsewhere"}, 0.0),
        ("no answer", 200, {}, 30.0),
    ):
        for side in ("ours", "Apprise"):
            endpoint = HttpEndpoint(status=status, headers=dict(headers), delay_s=delay_s)
            async with endpoint.up():
                begun = time.perf_counter()
                outcome = await senders(endpoint.port, 1)["webhook"][side]()
                took = time.perf_counter() - begun
                print(
                    f"{fault:18} {side:8} {len(endpoint.received)} requests, {took:5.2f} s, {describe(outcome)}",
                    flush=True,
                )


async def answer_hugely(request: web.BaseRequest) -> web.StreamResponse:
    """A response body that is too large."""
    answer = web.StreamResponse()
    await answer.prepare(request)
    try:
        for _ in range(HUGE_BYTES // 2**20):
            await answer.write(b" " * 2**20)
    except ConnectionError:
        pass
    return answer


async def read_hugely() -> None:
    """How many bytes of an answer of 200 MiB are read, by the time it takes."""
    runner = web.ServerRunner(web.Server(answer_hugely), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    for side in ("ours", "Apprise"):
        begun = time.perf_counter()
        outcome = await senders(port, 1)["webhook"][side]()
        print(f"answer of 200 MiB  {side:8} {time.perf_counter() - begun:5.2f} s, {describe(outcome)}", flush=True)
    await runner.cleanup()


def main() -> None:
    """Measure and print."""
    for part in (measure, judge, read_hugely):
        asyncio.run(part())


if __name__ == "__main__":
    main()
