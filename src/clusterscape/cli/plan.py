"""``clusterscape plan``: executes the runs of a CSV or TOML file; resumable."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from clusterscape.cli.options import JsonOption, TokenOption
from clusterscape.cli.output import print_json, stderr, stdout
from clusterscape.cli.runs import MlflowOption, ServerOption
from clusterscape.errors import ConfigError

if TYPE_CHECKING:
    from clusterscape.track.plans.plan import PlannedRun, RunPlan
    from clusterscape.track.tracked_run import TrackedRun


def plan(
    file: Annotated[Path, typer.Argument(help="Plan file: CSV (as in radT) or TOML.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would run, and exit.")] = False,
    retries: Annotated[int, typer.Option(min=0, help="Retries of each failed run.")] = 0,
    skip_failed: Annotated[bool, typer.Option("--skip-failed", help="Do not run again what failed before.")] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop after the first workload with a failed run.")] = False,
    show_output: Annotated[
        bool, typer.Option("--show-output", help="Print the output of runs instead of writing it to a file each.")
    ] = False,
    allow_mig: Annotated[
        bool, typer.Option("--allow-mig", help="Create and delete the MIG instances that runs need.")
    ] = False,
    device_wait_s: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds to wait for devices that another plan uses.", show_default="no limit"),
    ] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    mlflow: MlflowOption = None,
    as_json: JsonOption = False,
) -> None:
    """Execute a plan: workloads one after another, the runs of a workload together. Finished runs are skipped."""
    from clusterscape.cli.run import Sender, find_python
    from clusterscape.track.places import state_folder
    from clusterscape.track.plans.execute import PlanOptions, check_mig, due_workloads, execute
    from clusterscape.track.plans.plan import check_plan, find_missing_devices
    from clusterscape.track.reproduce import parse_patterns

    state = state_folder()
    run_plan = read_plan(file, state)
    check_plan(run_plan, allows_mig=allow_mig or dry_run, is_for_here=not dry_run)
    due = due_workloads(run_plan, skips_failed=skip_failed)
    if dry_run:
        _print_due(run_plan, due, find_missing_devices(run_plan), as_json=as_json)
        return
    check_mig(due)
    sender = Sender(server, token, mlflow, parse_patterns([]))
    options = PlanOptions(
        state=state,
        python=find_python(),
        retries=retries,
        skips_failed=skip_failed,
        stops_at_failure=stop,
        shows_output=show_output,
        device_wait_s=device_wait_s,
        track=sender.options(),
    )
    with _Watcher(sum(map(len, due)), is_quiet=as_json or show_output) as watcher:
        result = execute(run_plan, options, watcher)
    if as_json:
        print_json(result._asdict())
    else:
        stdout.print(
            f"{result.finished} finished, {result.failed} failed, {result.cancelled} stopped, "
            f"{result.skipped} skipped{sender.describe()}",
            highlight=False,
        )
    if result.failed or result.cancelled:
        raise typer.Exit(130 if result.cancelled else 1)


def read_plan(file: Path, state: Path) -> "RunPlan":
    """Read a CSV or TOML plan, by its suffix."""
    from clusterscape.track.plans.radt_csv import read_csv_plan
    from clusterscape.track.plans.toml_plan import read_toml_plan

    if file.suffix.lower() == ".csv":
        return read_csv_plan(file)
    if file.suffix.lower() == ".toml":
        return read_toml_plan(file, state)
    raise ConfigError(
        f"{file} is not a plan", hint="A plan ends in .csv or .toml; run a script with `clusterscape run`."
    )


class _Watcher:
    """Prints progress, with a bar on a terminal. Has no refresh thread: the tracker forks while no other thread runs."""

    def __init__(self, total: int, *, is_quiet: bool) -> None:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        self._bar = Progress(
            *columns, console=stderr, auto_refresh=False, disable=is_quiet or not sys.stderr.isatty(), transient=True
        )
        self._task = self._bar.add_task("plan", total=total)
        self._is_quiet = is_quiet

    def __enter__(self) -> "_Watcher":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def workload_started(self, runs: "Sequence[PlannedRun]", attempt: int) -> None:
        """These runs start together."""
        retry = f", attempt {attempt + 1}" if attempt else ""
        where = f"{runs[0].experiment} / {runs[0].workload}"
        for name in sorted({name for run in runs for name in run.later}):
            self._print(f"listener {name} is not supported; runs continue without it")
        self._print(f"workload {where}: {len(runs)} together{retry}")
        self._bar.update(self._task, description=where, refresh=True)

    def run_ended(self, run: "PlannedRun", tracked: "TrackedRun") -> None:
        """A run has ended."""
        outcome = tracked.outcome
        assert outcome is not None
        ending = outcome.state if outcome.cause is None else f"{outcome.state}: {outcome.cause}"
        self._print(f"  {tracked.id} {tracked.request.letter} {run.file.name} {ending}")
        self._bar.update(self._task, advance=1, refresh=True)

    def waiting(self, device: str) -> None:
        """Another plan uses a device."""
        self._print(f"waiting for device {device}, which another plan uses")

    def _print(self, text: str) -> None:
        if not self._is_quiet:
            stderr.print(text, highlight=False, soft_wrap=True)


def _print_due(
    plan: "RunPlan", due: "Sequence[Sequence[PlannedRun]]", missing: "Sequence[str]", *, as_json: bool
) -> None:
    """``missing``: what this machine lacks to execute the plan; a plan may be checked elsewhere than where it will run."""
    from clusterscape.track.plans.execute import letters

    rows: list[list[dict[str, Any]]] = [
        [
            {
                "experiment": run.experiment,
                "workload": run.workload,
                "letter": letter,
                "file": str(run.file),
                "arguments": list(run.words),
                "devices": list(run.devices),
                "collocation": str(run.collocation),
                "listeners": [choice.name for choice in run.listeners],
                "status": plan.book.status(run.key),
            }
            for run, letter in zip(group, letters(group), strict=True)
        ]
        for group in due
    ]
    if as_json:
        skipped = len(plan.runs) - sum(map(len, due))
        print_json({"workloads": rows, "skipped": skipped, "missing_devices": list(missing)})
        return
    for group in rows:
        stdout.print(f"workload {group[0]['experiment']} / {group[0]['workload']}, together:", highlight=False)
        for run in group:
            words = " ".join([Path(run["file"]).name, *run["arguments"]])
            devices = "any GPU" if not run["devices"] else f"GPU {'+'.join(run['devices'])}"
            where = "cpu" if run["devices"] == ["cpu"] else devices
            sharing = "" if run["collocation"] == "-" else f", {run['collocation']}"
            stdout.print(f"  {run['letter']}: {words}  ({where}{sharing})", highlight=False)
    if missing:
        others = f" ({len(missing) - 1} more like it)" if len(missing) > 1 else ""
        stderr.print(
            f"This plan cannot be executed here: {missing[0]}{others}", style="yellow", highlight=False, soft_wrap=True
        )
