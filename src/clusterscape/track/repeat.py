"""Runs a recorded run again: what it was, and what is not the same now. Compares, but changes nothing."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from clusterscape.errors import ConfigError
from clusterscape.track.listeners import parse_listeners
from clusterscape.track.recorded import RecordedRun
from clusterscape.track.redaction import MASK, Redactor
from clusterscape.track.tracked_run import RunRequest

MOST_TOLD = 20
# Differ from one terminal or run to the next, and say nothing about the work.
_PASSING = frozenset(
    (
        *("_", "SHLVL", "PWD", "OLDPWD", "HOSTNAME", "DISPLAY", "PYTHONPATH"),
        *("TERM", "COLUMNS", "LINES", "LS_COLORS", "WINDOWID", "COLORTERM", "TERM_PROGRAM", "TERM_SESSION_ID"),
        *("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES"),  # told by the devices of the run
        *("MLFLOW_RUN_ID", "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_ID", "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"),
    )
)
_PASSING_BEGINNINGS = ("CLUSTERSCAPE_", "SSH_", "XDG_", "TMUX", "SLURM_", "VSCODE_", "CUDA_MPS_")


class Differences(NamedTuple):
    """``code``: commit, changes and interpreter; ``surroundings``: variables, packages, driver. Each a line of text."""

    code: list[str]
    surroundings: list[str]


def request_of(run: RecordedRun, *, cwd: Path | None = None, python: str | None = None) -> RunRequest:
    """The same again. ``cwd`` stands for its folder; ``python`` for its interpreter where that is not on this machine.

    Raises ConfigError where the run does not say what it was, or its folder or program is not here.
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
    """A script made elsewhere had another machine's interpreter: ours runs it then."""
    if shutil.which(cwd / words[0] if "/" in words[0] else words[0]) is not None:
        return words
    if python is not None and Path(words[0]).name.startswith("python"):
        return [python, *words[1:]]
    raise ConfigError(f"there is no program {words[0]} here", hint="Install it, then repeat the run.")


def compare(then: Mapping[str, object], now: Mapping[str, object]) -> Differences:
    """What differs between two descriptions that ``reproduce.describe`` made."""
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
        yield f"the folder is no git repository now; it was at commit {then.get('commit')}"
        return
    if then.get("commit") != now.get("commit"):
        yield f"commit: {now.get('commit')}; it was {then.get('commit')}"
    # Masked again: runs of earlier versions hold the diff as it was.
    if Redactor().diff(str(then.get("diff") or "")) != (now.get("diff") or ""):
        yield "uncommitted changes: not those of then"


def _list_missing(then: Mapping[str, object], now: Mapping[str, object]) -> Iterator[str]:
    """What the record lacks because it was masked."""
    git, today = then.get("git"), _words(now.get("environ"))
    if isinstance(git, Mapping) and MASK in str(git.get("diff")):
        yield "uncommitted changes hold masked values, which were not compared"
    for name, value in _words(then.get("environ")).items():
        if MASK in value and name not in today:
            yield f"variable {name}: not set; its value was masked"


def patterns_of(run: RecordedRun) -> Sequence[str]:
    """Which variables the run recorded; runs of earlier versions recorded all."""
    patterns = run.environment.get("environ_patterns")
    return [str(pattern) for pattern in patterns] if isinstance(patterns, list) else ["*"]


def fill_masked(
    requests: Sequence[RunRequest], variables: Sequence[str], environ: Mapping[str, str]
) -> list[RunRequest]:
    """Commands with their masked values taken from variables, in order. Raises ConfigError where there are not as many."""
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
    left = len(lines) - MOST_TOLD
    return [*lines[:MOST_TOLD], f"{left} more {what}s"] if left > 0 else lines


def _short(value: object) -> str:
    text = " ".join(str(value).split()) if value is not None else "unknown"
    return text if len(text) <= 60 else f"{text[:57]}…"


def _words(value: object) -> dict[str, str]:
    return {str(key): str(word) for key, word in value.items()} if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
