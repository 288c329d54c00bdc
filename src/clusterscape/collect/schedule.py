"""Polls every collector at its interval and passes its observations to a sink."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence

from clusterscape.collect.contract import Collector
from clusterscape.model import Observation, SourceStatus, UnixMs
from clusterscape.supervision import BackgroundLoops, SupervisedLoop

log = logging.getLogger(__name__)

Sink = Callable[[Observation], Awaitable[None]]


async def run_collectors(
    collectors: Sequence[Collector],
    sink: Sink,
    clock: Callable[[], UnixMs],
    loops: BackgroundLoops | None = None,
) -> None:
    """Run until cancelled, then close every collector. A failure of one collector does not affect the others."""
    loops = loops or BackgroundLoops()
    try:
        async with asyncio.TaskGroup() as group:
            for collector in collectors:
                name = f"collect {collector.name}"
                loop = loops.loop(name, log, fails=f"{name} failed", works=f"{name} works again")
                group.create_task(_run(collector, sink, clock, loop), name=name)
    finally:
        await asyncio.gather(*(collector.close() for collector in collectors), return_exceptions=True)


async def _run(collector: Collector, sink: Sink, clock: Callable[[], UnixMs], loop: SupervisedLoop) -> None:
    """Poll at fixed times: a slow poll skips intervals instead of delaying all later ones."""
    due = time.monotonic()
    while True:
        with loop:
            await poll_once(collector, sink, clock)
        now = time.monotonic()
        missed = max(0, int((now - due) // collector.interval_s))
        due += (missed + 1) * collector.interval_s
        await asyncio.sleep(max(0.0, due - now))


async def poll_once(collector: Collector, sink: Sink, clock: Callable[[], UnixMs]) -> None:
    """Poll once. An exception that the collector did not catch is reported as a failed status, then raised again."""
    try:
        async for observation in collector.poll(clock()):
            await sink(observation)
    except Exception as error:
        await sink(
            SourceStatus(
                source=collector.name,
                kind=collector.name,
                is_ok=False,
                at=clock(),
                message=f"{type(error).__name__}: {error}",
                hint="This is a bug in ClusterScape; the log has the traceback.",
            )
        )
        raise
