"""Repeats recorded runs: reads them from this machine or a server, and compares code and environment with the current ones."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from clusterscape.errors import ConfigError, NotFoundError
from clusterscape.model.run_frames import FrameKind, decode_event, iter_frames
from clusterscape.track.listeners import parse_listeners
from clusterscape.track.redaction import MASK, Redactor
from clusterscape.track.spooled import find_run, list_runs, read_run
from clusterscape.track.tracked_run import TRACKER_FILE, RunRequest
from clusterscape.track.upload import RunServer

_HEAD_BYTES = 64 * 1024
"""Bytes that contain a run's first event, which describes it."""
_MOST_LISTED = 10_000


class RecordedRun(NamedTuple):
    """A recorded run: ``about`` is the content of its first event."""

    run: str
    about: Mapping[str, object]
    params: Mapping[str, str]
    environment: Mapping[str, object]


def find_recorded(state: Path, server: RunServer | None, run: str) -> list[RecordedRun]:
    """A run by its id or a prefix or suffix of it, followed by the other runs of its workload. Raises NotFoundError.

    Runs on this machine take precedence over those on the server.
    """
    try:
        return _read_together(find_run(state, run), state)
    except NotFoundError as error:
        if server is None:
            hint = f"{error.hint} One that only a server has needs --url (or CLUSTERSCAPE_URL)."
            raise NotFoundError(error.message, hint=hint) from None
        return _fetch_together(server, _fetch_id(server, run))


def _read_together(folder: Path, state: Path) -> list[RecordedRun]:
    first = _read(folder)
    if first.about.get("workload") is None:
        return [first]
    others = [other for other in list_runs(state) if other != folder and _is_together(_read_about(other), first.about)]
    return [first, *(_read(other) for other in reversed(others))]


