"""Reads what runs said of themselves: one JSON object a line with ``t`` (Unix seconds), ``pid``, ``mode`` and ``phase``.

A run begins with its first line (phase ``start``) and ends with phase ``end``.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clusterscape.errors import SourceError
from clusterscape.model import UnixMs, WorkloadId

START, END = "start", "end"


@dataclass(frozen=True, slots=True)
class RunSpan:
    """When a run had the GPUs. ``gpus`` are the indices it named; none: all of the machine's."""

    workload: WorkloadId
    name: str
    from_at: UnixMs
    until_at: UnixMs | None
    gpus: tuple[int, ...] = ()


def read_run_events(path: Path) -> list[RunSpan]:
    """Runs in the order of their start."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None
    return parse_run_events(text, name=str(path))


def parse_run_events(text: str, *, name: str = "the events") -> list[RunSpan]:
    """Runs in the order of their start. Lines that are no events are passed over, as is a torn last one."""
    spans: dict[tuple[str, int], RunSpan] = {}
    ended: list[RunSpan] = []
    for line in text.splitlines():
        event = _parse(line)
        if event is None:
            continue
        at, mode, pid, phase = event
        key = (mode, pid)
        if key in spans and phase == START:
            ended.append(spans.pop(key))
        span = spans.setdefault(key, RunSpan(WorkloadId(f"{mode}-{pid}"), mode, at, None, _gpus(line)))
        if phase == END:
            ended.append(RunSpan(span.workload, span.name, span.from_at, at, span.gpus))
            del spans[key]
    runs = sorted([*ended, *spans.values()], key=lambda span: span.from_at)
    if not runs:
        raise SourceError(
            f"{name} names no run",
            hint='A line looks like {"t": 1700000000.0, "pid": 1, "mode": "train", "phase": "start"}.',
        )
    return runs


def _parse(line: str) -> tuple[UnixMs, str, int, str] | None:
    event = _object(line)
    at, pid = event.get("t"), event.get("pid", 0)
    if not isinstance(at, int | float) or not math.isfinite(at) or not isinstance(pid, int):
        return None
    mode, phase = event.get("mode"), event.get("phase")
    return UnixMs(round(at * 1000)), str(mode if mode is not None else "run"), pid, str(phase)


def _gpus(line: str) -> tuple[int, ...]:
    """``"gpu": 3`` or ``"gpus": [0, 1]``."""
    event = _object(line)
    named = event.get("gpus", event.get("gpu"))
    listed = named if isinstance(named, list) else [named]
    return tuple(index for index in listed if isinstance(index, int))


def _object(line: str) -> Mapping[str, object]:
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}
