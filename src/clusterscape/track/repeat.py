"""Runs a recorded run again: what it was, and what is not the same now. Reads the spool; compares, but changes nothing."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from clusterscape.errors import ConfigError
from clusterscape.track.listeners import parse_listeners
from clusterscape.track.reproduce import MASK
from clusterscape.track.spooled import SpooledRun
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


def request_of(run: SpooledRun) -> RunRequest:
    """The same again. Raises ConfigError where the run does not say what it was."""
    about = run.about
    command, cwd = about.get("command"), about.get("cwd")
    if not isinstance(command, list) or not command or not isinstance(cwd, str):
        raise ConfigError(f"run {run.run} does not say what it ran", hint="Only its own files can tell: is it whole?")
    if not Path(cwd).is_dir():
        raise ConfigError(f"the folder of run {run.run} is gone: {cwd}", hint="Bring it back, then repeat the run.")
    if about.get("collocation") not in (None, "", "-"):
        raise ConfigError(
            f"run {run.run} shared its GPU ({about['collocation']})",
            hint="Run its plan again: alone it would not be the same.",
        )
    listeners = about.get("listeners")
    devices = about.get("devices")
    choices, _ = parse_listeners([str(word) for word in listeners] if isinstance(listeners, list) else [])
    return RunRequest(
        words=[str(word) for word in command],
        cwd=Path(cwd),
        name=str(about.get("name") or command[0]),
        experiment=_text(about.get("experiment")),
        workload=_text(about.get("workload")),
        letter=_text(about.get("letter")),
        devices=tuple(map(str, devices)) if isinstance(devices, list) else (),
        params=run.params,
        listeners=choices,
    )


def compare(then: Mapping[str, object], now: Mapping[str, object]) -> Differences:
    """What differs between two descriptions that ``reproduce.describe`` made."""
    code = list(_compare_git(then.get("git"), now.get("git")))
    around: list[str] = []
    for what, names in (("variable", "environ"), ("package", "packages")):
        around += _compare_names(what, _words(then.get(names)), _words(now.get(names)))
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
    if then.get("diff") != now.get("diff"):
        yield "uncommitted changes: not those of then"


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
