"""The connection guard: counts, slow transfers, and a bounded log."""

import asyncio
import logging
import time
from dataclasses import dataclass

import pytest

from clusterscape.serve.http_guard import HttpGuard, Transfer
from clusterscape.serve.http_protocol import encode_refusal
from clusterscape.serve.refusals import LOG_EVERY_S, Refusal, Refusals
from clusterscape.settings.limits import HttpLimits


@dataclass(eq=False)
class IdleConnection:
    address: str
    first_check: "asyncio.Future[float] | None" = None

    def check(self, now: float) -> None:
        if self.first_check is not None and not self.first_check.done():
            self.first_check.set_result(now)


def test_transfer_is_too_slow_when_nothing_moves() -> None:
    transfer = Transfer(0.0, 0, stall_s=10, bytes_per_s=0)
    assert not transfer.is_too_slow(9.0, 0)
    assert not transfer.is_too_slow(9.5, 1)
    assert not transfer.is_too_slow(19.0, 1)
    assert transfer.is_too_slow(20.0, 1)


def test_transfer_is_too_slow_when_its_average_is() -> None:
    transfer = Transfer(0.0, 500, stall_s=10, bytes_per_s=100)
    assert not transfer.is_too_slow(10.0, 501), "the first seconds do not count"
    assert not transfer.is_too_slow(15.0, 1000)
    assert transfer.is_too_slow(20.0, 1400)


def test_transfer_is_not_too_slow_when_the_server_did_not_read() -> None:
    transfer = Transfer(0.0, 0, stall_s=10, bytes_per_s=100)
    for now in range(1, 100):
        transfer.hold(float(now))
    assert not transfer.is_too_slow(105.0, 0)
    assert transfer.is_too_slow(110.0, 0)


async def test_connections_are_counted_by_address_when_they_come_and_go() -> None:
    guard = HttpGuard(HttpLimits(connections=3, connections_per_address=2))
    first, second, third = (IdleConnection("2001:db8::1"), IdleConnection("2001:db8::2"), IdleConnection("2001:db8::3"))
    assert guard.admit(first)
    assert guard.admit(second)
    assert not guard.admit(third), "they are of one network"
    assert guard.admit(IdleConnection("192.0.2.1"))
    assert not guard.admit(IdleConnection("192.0.2.2")), "there are three in all"
    guard.release(third)
    assert guard.connections == 3
    guard.release(first)
    assert guard.admit(IdleConnection("2001:db8::4"))


async def test_connections_do_not_time_out_when_the_event_loop_is_blocked() -> None:
    guard = HttpGuard(HttpLimits(header_timeout_s=0.2))
    first_check = asyncio.get_running_loop().create_future()
    guard.admit(IdleConnection("192.0.2.1", first_check))
    time.sleep(0.5)  # noqa: ASYNC251 - that is what is tested
    assert 0 < await first_check < 0.2


async def test_fewer_connections_are_admitted_when_the_system_grants_fewer_files() -> None:
    guard = HttpGuard(HttpLimits(), most_connections=1)
    assert guard.admit(IdleConnection("192.0.2.1"))
    assert not guard.admit(IdleConnection("192.0.2.2"))


def test_one_record_a_minute_is_logged_when_much_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    refusals = Refusals(lambda: now[0])
    with caplog.at_level(logging.WARNING):
        for _ in range(1000):
            refusals.note(Refusal.LONG_URL)
        refusals.note(Refusal.SLOW_HEAD)
        assert len(caplog.records) == 2
        now[0] = LOG_EVERY_S
        refusals.write_log()
        refusals.write_log()
    assert [record.getMessage().split("(")[0] for record in caplog.records] == [
        "refused 1 requests ",
        "refused 1 requests ",
        "refused 999 requests ",
    ]
    assert refusals.counts[Refusal.LONG_URL] == 1000
    assert not refusals.has_unlogged


@pytest.mark.parametrize("refusal", Refusal)
def test_refusal_is_a_complete_response_when_it_is_sent(refusal: Refusal) -> None:
    head, _, body = encode_refusal(refusal).partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0].startswith(f"HTTP/1.1 {refusal.status} ")
    assert f"content-length: {len(body)}" in lines
    assert "connection: close" in lines
    assert "X-Content-Type-Options: nosniff" in lines


async def record_order(pipelined: int) -> list[str]:
    """Order of execution of pipelined requests that are ready at the same time and of other callbacks."""
    guard, loop, over = HttpGuard(), asyncio.get_running_loop(), asyncio.Event()
    order: list[str] = []

    def run_pipelined() -> None:
        order.append("pipelined")
        if order.count("pipelined") == pipelined:
            over.set()

    def run_other() -> None:
        order.append("other")
        if not over.is_set():
            loop.call_soon(run_other)

    for _ in range(pipelined):
        guard.start_pipelined(run_pipelined)
    loop.call_soon(run_other)
    await over.wait()
    return order


def test_others_run_between_any_two_pipelined_requests_however_many_are_ready() -> None:
    order = asyncio.run(record_order(50))
    assert order.count("pipelined") == 50
    assert not [at for at in range(1, len(order)) if order[at - 1] == order[at] == "pipelined"]
