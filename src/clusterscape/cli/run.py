"""``clusterscape run``: runs and tracks a script or command. Parses its own arguments, as those of the command follow them."""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from clusterscape.cli.safe_text import one_line, plain_lines, warn_of_old_server
from clusterscape.errors import ClusterScapeError, ConfigError
from clusterscape.track.hang_watch import HangFinding
from clusterscape.track.listeners import DEFAULT_LISTENERS, parse_listeners
from clusterscape.track.places import state_folder
from clusterscape.track.processes import PROFILERS, check_profiler
from clusterscape.track.reproduce import PATTERNS_VARIABLE, parse_patterns
from clusterscape.track.tracked_run import RunRequest
from clusterscape.track.tracker import BackgroundWork, TrackOptions, shell_code, track

if TYPE_CHECKING:
    from clusterscape.track.upload import RunServer, RunTarget, RunUploader

URL_VARIABLE = "CLUSTERSCAPE_URL"
MLFLOW_VARIABLE = "CLUSTERSCAPE_MLFLOW"
NO_HANG_WATCH_VARIABLE = "CLUSTERSCAPE_NO_HANG_WATCH"
SLOW_STEPS_VARIABLE = "CLUSTERSCAPE_SLOW_STEPS"
_USAGE = "clusterscape run [options] SCRIPT.py [arguments…]\n       clusterscape run [options] -- COMMAND [arguments…]"

_EXAMPLES = """examples:
  clusterscape run train.py --epochs 3
  clusterscape run --devices 0+1 --experiment resnet -- torchrun train.py
  clusterscape run --repeat 20261115-130501-3f9a1c"""


