"""``clusterscape runs``: runs on this machine's disk, with or without a server."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from clusterscape.cli.options import JsonOption, TokenOption
from clusterscape.cli.output import answers, count, duration, errors, print_json
from clusterscape.errors import ConfigError

app = typer.Typer(help="Tracked runs on this machine.", no_args_is_help=True)

ServerOption = Annotated[
    str | None, typer.Option("--server", help="ClusterScape to send to.", envvar="CLUSTERSCAPE_URL", show_envvar=True)
]
MlflowOption = Annotated[
    str | None,
    typer.Option(
        "--mlflow", metavar="URI", help="MLflow server to send to.", envvar="CLUSTERSCAPE_MLFLOW", show_envvar=True
    ),
]


@app.command("list")
def list_runs(
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50, as_json: JsonOption = False
) -> None:
    """List runs, newest first."""
    from clusterscape.track.places import state_folder
    from clusterscape.track.spooled import list_runs, read_run
    from clusterscape.track.upload import is_uploaded

    runs = [(read_run(folder), is_uploaded(folder)) for folder in list_runs(state_folder())[:limit]]
    if as_json:
        print_json([_brief(run) | {"is_uploaded": sent} for run, sent in runs])
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("run", "name", "experiment", "state", "running", "samples", "sent", "cause"):
        table.add_column(heading, no_wrap=True)
    for run, sent in runs:
        about = run.about
        running = duration(run.times_s["running"])
        told = (str(about.get("name") or ""), str(about.get("experiment") or ""), run.state, running)
        table.add_row(run.run, *told, f"{run.samples:,}", "yes" if sent else "no", run.cause or "")
    answers.print(table)


@app.command("show")
def show_run(
    run: Annotated[str, typer.Argument(help="Its id, or the beginning or end of it.")], as_json: JsonOption = False
) -> None:
    """Everything a run left behind: times, outcome, metrics, environment."""
    from clusterscape.track.places import state_folder
    from clusterscape.track.spooled import find_run, read_run

    found = read_run(find_run(state_folder(), run))
    if as_json:
        print_json(
            _brief(found)
            | {
                "marks": found.marks,
                "listeners": found.listeners,
                "metrics": [metric._asdict() for metric in found.metrics],
                "environment": found.environment,
                "bytes_on_disk": found.bytes_on_disk,
                "is_torn": found.is_torn,
                "folder": str(found.folder),
            }
        )
        return
    answers.print(f"[bold]{found.run}[/bold]  {found.state}{f': {found.cause}' if found.cause else ''}")
    answers.print(f"  {found.about.get('command')} in {found.about.get('cwd')}", markup=False, highlight=False)
    for name, seconds in found.times_s.items():
        answers.print(f"  {name:8} {'–' if seconds is None else f'{seconds:.2f} s'}", highlight=False)
    for name, listener in found.listeners.items():
        missed = f", {listener['missed']} of {listener['ticks']} ticks missed" if listener["missed"] else ""
        told = f"  {name}: {listener['state']} {listener['message'] or ''}{missed}"
        answers.print(told, markup=False, highlight=False)
    for metric in found.metrics:
        where = f" of {metric.unit}" if metric.unit else ""
        last = "–" if metric.last is None else f"{metric.last:.6g}"
        answers.print(f"  {metric.name}{where}: {metric.samples:,} × {metric.method}, last {last}", highlight=False)


@app.command("upload")
def upload_runs(
    runs: Annotated[list[str] | None, typer.Argument(help="Ids; by default all that were not sent.")] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    mlflow: MlflowOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send runs to a server, an MLflow server or both; what is there already is not sent again."""
    from clusterscape.track.mlflow.sending import MlflowRuns, is_sent
    from clusterscape.track.mlflow.server import MlflowServer
    from clusterscape.track.places import state_folder
    from clusterscape.track.spooled import close_abandoned, find_run, list_runs
    from clusterscape.track.upload import RunServer, RunTarget, is_uploaded

    if not server and not mlflow:
        raise ConfigError(
            "no server is told", hint="Give --server http://HOST:PORT or --mlflow URI, or set CLUSTERSCAPE_URL."
        )
    state = state_folder()
    folders = [find_run(state, run) for run in runs] if runs else list_runs(state)[::-1]
    for folder in folders:
        close_abandoned(folder)
    targets: list[tuple[RunTarget, Callable[[Path], bool]]] = []
    if server:
        targets.append((RunServer(server, token), is_uploaded))
    if mlflow:
        targets.append((MlflowRuns(MlflowServer(mlflow, timeout_s=60.0), state), is_sent))
    answer = {}
    for to, is_there in targets:
        sent = {folder.name: to.send(folder) for folder in folders if runs or not is_there(folder)}
        answer[to.url] = sent
        if not as_json:
            errors.print(f"{count(len(sent), 'run')} sent to {to.url}")
    if as_json:
        url, sent = next(iter(answer.items()))
        print_json({"server": url, "runs": sent, "servers": answer})


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
