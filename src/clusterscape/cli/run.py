"""``clusterscape run``: a script or command, tracked. Parses its words itself: they stand in front of another command's."""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clusterscape.cli.safe_text import one_line, plain_lines
from clusterscape.errors import ClusterScapeError, ConfigError
from clusterscape.track.listeners import DEFAULT_LISTENERS, parse_listeners
from clusterscape.track.places import state_folder
from clusterscape.track.profiler import PROFILERS, check_profiler
from clusterscape.track.recorded_variables import PATTERNS_VARIABLE, parse_patterns
from clusterscape.track.tracked_run import RunRequest
from clusterscape.track.tracker import BesideRuns, TrackOptions, shell_code, track

if TYPE_CHECKING:
    from clusterscape.track.upload import RunTarget, SendBeside

URL_VARIABLE = "CLUSTERSCAPE_URL"
MLFLOW_VARIABLE = "CLUSTERSCAPE_MLFLOW"
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
        "--profile",
        choices=PROFILERS,
        help="Profile it; the report lies in the run's folder. The run is slower for it.",
    )
    parser.add_argument(
        "--server", default=os.environ.get(URL_VARIABLE), help=f"ClusterScape to send to; also as {URL_VARIABLE}."
    )
    parser.add_argument("--token", default=os.environ.get("CLUSTERSCAPE_SERVER__TOKEN"), help="Its token.")
    parser.add_argument(
        "--mlflow",
        metavar="URI",
        default=os.environ.get(MLFLOW_VARIABLE),
        help=f"MLflow server to send to, too; also as {MLFLOW_VARIABLE}.",
    )
    parser.add_argument(
        "--record-env",
        metavar="PATTERN",
        action="append",
        default=[],
        help=f"Record these variables, too: MY_*; !PATH leaves one out, none all; also as {PATTERNS_VARIABLE}.",
    )
    parser.add_argument(
        "--show-recorded", action="store_true", help="Print what would be recorded and sent, and run nothing."
    )
    parser.add_argument("--json", action="store_true", help="With --show-recorded: machine-readable.")
    parser.add_argument(
        "--repeat",
        metavar="RUN",
        help="Run a recorded run of this machine or --server again, with those it executed with; says what is not the same.",
    )
    parser.add_argument("--alone", action="store_true", help="With --repeat: without those it executed with.")
    parser.add_argument("--cwd", metavar="FOLDER", type=Path, help="With --repeat: run it in another folder than then.")
    parser.add_argument(
        "--anyway", action="store_true", help="With --repeat: also where the code is not the same as then."
    )
    parser.add_argument(
        "--fill",
        metavar="VARIABLE",
        action="append",
        default=[],
        help="With --repeat: environment variable with the next masked value of the command.",
    )
    parser.add_argument(
        "--allow-mig", action="store_true", help="With --repeat: make and remove the MIG instances it had."
    )
    parser.add_argument("--quiet", action="store_true", help="Say nothing at the end.")
    parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def run_words(words: Sequence[str]) -> int:
    """Run what the words say; returns the exit code of the command."""
    options = build_parser().parse_args(list(words))
    try:
        return _run(options)
    except ClusterScapeError as error:
        sys.stderr.write(f"error: {one_line(error.message)}\n{plain_lines(error.hint or '')}\n")
        return error.exit_code


def _run(options: argparse.Namespace) -> int:
    variables = parse_patterns(options.record_env)
    sender = Sender(options.server, options.token, options.mlflow, variables)
    if options.show_recorded:
        from clusterscape.cli.run_notice import show_recorded

        show_recorded(_requested(options), variables, sender.urls, as_json=options.json)
        return 0
    tracking = sender.options(options.mlflow)
    if options.repeat:
        from clusterscape.cli.run_repeat import repeat

        runs = repeat(options, tracking, find_python())
    else:
        runs = track([_requested(options)], tracking)
    outcomes = [run.outcome for run in runs if run.outcome is not None]
    if not options.quiet:
        for number, (run, outcome) in enumerate(zip(runs, outcomes, strict=True), start=1):
            how = outcome.state if outcome.cause is None else f"{outcome.state} ({outcome.cause})"
            sent = sender.describe() if number == len(runs) else ""
            sys.stderr.write(one_line(f"clusterscape: run {run.id} {how}{sent}") + "\n")
    return shell_code(outcomes)


def _requested(options: argparse.Namespace) -> RunRequest:
    command = find_command(options.words)
    choices, others = parse_listeners(options.listeners.split("+"))
    profilers = [name for name in (options.profile, *others) if name in PROFILERS]
    for name in (name for name in others if name not in PROFILERS):
        sys.stderr.write(f"clusterscape: listener {name} is not there yet; the run goes on without it\n")
    from clusterscape.track.devices import parse_devices

    return RunRequest(
        words=command,
        cwd=Path.cwd(),
        name=options.name or Path(options.words[-1] if len(command) == 1 else _main_word(options.words)).name,
        experiment=options.experiment,
        workload=options.workload,
        devices=parse_devices(options.devices),
        listeners=choices,
        profiler=check_profiler(profilers[0]) if profilers else None,
    )


def hears_mlflow(mlflow: str | None) -> bool:
    """Whether scripts are heard: not those whose user told MLflow another place, unless we send there."""
    return bool(mlflow) or "MLFLOW_TRACKING_URI" not in os.environ


class Sender(BesideRuns):
    """Sends beside the runs, to each place that was told. ``variables``: patterns of those that runs record."""

    def __init__(self, url: str | None, token: str | None, mlflow: str | None, variables: Sequence[str]) -> None:
        self._variables = variables
        self._targets: list[RunTarget] = []
        self._beside: list[SendBeside] = []
        if url:
            from clusterscape.track.upload import RunServer

            self._targets.append(RunServer(url, token))
        if mlflow:
            from clusterscape.track.mlflow.sending import MlflowRuns
            from clusterscape.track.mlflow.server import MlflowServer

            self._targets.append(MlflowRuns(MlflowServer(mlflow), state_folder()))

    @property
    def urls(self) -> list[str]:
        """Where runs are sent to."""
        return [target.url for target in self._targets]

    def options(self, mlflow: str | None) -> TrackOptions:
        """Track with what is sent here."""
        return TrackOptions(
            state=state_folder(),
            beside=self.begin,
            hears_mlflow=hears_mlflow(mlflow),
            announce=self.announce,
            variables=self._variables,
        )

    def announce(self, requests: Sequence[RunRequest]) -> None:
        """Show what is recorded before it is sent to a server for the first time."""
        if self._targets:
            from clusterscape.cli.run_notice import announce

            announce(requests, self._variables, self.urls)

    def begin(self, folders: Sequence[Path]) -> BesideRuns | None:
        """Start sending, where there is somewhere to send to."""
        if not self._targets:
            return None
        from clusterscape.track.upload import SendBeside

        self._beside = [SendBeside(target, folders) for target in self._targets]
        return self

    def finish(self) -> None:
        """Send the rest; both at once."""
        for beside in self._beside:
            beside.stop()
        for beside in self._beside:
            beside.finish()

    def describe(self) -> str:
        """What went wrong with sending, for the last line."""
        problems = [beside.problem for beside in self._beside if beside.problem]
        if not problems:
            return ""
        return f"; kept on disk, not sent: {'; '.join(problems)}. `clusterscape runs upload` sends it later"


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