class _OldServer(argparse.Action):
    """``--server`` is the former name of ``--url``."""

    def __call__(self, parser: object, namespace: argparse.Namespace, values: object, option: object = None) -> None:
        del parser, option
        warn_of_old_server()
        namespace.server = values


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``clusterscape run``, with options in groups."""
    parser = argparse.ArgumentParser(
        prog="clusterscape run",
        usage=_USAGE,
        description="Run a script or command unchanged and track its hardware metrics.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-n", "--name", help="Name of the run; by default the name of the script.")
    parser.add_argument("-e", "--experiment", help="Experiment of the run.")
    parser.add_argument("-w", "--workload", help="Workload of the run.")
    parser.add_argument(
        "-d", "--devices", default="", help="GPUs for the run: 0, 1+2, or cpu; by default all that are visible."
    )
    parser.add_argument("--quiet", action="store_true", help="Do not print the summary line.")
    recording = parser.add_argument_group("recording")
    recording.add_argument(
        "-l",
        "--listeners",
        default="+".join(DEFAULT_LISTENERS),
        help="Metrics to sample (default: %(default)s); nvml=10 samples at 10 Hz.",
    )
    recording.add_argument(
        "--profile",
        choices=PROFILERS,
        help="Run under an NVIDIA profiler; the report is in the folder of the run. Slows the run down.",
    )
    recording.add_argument(
        "--record-slow-steps",
        action="store_true",
        help="Record PyTorch steps that take 1.3 times the median or more, after one was seen; in the folder of the run.",
    )
    recording.add_argument(
        "--record-env",
        metavar="PATTERN",
        action="append",
        default=[],
        help=f"Also record these environment variables: MY_*; !PATH excludes one, none all ({PATTERNS_VARIABLE}).",
    )
    recording.add_argument(
        "--show-recorded", action="store_true", help="Print what would be recorded and sent, and exit."
    )
    recording.add_argument(
        "--no-hang-watch",
        action="store_true",
        help="Do not look at the run's processes when it stops logging steps.",
    )
    recording.add_argument("--json", action="store_true", help="With --show-recorded: print JSON.")
    upload = parser.add_argument_group("upload")
    upload.add_argument(
        "--url",
        dest="server",
        metavar="URL",
        default=os.environ.get(URL_VARIABLE),
        help=f"URL of a ClusterScape server ({URL_VARIABLE}).",
    )
    upload.add_argument("--server", action=_OldServer, help=argparse.SUPPRESS)
    upload.add_argument(
        "--token",
        default=os.environ.get("CLUSTERSCAPE_SERVER__TOKEN"),
        help="API token for that server (CLUSTERSCAPE_SERVER__TOKEN).",
    )
    upload.add_argument(
        "--mlflow",
        metavar="URI",
        default=os.environ.get(MLFLOW_VARIABLE),
        help=f"Also send to this MLflow server ({MLFLOW_VARIABLE}).",
    )
    repeating = parser.add_argument_group("repeat a recorded run")
    repeating.add_argument(
        "--repeat",
        metavar="RUN",
        help="Run a recorded run of this machine or of --url again, with the other runs of its workload.",
    )
    repeating.add_argument("--alone", action="store_true", help="Without the other runs of its workload.")
    repeating.add_argument("--cwd", metavar="FOLDER", type=Path, help="Run in another working directory.")
    repeating.add_argument("--anyway", action="store_true", help="Run even if the code has changed.")
    repeating.add_argument(
        "--fill",
        metavar="VARIABLE",
        action="append",
        default=[],
        help="Environment variable with the next masked value of the command; repeatable.",
    )
    repeating.add_argument(
        "--allow-mig", action="store_true", help="Create and delete the MIG instances that the run used."
    )
    parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def run_words(words: Sequence[str]) -> int:
    """Parse the arguments and run the command; returns its exit code."""
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

        show_recorded(_build_request(options), variables, sender.urls, as_json=options.json)
        return 0
    tracking = sender.options()
    if options.no_hang_watch:
        os.environ[NO_HANG_WATCH_VARIABLE] = "1"  # inherited by the run
        tracking = tracking._replace(judge_hang=None)
    if options.record_slow_steps:
        os.environ[SLOW_STEPS_VARIABLE] = "1"
    if options.repeat:
        from clusterscape.cli.run_repeat import repeat

        runs = repeat(options, tracking, find_python())
    else:
        runs = track([_build_request(options)], tracking)
    outcomes = [run.outcome for run in runs if run.outcome is not None]
    if not options.quiet:
        for number, (run, outcome) in enumerate(zip(runs, outcomes, strict=True), start=1):
            ending = outcome.state if outcome.cause is None else f"{outcome.state} ({outcome.cause})"
            sent = sender.describe() if number == len(runs) else ""
            sys.stderr.write(one_line(f"clusterscape: run {run.id} {ending}{sent}") + "\n")
            if link := sender.link(run.id):
                sys.stderr.write(f"clusterscape: {one_line(link)}\n")
    return shell_code(outcomes)


def _build_request(options: argparse.Namespace) -> RunRequest:
    command = find_command(options.words)
    choices, others = parse_listeners(options.listeners.split("+"))
    profilers = [name for name in (options.profile, *others) if name in PROFILERS]
    for name in (name for name in others if name not in PROFILERS):
        sys.stderr.write(f"clusterscape: listener {name} is not supported; the run continues without it\n")
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


class Sender(BackgroundWork):
    """Uploads runs to the given servers while they run. ``variables``: patterns of recorded environment variables."""

    def __init__(self, url: str | None, token: str | None, mlflow: str | None, variables: Sequence[str]) -> None:
        self._variables = variables
        self._targets: list[RunTarget] = []
        self._uploaders: list[RunUploader] = []
        self._server: RunServer | None = None
        if url:
            from clusterscape.track import upload as uploading

            self._server = uploading.RunServer(url, token)
            self._targets.append(self._server)
        if mlflow:
            from clusterscape.track.mlflow.sending import MlflowRuns
            from clusterscape.track.mlflow.server import MlflowServer

            self._targets.append(MlflowRuns(MlflowServer(mlflow), state_folder()))

    @property
    def urls(self) -> list[str]:
        """URLs of the servers."""
        return [target.url for target in self._targets]

    def options(self) -> TrackOptions:
        """Options of the tracker that upload through this sender."""
        return TrackOptions(
            state=state_folder(),
            start_background=self.begin,
            announce=self.announce,
            variables=self._variables,
            judge_hang=judge_looks,
            tell=tell,
        )

    def announce(self, requests: Sequence[RunRequest]) -> None:
        """Show what is recorded before it is sent to a server for the first time."""
        if self._targets:
            from clusterscape.cli.run_notice import announce

            announce(requests, self._variables, self.urls)

    def begin(self, folders: Sequence[Path]) -> BackgroundWork | None:
        """Start uploading; None if there is no server."""
        if not self._targets:
            return None
        from clusterscape.track import upload as uploading

        self._uploaders = [uploading.RunUploader(target, folders) for target in self._targets]
        return self

    def finish(self) -> None:
        """Upload the rest, to all servers at the same time."""
        for uploader in self._uploaders:
            uploader.stop()
        for uploader in self._uploaders:
            uploader.finish()

    def hurry(self) -> None:
        """Upload now."""
        for uploader in self._uploaders:
            uploader.hurry()

    def looked_elsewhere(self, folder: Path) -> int | None:
        """As the server last said."""
        return next(filter(None, (uploader.looked_elsewhere(folder) for uploader in self._uploaders)), None)

    def judge_all(self, folder: Path) -> HangFinding | None:
        """The server's verdict on the ranks of all machines."""
        if self._server is None:
            return None
        import msgspec

        from clusterscape.cli.hang_text import hang_lines
        from clusterscape.model.hangs import HangVerdict

        try:
            answer = self._server.read(f"/api/v1/runs/{folder.name}/hang")
            if not isinstance(answer, dict) or not isinstance(report := answer.get("report"), dict):
                return None
            verdict = msgspec.convert(report["verdict"], HangVerdict)
        except (ClusterScapeError, msgspec.ValidationError, KeyError):
            return None
        return HangFinding({}, hang_lines(verdict), verdict.is_hang, is_partial=report.get("is_partial") is True)

    def link(self, run: str) -> str | None:
        """The page of a run on the ClusterScape server; None if it was not uploaded there."""
        uploaded = any(uploader.target is self._server and not uploader.problem for uploader in self._uploaders)
        if self._server is None or not uploaded:
            return None
        return f"{self._server.url.rstrip('/')}/runs?{urlencode({'run_open': run})}"

    def describe(self) -> str:
        """Upload problems, for the summary line."""
        problems = [uploader.problem for uploader in self._uploaders if uploader.problem]
        if not problems:
            return ""
        return f"; not uploaded, kept on disk: {'; '.join(problems)}. Upload later with `clusterscape runs upload`"


