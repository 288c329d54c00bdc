"""``clusterscape run``: a script or command, tracked. Parses its words itself: they stand in front of another command's."""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clusterscape.errors import ClusterScapeError, ConfigError
from clusterscape.track.listeners import DEFAULT_LISTENERS, parse_listeners
from clusterscape.track.places import state_folder
from clusterscape.track.tracked_run import RunRequest
from clusterscape.track.tracker import BesideRuns, TrackOptions, track

if TYPE_CHECKING:
    from clusterscape.track.upload import SendBeside

URL_VARIABLE = "CLUSTERSCAPE_URL"
_USAGE = "clusterscape run [options] SCRIPT.py [arguments…]\n       clusterscape run [options] -- COMMAND [arguments…]"


def build_parser() -> argparse.ArgumentParser:
    """The options of ``run``."""
    parser = argparse.ArgumentParser(
        prog="clusterscape run", usage=_USAGE, description="Run a script or command unchanged and track its hardware."
    )
    parser.add_argument("-n", "--name", help="What to call the run; by default the script.")
    parser.add_argument("-e", "--experiment", help="The experiment it belongs to.")
    parser.add_argument("-w", "--workload", help="The workload it belongs to.")
    parser.add_argument("-d", "--devices", default="", help="GPUs it may use: 0, 1+2 or cpu; by default all it finds.")
    parser.add_argument(
        "-l",
        "--listeners",
        default="+".join(DEFAULT_LISTENERS),
        help="What to listen to (%(default)s), such as nvml=10.",
    )
    parser.add_argument(
        "--server", default=os.environ.get(URL_VARIABLE), help=f"ClusterScape to send to; also as {URL_VARIABLE}."
    )
    parser.add_argument("--token", default=os.environ.get("CLUSTERSCAPE_SERVER__TOKEN"), help="Its token.")
    parser.add_argument("--quiet", action="store_true", help="Say nothing at the end.")
    parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def run_words(words: Sequence[str]) -> int:
    """Run what the words say; returns the exit code of the command."""
    options = build_parser().parse_args(list(words))
    try:
        return _run(options)
    except ClusterScapeError as error:
        sys.stderr.write(f"error: {error.message}\n{error.hint or ''}\n")
        return error.exit_code


def _run(options: argparse.Namespace) -> int:
    command = find_command(options.words)
    choices, later = parse_listeners(options.listeners.split("+"))
    for name in later:
        sys.stderr.write(f"clusterscape: listener {name} is not there yet; the run goes on without it\n")
    from clusterscape.track.devices import parse_devices

    request = RunRequest(
        words=command,
        cwd=Path.cwd(),
        name=options.name or Path(options.words[-1] if len(command) == 1 else _main_word(options.words)).name,
        experiment=options.experiment,
        workload=options.workload,
        devices=parse_devices(options.devices),
        listeners=choices,
    )
    sender = Sender(options.server, options.token)
    (run,) = track([request], TrackOptions(state=state_folder(), beside=sender.begin))
    assert run.outcome is not None
    if not options.quiet:
        how = run.outcome.state if run.outcome.cause is None else f"{run.outcome.state} ({run.outcome.cause})"
        sys.stderr.write(f"clusterscape: run {run.id} {how}{sender.describe()}\n")
    return run.outcome.shell_code


class Sender:
    """Sends beside the run where a server was told."""

    def __init__(self, url: str | None, token: str | None) -> None:
        self._url = url
        self._token = token
        self._beside: SendBeside | None = None

    def begin(self, folders: Sequence[Path]) -> BesideRuns | None:
        """Where a server was told, start sending."""
        if not self._url:
            return None
        from clusterscape.track.upload import RunServer, SendBeside

        self._beside = SendBeside(RunServer(self._url, self._token), folders)
        return self._beside

    def describe(self) -> str:
        """What went wrong with sending, for the last line."""
        problem = self._beside.problem if self._beside else None
        return f"; kept on disk, not sent: {problem}. `clusterscape runs upload` sends it later" if problem else ""


def find_command(words: Sequence[str]) -> list[str]:
    """The words to execute: a script gets the Python of the user's environment in front."""
    told = list(words)
    is_command = bool(told) and told[0] == "--"
    if is_command:
        told = told[1:]
    if not told:
        raise ConfigError("nothing to run", hint=_USAGE)
    if Path(told[0]).suffix.lower() in (".csv", ".toml") and not is_command:
        raise ConfigError(f"{told[0]} is a plan", hint=f"clusterscape plan {told[0]}")
    if told[0].endswith(".py") and not is_command:
        if not Path(told[0]).is_file():
            raise ConfigError(f"there is no script {told[0]}", hint="Give the path of an existing file.")
        return [find_python(), *told]
    if shutil.which(told[0]) is None:
        raise ConfigError(
            f"there is no command {told[0]}", hint="A script ends in .py; everything else must be a program on PATH."
        )
    return told


def find_python() -> str:
    """The Python of the environment that is active, else the one ClusterScape runs in."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        python = Path(os.environ.get(variable, "")) / "bin/python"
        if os.environ.get(variable) and python.exists():
            return str(python)
    return sys.executable


def _main_word(words: Sequence[str]) -> str:
    told = [word for word in words if word != "--"]
    return next((word for word in told if word.endswith(".py")), told[0])
