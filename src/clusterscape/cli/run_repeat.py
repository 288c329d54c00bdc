"""``clusterscape run --repeat``: repeats a recorded run with the other runs of its workload, and prints what has changed."""

import argparse
import os
import sys
import time
from collections.abc import Sequence

from clusterscape.cli.safe_text import one_line
from clusterscape.errors import ConfigError
from clusterscape.track.devices import check_devices
from clusterscape.track.plans.collocation import MIG, Seat, check_instances, hold_seats, parse_collocation
from clusterscape.track.redaction import MASK
from clusterscape.track.repeat import RecordedRun, compare, fill_masked, find_recorded, patterns_of, request_of
from clusterscape.track.reproduce import describe
from clusterscape.track.tracked_run import RunRequest, TrackedRun, host_name
from clusterscape.track.tracker import TrackOptions, track
from clusterscape.track.upload import RunServer


def repeat(options: argparse.Namespace, tracking: TrackOptions, python: str) -> list[TrackedRun]:
    """Repeat the run; raises ConfigError if it cannot be repeated, NotFoundError if there is no such run."""
    if options.words:
        raise ConfigError("--repeat takes no script", hint=f"Use `clusterscape run --repeat {options.repeat}`.")
    server = RunServer(options.server, options.token) if options.server else None
    recorded = find_recorded(tracking.state, server, options.repeat)
    if options.alone:
        recorded = recorded[:1]
    requests = [_renamed(request_of(run, cwd=options.cwd, python=python), options) for run in recorded]
    _print_differences(recorded, requests, options)
    requests = fill_masked(requests, options.fill, os.environ)
    if options.alone:
        requests = [request._replace(collocation=None, workload=options.workload, letter=None) for request in requests]
    elif len(requests) > 1 and not options.quiet:
        sys.stderr.write(f"clusterscape: repeating {len(requests)} runs that ran together; --alone repeats only one\n")
    return _run(requests, tracking, options)


def _run(requests: Sequence[RunRequest], tracking: TrackOptions, options: argparse.Namespace) -> list[TrackedRun]:
    """Run them together, with the same sharing of devices."""
    seats = [Seat(request.devices, parse_collocation(request.collocation or "")) for request in requests]
    check_devices({device for seat in seats for device in seat.devices})
    if any(seat.collocation.kind == MIG for seat in seats) and not options.allow_mig:
        raise ConfigError(
            f"run {options.repeat} had a MIG instance ({seats[0].collocation})",
            hint="Allow it with --allow-mig; instances are deleted at the end. --alone uses the whole GPU.",
        )
    check_instances(seats)
    if all(request.collocation is None for request in requests):
        return track(requests, tracking)  # not from a plan: devices are not reserved
    with hold_seats(seats, tracking.state, wait_s=None, on_wait=_print_waiting) as held:
        now = time.time_ns() // 1_000_000
        together = [
            request._replace(
                environ=held_seat.environ, instances=held_seat.instances, queued_at=now, keeps_output=len(requests) > 1
            )
            for request, held_seat in zip(requests, held, strict=True)
        ]
        return track(together, tracking._replace(ends_leftovers=True))


def _renamed(request: RunRequest, options: argparse.Namespace) -> RunRequest:
    return request._replace(
        name=options.name or request.name,
        experiment=options.experiment or request.experiment,
        workload=options.workload or request.workload,
    )


def _print_differences(
    recorded: Sequence[RecordedRun], requests: Sequence[RunRequest], options: argparse.Namespace
) -> None:
    """Print what has changed; raises ConfigError if the code has."""
    code: dict[str, None] = {}
    surroundings: dict[str, None] = {}
    for run, request in zip(recorded, requests, strict=True):
        now = describe(request.cwd, os.environ, request.words, patterns_of(run))
        differences = compare(run.environment, now)
        code |= dict.fromkeys(differences.code)
        surroundings |= dict.fromkeys(differences.surroundings)
        if (host := run.about.get("host")) not in (None, host_name()):
            surroundings[f"host: {host_name()}; it was {host}"] = None
        for listener in request.listeners:
            if MASK in str(listener):
                surroundings[f"listener {listener}: its address contains a masked value"] = None
        if request.words[0] != (was := _first_word(run)):
            surroundings[f"program: {request.words[0]}; it was {was}"] = None
    if not options.quiet:
        for line in (*code, *surroundings):
            sys.stderr.write(f"clusterscape: changed: {one_line(line)}\n")
    if code and not options.anyway:
        raise ConfigError(
            f"the code has changed since run {recorded[0].run}",
            hint="Restore it (git checkout), or repeat the run with --anyway.",
        )


def _first_word(run: RecordedRun) -> str:
    command = run.about.get("command")
    return str(command[0]) if isinstance(command, list) and command else ""


def _print_waiting(device: str) -> None:
    sys.stderr.write(f"clusterscape: waiting for device {device}, which a plan uses\n")