def _is_together(about: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """Whether runs belong to one workload: a plan queues them at the same time."""
    return all(about.get(name) == other.get(name) for name in ("queued_at", "experiment", "workload"))


def _read(folder: Path) -> RecordedRun:
    run = read_run(folder)
    return RecordedRun(run.run, run.about | {"queued_at": run.moments.get("queued")}, run.params, run.environment or {})


def _read_about(folder: Path) -> Mapping[str, object]:
    """The first event of a run, without reading the rest; empty if there is none."""
    try:
        with (folder / TRACKER_FILE).open("rb") as file:
            head = file.read(_HEAD_BYTES)
        frame = next(iter_frames(head), None)
        return decode_event(frame.payload) if frame is not None and frame.kind == FrameKind.EVENT else {}
    except (OSError, ValueError):
        return {}


def _fetch_id(server: RunServer, run: str) -> str:
    listed = server.read(f"/api/v1/runs?limit={_MOST_LISTED}")
    ids = [str(row.get("run")) for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    matches = [run_id for run_id in ids if run and (run_id.startswith(run) or run_id.endswith(run))]
    if run in matches:
        return run
    if not matches:
        raise NotFoundError(f"no run `{run}` is on this machine or on {server.url}", hint="The page lists runs.")
    if len(matches) > 1:
        raise NotFoundError(f"`{run}` matches {len(matches)} runs", hint="Give more characters of the id.")
    return matches[0]


def _fetch_together(server: RunServer, run: str) -> list[RecordedRun]:
    together = server.read(f"/api/v1/runs/workloads/{quote(run)}")
    rows = together.get("rows") if isinstance(together, dict) else None
    others = [str(row["run"]) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return [_fetch(server, run_id) for run_id in (run, *(other for other in others if other != run))]


def _fetch(server: RunServer, run: str) -> RecordedRun:
    answer = server.read(f"/api/v1/runs/{quote(run)}")
    answer_fields: Mapping[str, object] = answer if isinstance(answer, dict) else {}
    row = answer_fields.get("row")
    row = row if isinstance(row, dict) else {}
    environment, params = answer_fields.get("environment"), row.get("params")
    about = {name: row.get(name) for name in ("name", "experiment", "letter", "devices", "collocation", "host")}
    about |= {
        "command": answer_fields.get("command"),
        "cwd": answer_fields.get("cwd"),
        "listeners": answer_fields.get("listens_to"),
    }
    return RecordedRun(
        run,
        about | {"workload": row.get("group"), "queued_at": row.get("queued_at")},
        {str(name): str(value) for name, value in params.items()} if isinstance(params, dict) else {},
        environment if isinstance(environment, dict) else {},
    )


MAX_LISTED = 20
# Differ between terminals or runs without an effect on the work.
_PASSING = frozenset(
    (
        *("_", "SHLVL", "PWD", "OLDPWD", "HOSTNAME", "DISPLAY", "PYTHONPATH"),
        *("TERM", "COLUMNS", "LINES", "LS_COLORS", "WINDOWID", "COLORTERM", "TERM_PROGRAM", "TERM_SESSION_ID"),
        *("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES"),  # follow from the devices of the run
    )
)
_PASSING_BEGINNINGS = ("CLUSTERSCAPE_", "SSH_", "XDG_", "TMUX", "SLURM_", "VSCODE_", "CUDA_MPS_")


class Differences(NamedTuple):
    """``code``: commit, changes and interpreter; ``surroundings``: variables, packages, driver. Each a line of text."""

    code: list[str]
    surroundings: list[str]


def request_of(run: RecordedRun, *, cwd: Path | None = None, python: str | None = None) -> RunRequest:
    """The request to repeat a run. ``cwd`` replaces its folder, ``python`` its interpreter if that is not on this machine.

    Raises ConfigError if the record is incomplete, or if its folder or program does not exist on this machine.
    """
    about = run.about
    command, folder = about.get("command"), cwd or about.get("cwd")
    if not isinstance(command, list) or not command or not isinstance(folder, str | Path):
        raise ConfigError(f"run {run.run} does not say what it ran", hint="Only its own files can tell: is it whole?")
    if not Path(folder).is_dir():
        raise ConfigError(
            f"the folder of run {run.run} is not here: {folder}", hint="Bring it back, or give another with --cwd."
        )
    listeners = about.get("listeners")
    devices = about.get("devices")
    choices, _ = parse_listeners([str(word) for word in listeners] if isinstance(listeners, list) else [])
    return RunRequest(
        words=_find_program([str(word) for word in command], Path(folder), python),
        cwd=Path(folder),
        name=str(about.get("name") or command[0]),
        experiment=_text(about.get("experiment")),
        workload=_text(about.get("workload")),
        letter=_text(about.get("letter")),
        devices=tuple(map(str, devices)) if isinstance(devices, list) else (),
        collocation=_text(about.get("collocation")),
        params=run.params,
        tags={"repeats": run.run},
        listeners=choices,
        profiler=_text(about.get("profiler")),
    )


def _find_program(words: list[str], cwd: Path, python: str | None) -> list[str]:
    """The program; if the run's interpreter does not exist on this machine, the current one."""
    if shutil.which(cwd / words[0] if "/" in words[0] else words[0]) is not None:
        return words
    if python is not None and Path(words[0]).name.startswith("python"):
        return [python, *words[1:]]
    raise ConfigError(f"there is no program {words[0]} here", hint="Install it, then repeat the run.")


def compare(then: Mapping[str, object], now: Mapping[str, object]) -> Differences:
    """Differences between two results of ``reproduce.describe``."""
    code = list(_compare_git(then.get("git"), now.get("git")))
    around: list[str] = []
    for what, names in (("variable", "environ"), ("package", "packages")):
        around += _compare_names(what, _words(then.get(names)), _words(now.get(names)))
    around += _list_missing(then, now)
    for name in ("driver", "topology", "cpu", "system"):
        if then.get(name) != now.get(name):
            around.append(f"{name}: {_short(now.get(name))}; it was {_short(then.get(name))}")
    return Differences(code, around)


def _compare_git(then: object, now: object) -> Iterator[str]:
    if not isinstance(then, Mapping):
        return
    if not isinstance(now, Mapping):
        yield f"the folder is not a git repository now; it was at commit {then.get('commit')}"
        return
    if then.get("commit") != now.get("commit"):
        yield f"commit: {now.get('commit')}; it was {then.get('commit')}"
    # Masked again: runs of earlier versions hold the diff as it was.
    if Redactor().diff(str(then.get("diff") or "")) != (now.get("diff") or ""):
        yield "uncommitted changes: not those of then"


def _list_missing(then: Mapping[str, object], now: Mapping[str, object]) -> Iterator[str]:
    """Values that are missing in the record because they were masked."""
    git, today = then.get("git"), _words(now.get("environ"))
    if isinstance(git, Mapping) and MASK in str(git.get("diff")):
        yield "uncommitted changes hold masked values, which were not compared"
    for name, value in _words(then.get("environ")).items():
        if MASK in value and name not in today:
            yield f"variable {name}: not set; its value was masked"


def patterns_of(run: RecordedRun) -> Sequence[str]:
    """Patterns of the variables that the run recorded; runs of earlier versions recorded all."""
    patterns = run.environment.get("environ_patterns")
    return [str(pattern) for pattern in patterns] if isinstance(patterns, list) else ["*"]


def fill_masked(
    requests: Sequence[RunRequest], variables: Sequence[str], environ: Mapping[str, str]
) -> list[RunRequest]:
    """Commands with masked values replaced from variables, in order. Raises ConfigError if the numbers differ."""
    masked = [word for request in requests for word in request.words if MASK in word]
    count = sum(word.count(MASK) for word in masked)
    absent = [name for name in variables if name not in environ]
    if absent:
        raise ConfigError(f"variable {absent[0]} is not set", hint="Export it, then repeat the run.")
    if count != len(variables):
        commands = "; ".join(" ".join(request.words) for request in requests)
        raise ConfigError(
            f"masked values in the command: {count}, given with --fill: {len(variables)}: {commands}",
            hint="Give each as a variable that holds it, in order: --fill NAME.",
        )
    values = iter([environ[name] for name in variables])
    return [request._replace(words=[_fill(word, values) for word in request.words]) for request in requests]


def _fill(word: str, values: Iterator[str]) -> str:
    first, *rest = word.split(MASK)
    return first + "".join(next(values) + part for part in rest)


def _compare_names(what: str, then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    lines = []
    for name in sorted(then.keys() | now.keys()):
        before, after = then.get(name), now.get(name)
        if before == after or MASK in (before, after) or name in _PASSING or name.startswith(_PASSING_BEGINNINGS):
            continue
        was = "was not there" if before is None else f"was {_short(before)}"
        lines.append(f"{what} {name}: {'gone' if after is None else _short(after)}; it {was}")
    left = len(lines) - MAX_LISTED
    return [*lines[:MAX_LISTED], f"{left} more {what}s"] if left > 0 else lines


def _short(value: object) -> str:
    text = " ".join(str(value).split()) if value is not None else "unknown"
    return text if len(text) <= 60 else f"{text[:57]}…"


def _words(value: object) -> dict[str, str]:
    return {str(key): str(word) for key, word in value.items()} if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
