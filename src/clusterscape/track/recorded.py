"""Runs that are to be repeated, as their files on this machine or a server tell them, with those they executed with."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from clusterscape.errors import NotFoundError
from clusterscape.model.run_frames import FrameKind, decode_event, iter_frames
from clusterscape.track.spooled import find_run, list_runs, read_run
from clusterscape.track.tracked_run import TRACKER_FILE
from clusterscape.track.upload import RunServer

_HEAD_BYTES = 64 * 1024
"""Enough for a run's first event, which says what it is."""
_MOST_LISTED = 10_000


class RecordedRun(NamedTuple):
    """What a run was: ``about`` as its first event says it."""

    run: str
    about: Mapping[str, object]
    params: Mapping[str, str]
    environment: Mapping[str, object]


def find_recorded(state: Path, server: RunServer | None, run: str) -> list[RecordedRun]:
    """A run by its id or the beginning or end of it, first; then those that executed with it. Raises NotFoundError.

    What this machine has comes before what the server has.
    """
    try:
        return _read_together(find_run(state, run), state)
    except NotFoundError as error:
        if server is None:
            hint = f"{error.hint} One that only a server has needs --server (or CLUSTERSCAPE_URL)."
            raise NotFoundError(error.message, hint=hint) from None
        return _fetch_together(server, _fetch_id(server, run))


def _read_together(folder: Path, state: Path) -> list[RecordedRun]:
    first = _read(folder)
    if first.about.get("workload") is None:
        return [first]
    others = [other for other in list_runs(state) if other != folder and _is_together(_read_about(other), first.about)]
    return [first, *(_read(other) for other in reversed(others))]


def _is_together(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """A plan queues the runs of a workload at the same moment."""
    return all(one.get(name) == other.get(name) for name in ("queued_at", "experiment", "workload"))


def _read(folder: Path) -> RecordedRun:
    found = read_run(folder)
    return RecordedRun(
        found.run, found.about | {"queued_at": found.moments.get("queued")}, found.params, found.environment or {}
    )


def _read_about(folder: Path) -> Mapping[str, object]:
    """The first event of a run, without reading the rest; empty where there is none."""
    try:
        with (folder / TRACKER_FILE).open("rb") as file:
            head = file.read(_HEAD_BYTES)
        frame = next(iter_frames(head), None)
        return decode_event(frame.payload) if frame is not None and frame.kind == FrameKind.EVENT else {}
    except (OSError, ValueError):
        return {}


def _fetch_id(server: RunServer, run: str) -> str:
    listed = server.read(f"/api/v1/runs?limit={_MOST_LISTED}")
    ids = [str(one.get("run")) for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    matches = [one for one in ids if run and (one.startswith(run) or one.endswith(run))]
    if run in matches:
        return run
    if not matches:
        raise NotFoundError(f"no run `{run}` is on this machine or on {server.url}", hint="The page lists runs.")
    if len(matches) > 1:
        raise NotFoundError(f"`{run}` is {len(matches)} runs", hint="Give more of the id.")
    return matches[0]


def _fetch_together(server: RunServer, run: str) -> list[RecordedRun]:
    together = server.read(f"/api/v1/runs/workloads/{quote(run)}")
    rows = together.get("rows") if isinstance(together, dict) else None
    others = [str(row["run"]) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return [_fetch(server, one) for one in (run, *(one for one in others if one != run))]


def _fetch(server: RunServer, run: str) -> RecordedRun:
    answer = server.read(f"/api/v1/runs/{quote(run)}")
    told: Mapping[str, object] = answer if isinstance(answer, dict) else {}
    row = told.get("row")
    row = row if isinstance(row, dict) else {}
    environment, params = told.get("environment"), row.get("params")
    about = {name: row.get(name) for name in ("name", "experiment", "letter", "devices", "collocation", "host")}
    about |= {"command": told.get("command"), "cwd": told.get("cwd"), "listeners": told.get("listens_to")}
    return RecordedRun(
        run,
        about | {"workload": row.get("group"), "queued_at": row.get("queued_at")},
        {str(name): str(value) for name, value in params.items()} if isinstance(params, dict) else {},
        environment if isinstance(environment, dict) else {},
    )