MOST_EVENT_RANKS = 1024


def judge_looks(folders: Sequence[Path]) -> HangFinding | None:
    """The verdict on looks at a run that makes no steps. Imports what it needs only then."""
    from clusterscape.analyze.hang.condense import condense_look
    from clusterscape.analyze.hang.verdict import judge_hang
    from clusterscape.cli.hang_text import hang_lines
    from clusterscape.collect.hangs.reading import read_looks
    from clusterscape.model.hangs import write_plain

    try:
        looks = read_looks(folders)
        verdict = judge_hang(looks)
    except ClusterScapeError:
        return None
    event = {
        "kind": verdict.kind.value,
        "title": verdict.title,
        "reason": verdict.reason,
        "ranks": list(verdict.ranks[:MOST_EVENT_RANKS]),
        "place": verdict.place,
        "group": verdict.group,
        "collective": verdict.collective,
        "sequence": verdict.sequence,
        "since": verdict.since_ms,
        "certainty": verdict.certainty.value,
        "evidence": list(verdict.evidence[:32]),
        "advice": verdict.advice,
    }
    return HangFinding(
        event,
        hang_lines(verdict),
        verdict.is_hang,
        is_settled=verdict.is_settled,
        is_doubtful=verdict.is_doubtful,
        looks=[write_plain(condense_look(look)) for look in looks[:2]],
        is_partial=looks[-1].is_partial,
    )


def tell(lines: Sequence[str]) -> None:
    """Show lines to the user, marked as ours."""
    sys.stderr.write("".join(f"clusterscape: {one_line(line)}\n" for line in lines))
    sys.stderr.flush()


def find_command(words: Sequence[str]) -> list[str]:
    """The command line to execute; a script runs with the Python of the active environment."""
    command = list(words)
    is_command = bool(command) and command[0] == "--"
    if is_command:
        command = command[1:]
    if not command:
        raise ConfigError("no script or command", hint=_USAGE)
    if Path(command[0]).suffix.lower() in (".csv", ".toml") and not is_command:
        raise ConfigError(f"{command[0]} is a plan", hint=f"Use `clusterscape plan {command[0]}`.")
    if command[0].endswith(".py") and not is_command:
        if not Path(command[0]).is_file():
            raise ConfigError(f"script {command[0]} not found", hint="Check the path.")
        return [find_python(), *command]
    if shutil.which(command[0]) is None:
        raise ConfigError(
            f"command {command[0]} not found", hint="A script ends in .py; anything else must be a program on PATH."
        )
    return command


def find_python() -> str:
    """The Python of the active environment, else the one that runs ClusterScape."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        python = Path(os.environ.get(variable, "")) / "bin/python"
        if os.environ.get(variable) and python.exists():
            return str(python)
    return sys.executable


def _main_word(words: Sequence[str]) -> str:
    command = [word for word in words if word != "--"]
    return next((word for word in command if word.endswith(".py")), command[0])
