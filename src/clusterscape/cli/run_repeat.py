"""``clusterscape run --repeat``: a recorded run again, with those it executed with, after saying what is not the same now."""

import argparse
import os
import sys
import time
from collections.abc import Sequence

from clusterscape.cli.safe_text import one_line
from clusterscape.errors import ConfigError
from clusterscape.track.devices import check_devices
from clusterscape.track.plans.collocation import MIG, parse_collocation
from clusterscape.track.plans.sharing import Seat, check_instances, hold_seats
from clusterscape.track.recorded import RecordedRun, find_recorded
from clusterscape.track.redaction import MASK
from clusterscape.track.repeat import compare, fill_masked, patterns_of, request_of
from clusterscape.track.reproduce import describe
from clusterscape.track.tracked_run import RunRequest, TrackedRun, host_name
from clusterscape.track.tracker import TrackOptions, track
from clusterscape.track.upload import RunServer


def repeat(options: argparse.Namespace, tracking: TrackOptions, python: str) -> list[TrackedRun]:
    """Run it; raises ConfigError where it cannot be the same, NotFoundError where nobody knows it."""
    if options.words:
        raise ConfigError("--repeat takes no script", hint=f"clusterscape run --repeat {options.repeat}")
    server = RunServer(options.server, options.token) if options.server else None
    recorded = find_recorded(tracking.state, server, options.repeat)
    if options.alone:
        recorded = recorded[:1]
    requests = [_renamed(request_of(run, cwd=options.cwd, python=python), options) for run in recorded]
    _compare(recorded, requests, options)
    requests = fill_masked(requests, options.fill, os.environ)
    if options.alone:
        requests = [one._replace(collocation=None, workload=options.workload, letter=None) for one in requests]
    elif len(requests) > 1 and not options.quiet:
        sys.stderr.write(f"clusterscape: {len(requests)} runs executed together, and do again; --alone runs one\n")
    return _run(requests, tracking, options)


def _run(requests: Sequence[RunRequest], tracking: TrackOptions, options: argparse.Namespace) -> list[TrackedRun]:
    """Together, sharing their devices as they did."""
    seats = [Seat(request.devices, parse_collocation(request.collocation or "")) for request in requests]
    check_devices({device for seat in seats for device in seat.devices})
    if any(seat.collocation.kind == MIG for seat in seats) and not options.allow_mig:
        raise ConfigError(
            f"run {options.repeat} had a MIG instance ({seats[0].collocation})",
            hint="Allow it with --allow-mig; instances are removed at the end. --alone runs it on the whole GPU.",
        )
    check_instances(seats)
    if all(request.collocation is None for request in requests):
        return track(requests, tracking)  # not of a plan: it held no devices then, and holds none now
    with hold_seats(seats, tracking.state, wait_s=None, on_wait=_tell_waiting) as held:
        now = time.time_ns() // 1_000_000
        together = [
            request._replace(
                environ=own.environ, instances=own.instances, queued_at=now, keeps_output=len(requests) > 1
            )
            for request, own in zip(requests, held, strict=True)
        ]
        return track(together, tracking._replace(ends_leftovers=True))


def _renamed(request: RunRequest, options: argparse.Namespace) -> RunRequest:
    return request._replace(
        name=options.name or request.name,
        experiment=options.experiment or request.experiment,
        workload=options.workload or request.workload,
    )


def _compare(recorded: Sequence[RecordedRun], requests: Sequence[RunRequest], options: argparse.Namespace) -> None:
    """Say what differs, each thing once; raises ConfigError where it is the code."""
    code: dict[str, None] = {}
    around: dict[str, None] = {}
    for run, request in zip(recorded, requests, strict=True):
        now = describe(request.cwd, os.environ, request.words, patterns_of(run))
        differs = compare(run.environment, now)
        code |= dict.fromkeys(differs.code)
        around |= dict.fromkeys(differs.surroundings)
        if (host := run.about.get("host")) not in (None, host_name()):
            around[f"host: {host_name()}; it was {host}"] = None
        for listener in request.listeners:
            if MASK in str(listener):
                around[f"listener {listener}: its address holds a masked value"] = None
        if request.words[0] != (was := _first_word(run)):
            around[f"program: {request.words[0]}; it was {was}"] = None
    if not options.quiet:
        for line in (*code, *around):
            sys.stderr.write(f"clusterscape: not the same: {one_line(line)}\n")
    if code and not options.anyway:
        raise ConfigError(
            f"the code is not that of run {recorded[0].run}",
            hint="Bring it back (git checkout), or repeat it with --anyway.",
        )


def _first_word(run: RecordedRun) -> str:
    command = run.about.get("command")
    return str(command[0]) if isinstance(command, list) and command else ""


def _tell_waiting(device: str) -> None:
    sys.stderr.write(f"clusterscape: waits for device {device}, which a plan uses\n")
