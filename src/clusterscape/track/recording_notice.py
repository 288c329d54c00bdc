"""The notice that lists the data a run records and sends, shown before the first upload to each server."""

import contextlib
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from clusterscape.track.places import notices_file
from clusterscape.track.redaction import MASK, Redactor
from clusterscape.track.reproduce import describe, describe_git, packages, select_variables
from clusterscape.track.tracked_run import RunRequest, child_environ, describe_request

_VERSION = 1
"""Increased when runs record another kind of data, so that the notice is shown again."""
_ALSO = (
    "also: user, host, driver, topology; metrics, parameters, tags and phases of the script; hardware samples; "
    "the exception it ends with",
    "never: other variables. Masked: values whose name or shape is a secret's (passwords, tokens, keys)",
)


class RecordingNotice(NamedTuple):
    """``variables`` by name with masked values; sizes are given for data that is too long to show."""

    commands: list[list[str]]
    cwd: str
    variables: dict[str, str]
    packages: int
    commit: str | None = None
    remote: str | None = None
    diff_bytes: int = 0
    untracked: int = 0

    def lines(self, targets: Sequence[str]) -> list[str]:
        """The lines for a terminal."""
        masked = [name for name, value in self.variables.items() if MASK in value]
        code = f"commit {self.commit}, {self.diff_bytes:,} bytes of uncommitted changes" if self.commit else "no git"
        return [
            f"this run is recorded and {'sent to ' + ', '.join(targets) if targets else 'not sent'}:",
            *(f"  command: {shlex.join(command)}" for command in self.commands),
            f"  folder: {self.cwd}; {code}; names of {self.untracked} untracked files; {self.packages} packages",
            f"  variables: {', '.join(self.variables) or 'none'}",
            *([f"  masked of these: {', '.join(masked)}"] if masked else []),
            *(f"  {line}" for line in _ALSO),
            "  `--show-recorded` prints all of it without running; `--record-env` changes the variables.",
        ]


def preview(requests: Sequence[RunRequest], patterns: Sequence[str]) -> RecordingNotice:
    """The notice for runs that have not started; reads git and packages of the first."""
    request = requests[0]
    environ = child_environ(request)
    description = {
        "git": describe_git(request.cwd),
        "environ": select_variables(environ, patterns),
        "packages": packages(request.words[0]),
        "cwd": str(request.cwd),
    }
    redactor = Redactor(environ, request.words)
    return summarize(redactor.fields(description), [redactor.words(request.words) for request in requests])


def summarize(environment: Mapping[str, object], commands: list[list[str]]) -> RecordingNotice:
    """The notice for the result of ``describe`` or for a spool."""
    git, variables, versions = environment.get("git"), environment.get("environ"), environment.get("packages")
    git = git if isinstance(git, Mapping) else {}
    untracked = git.get("untracked")
    return RecordingNotice(
        commands=commands,
        cwd=str(environment.get("cwd")),
        variables={str(name): str(value) for name, value in variables.items()}
        if isinstance(variables, Mapping)
        else {},
        packages=len(versions) if isinstance(versions, Mapping) else 0,
        commit=git.get("commit"),
        remote=git.get("remote"),
        diff_bytes=len(str(git.get("diff") or "").encode()),
        untracked=len(untracked) if isinstance(untracked, Sequence) else 0,
    )


def describe_whole(request: RunRequest, patterns: Sequence[str]) -> dict[str, object]:
    """All data recorded before the command starts: the events ``run`` and ``environment``."""
    environ = child_environ(request)
    redactor = Redactor(environ, request.words)
    return {
        "run": redactor.fields(describe_request(request)),
        "environment": describe(request.cwd, environ, request.words, patterns),
    }


class ShownNotices:
    """Variables that were listed to the user, by server; a new variable causes the notice to be shown again."""

    def __init__(self, state: Path) -> None:
        self._file = notices_file(state)

    def is_shown(self, target: str, variables: Iterable[str]) -> bool:
        """Whether all data that would be sent was listed before."""
        shown = self._read().get(target)
        return isinstance(shown, list) and set(variables) <= set(shown)

    def remember(self, targets: Iterable[str], variables: Iterable[str]) -> None:
        """Store that the notice was shown; if the disk is not writable, it is shown again next time."""
        servers = self._read()
        for target in targets:
            before = servers.get(target)
            servers[target] = sorted({*variables, *(before if isinstance(before, list) else ())})
        temporary = self._file.with_suffix(".new")
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            temporary.write_text(json.dumps({"version": _VERSION, "servers": servers}), "utf-8")
            temporary.replace(self._file)

    def _read(self) -> dict[str, object]:
        try:
            document = json.loads(self._file.read_text("utf-8"))
            servers = document["servers"] if document["version"] == _VERSION else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return servers if isinstance(servers, dict) else {}
