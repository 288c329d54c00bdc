"""``clusterscape runs``: runs recorded on this machine: list, show, upload, delete."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clusterscape.cli.options import CONNECTION, JsonOption, TokenOption, example
from clusterscape.cli.output import count, listing_table, print_json, stderr, stdout, styled_line
from clusterscape.errors import ConfigError, RefusedError
from clusterscape.model.quantities import format_duration

if TYPE_CHECKING:
    from clusterscape.track.upload import RunTarget

app = typer.Typer(help="Runs recorded on this machine: list, show, upload, delete.", no_args_is_help=True)

ServerOption = Annotated[
    str | None,
    typer.Option(
        "--url",
        help="URL of a ClusterScape server.",
        envvar="CLUSTERSCAPE_URL",
        show_envvar=True,
        rich_help_panel=CONNECTION,
    ),
]
MlflowOption = Annotated[
    str | None,
    typer.Option(
        "--mlflow",
        metavar="URI",
        help="URI of an MLflow server.",
        envvar="CLUSTERSCAPE_MLFLOW",
        show_envvar=True,
        rich_help_panel=CONNECTION,
    ),
]


@app.command("list", epilog=example("clusterscape runs list --limit 20"))
def list_runs(
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of runs.")] = 50, as_json: JsonOption = False
) -> None:
    """List recorded runs, newest first."""
    from clusterscape.track.places import state_folder
    from clusterscape.track.spooled import list_runs, read_run
    from clusterscape.track.upload import is_uploaded

    runs = [(read_run(folder), is_uploaded(folder)) for folder in list_runs(state_folder())[:limit]]
    if as_json:
        print_json([_brief(run) | {"is_uploaded": sent} for run, sent in runs])
        return
    table = listing_table()
    for heading in ("run", "name", "experiment", "state", "running", "samples", "sent", "cause"):
        table.add_column(heading, no_wrap=True)
    for run, sent in runs:
        about = run.about
        running = format_duration(run.times_s["running"])
        columns = (str(about.get("name") or ""), str(about.get("experiment") or ""), run.state, running)
        table.add_row(run.run, *columns, f"{run.samples:,}", "yes" if sent else "no", run.cause or "")
    stdout.print(table)


@app.command("show", epilog=example("clusterscape runs show 3f9a1c"))
def show_run(
    run: Annotated[str, typer.Argument(help="Id of the run, or a prefix or suffix of it.")], as_json: JsonOption = False
) -> None:
    """Show a run: times, outcome, metrics, environment."""
    from clusterscape.track.places import state_folder
    from clusterscape.track.spooled import find_run, read_run

    recorded = read_run(find_run(state_folder(), run))
    if as_json:
        print_json(
            _brief(recorded)
            | {
                "marks": recorded.marks,
                "listeners": recorded.listeners,
                "metrics": [metric._asdict() for metric in recorded.metrics],
                "environment": recorded.environment,
                "bytes_on_disk": recorded.bytes_on_disk,
                "is_torn": recorded.is_torn,
                "folder": str(recorded.folder),
            }
        )
        return
    cause = f": {recorded.cause}" if recorded.cause else ""
    stdout.print(styled_line((recorded.run, "bold"), f"  {recorded.state}{cause}"))
    stdout.print(f"  {recorded.about.get('command')} in {recorded.about.get('cwd')}", highlight=False)
    for name, seconds in recorded.times_s.items():
        stdout.print(f"  {name:8} {'–' if seconds is None else f'{seconds:.2f} s'}", highlight=False)
    for name, listener in recorded.listeners.items():
        missed = f", {listener['missed']} of {listener['ticks']} ticks missed" if listener["missed"] else ""
        line = f"  {name}: {listener['state']} {listener['message'] or ''}{missed}"
        stdout.print(line, highlight=False)
    for metric in recorded.metrics:
        where = f" of {metric.unit}" if metric.unit else ""
        last = "–" if metric.last is None else f"{metric.last:.6g}"
        stdout.print(f"  {metric.name}{where}: {metric.samples:,} × {metric.method}, last {last}", highlight=False)


@app.command("upload", epilog=example("clusterscape runs upload --url http://gpus.example.org:8321"))
def upload_runs(
    runs: Annotated[
        list[str] | None, typer.Argument(help="Ids of runs.", show_default="all that were not uploaded")
    ] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    mlflow: MlflowOption = None,
    as_json: JsonOption = False,
) -> None:
    """Upload runs to a ClusterScape server, an MLflow server, or both; resumes partial uploads."""
    from clusterscape.cli.run_notice import announce_recorded
    from clusterscape.track.mlflow.sending import MlflowRuns, is_sent
    from clusterscape.track.mlflow.server import MlflowServer
    from clusterscape.track.places import state_folder
    from clusterscape.track.spooled import close_abandoned, find_run, list_runs, redact_spools
    from clusterscape.track.upload import RunServer, RunTarget, is_uploaded

    if not server and not mlflow:
        raise ConfigError(
            "no server given", hint="Use --url http://HOST:PORT or --mlflow URI, or set CLUSTERSCAPE_URL."
        )
    state = state_folder()
    folders = [find_run(state, run) for run in runs] if runs else list_runs(state)[::-1]
    for folder in folders:
        close_abandoned(folder)
        redact_spools(folder)
    targets: list[tuple[RunTarget, Callable[[Path], bool]]] = []
    if server:
        targets.append((RunServer(server, token), is_uploaded))
    if mlflow:
        targets.append((MlflowRuns(MlflowServer(mlflow, timeout_s=60.0), state), is_sent))
    sent_by_server: dict[str, dict[str, int]] = {}
    refused: dict[str, dict[str, str]] = {}
    for target, is_complete in targets:
        due = [folder for folder in folders if runs or not is_complete(folder)]
        announce_recorded(due, target.url, state)
        sent, refused[target.url] = _send_all(target, due)
        sent_by_server[target.url] = sent
        if not as_json:
            stderr.print(f"{count(len(sent), 'run')} uploaded to {target.url}")
    if as_json:
        url, sent = next(iter(sent_by_server.items()))
        print_json({"server": url, "runs": sent, "servers": sent_by_server, "refused": refused})
    if any(refused.values()):
        raise typer.Exit(1)


def _send_all(target: "RunTarget", folders: Sequence[Path]) -> tuple[dict[str, int], dict[str, str]]:
    """Bytes sent by run, and error messages of refused runs; a refused run does not stop the others."""
    sent: dict[str, int] = {}
    refused: dict[str, str] = {}
    for folder in folders:
        try:
            sent[folder.name] = target.send(folder)
        except RefusedError as error:
            refused[folder.name] = error.message
            stderr.print(
                f"{folder.name} was not uploaded and is kept on disk: {error.message}", style="red", soft_wrap=True
            )
            stderr.print(error.hint or "", soft_wrap=True)
    return sent, refused


@app.command("delete", epilog=example("clusterscape runs delete 20261115-130501-3f9a1c --local"))
def delete_runs(
    runs: Annotated[list[str], typer.Argument(help="Ids of runs, from `clusterscape runs list` or the page.")],
    server: ServerOption = None,
    token: TokenOption = None,
    local: Annotated[bool, typer.Option("--local", help="Also delete the recordings on this machine.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete runs permanently: on a server, on this machine (--local), or both."""
    import shutil

    from clusterscape.track.places import state_folder
    from clusterscape.track.spooled import find_run, is_running
    from clusterscape.track.upload import RunServer

    if not server and not local:
        raise ConfigError("no server given", hint="Use --url http://HOST:PORT, or --local for this machine.")
    folders = [find_run(state_folder(), run) for run in runs] if local else []
    running = [folder.name for folder in folders if is_running(folder)]
    if running:
        raise ConfigError(f"{', '.join(running)} is still running", hint="Wait until it ends, or stop it.")
    ids = [folder.name for folder in folders] if local else list(dict.fromkeys(runs))
    places = [f"on {server}"] * bool(server) + ["on this machine"] * local
    if not yes:
        if not sys.stdin.isatty():
            raise ConfigError("cannot ask for confirmation: standard input is not a terminal", hint="Use --yes.")
        typer.confirm(f"Delete {', '.join(ids)} {' and '.join(places)}, with all samples?", abort=True, err=True)
    if server:
        target = RunServer(server, token, timeout_s=120.0)
        for run in ids:
            target.delete(run)
    for folder in folders:
        shutil.rmtree(folder)
    if as_json:
        print_json({"server": server, "deleted": ids, "is_local": local})
    else:
        stderr.print(f"{count(len(ids), 'run')} deleted {' and '.join(places)}")


def _brief(run: Any) -> dict[str, Any]:
    about = {key: value for key, value in run.about.items() if key not in ("run", "queued_at")}
    return {
        "run": run.run,
        "state": run.state,
        "cause": run.cause,
        **about,
        "params": run.params,
        "tags": run.tags,
        "times_s": run.times_s,
        "moments": run.moments,
        "samples": run.samples,
    }
