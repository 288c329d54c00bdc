"""``clusterscape runs``: runs on this machine's disk, with or without a server."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clusterscape.cli.options import JsonOption, TokenOption
from clusterscape.cli.output import answers, count, errors, listing_table, print_json, styled_line
from clusterscape.errors import ConfigError, RefusedError
from clusterscape.model.quantities import format_duration

if TYPE_CHECKING:
    from clusterscape.track.upload import RunTarget

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
    table = listing_table()
    for heading in ("run", "name", "experiment", "state", "running", "samples", "sent", "cause"):
        table.add_column(heading, no_wrap=True)
    for run, sent in runs:
        about = run.about
        running = format_duration(run.times_s["running"])
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
    cause = f": {found.cause}" if found.cause else ""
    answers.print(styled_line((found.run, "bold"), f"  {found.state}{cause}"))
    answers.print(f"  {found.about.get('command')} in {found.about.get('cwd')}", highlight=False)
    for name, seconds in found.times_s.items():
        answers.print(f"  {name:8} {'–' if seconds is None else f'{seconds:.2f} s'}", highlight=False)
    for name, listener in found.listeners.items():
        missed = f", {listener['missed']} of {listener['ticks']} ticks missed" if listener["missed"] else ""
        told = f"  {name}: {listener['state']} {listener['message'] or ''}{missed}"
        answers.print(told, highlight=False)
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
    from clusterscape.cli.run_notice import announce_recorded
    from clusterscape.track.mlflow.sending import MlflowRuns, is_sent
    from clusterscape.track.mlflow.server import MlflowServer
    from clusterscape.track.places import state_folder
    from clusterscape.track.spool_redaction import redact_spools
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
        redact_spools(folder)
    targets: list[tuple[RunTarget, Callable[[Path], bool]]] = []
    if server:
        targets.append((RunServer(server, token), is_uploaded))
    if mlflow:
        targets.append((MlflowRuns(MlflowServer(mlflow, timeout_s=60.0), state), is_sent))
    answer: dict[str, dict[str, int]] = {}
    refused: dict[str, dict[str, str]] = {}
    for to, is_there in targets:
        due = [folder for folder in folders if runs or not is_there(folder)]
        announce_recorded(due, to.url, state)
        sent, refused[to.url] = _send_all(to, due)
        answer[to.url] = sent
        if not as_json:
            errors.print(f"{count(len(sent), 'run')} sent to {to.url}")
    if as_json:
        url, sent = next(iter(answer.items()))
        print_json({"server": url, "runs": sent, "servers": answer, "refused": refused})
    if any(refused.values()):
        raise typer.Exit(1)


def _send_all(to: "RunTarget", folders: Sequence[Path]) -> tuple[dict[str, int], dict[str, str]]:
    """Bytes sent of each run, and what the server says of those that it refuses: the others are sent all the same."""
    sent: dict[str, int] = {}
    refused: dict[str, str] = {}
    for folder in folders:
        try:
            sent[folder.name] = to.send(folder)
        except RefusedError as error:
            refused[folder.name] = error.message
            errors.print(f"{folder.name} is kept on disk, not sent: {error.message}", style="red", soft_wrap=True)
            errors.print(error.hint or "", soft_wrap=True)
    return sent, refused


@app.command("delete")
def delete_runs(
    runs: Annotated[list[str], typer.Argument(help="Ids, as `clusterscape runs list` or the page shows them.")],
    server: ServerOption = None,
    token: TokenOption = None,
    local: Annotated[bool, typer.Option("--local", help="Also delete what this machine recorded of them.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete runs on a server, for good; with --local also on this machine, or only there where no server is named."""
    import shutil

    from clusterscape.track.places import state_folder
    from clusterscape.track.spooled import find_run, is_going_on
    from clusterscape.track.upload import RunServer

    if not server and not local:
        raise ConfigError("no server is named", hint="Give --server http://HOST:PORT, or --local for this machine.")
    folders = [find_run(state_folder(), run) for run in runs] if local else []
    going_on = [folder.name for folder in folders if is_going_on(folder)]
    if going_on:
        raise ConfigError(f"{', '.join(going_on)} goes on here", hint="Wait for its end, or stop it.")
    ids = [folder.name for folder in folders] if local else list(dict.fromkeys(runs))
    places = [f"on {server}"] * bool(server) + ["on this machine"] * local
    if not yes:
        if not sys.stdin.isatty():
            raise ConfigError("nobody is here to confirm that runs are deleted", hint="Give --yes.")
        typer.confirm(f"Delete {', '.join(ids)} {' and '.join(places)}, with all samples?", abort=True, err=True)
    if server:
        to = RunServer(server, token, timeout_s=120.0)
        for run in ids:
            to.delete(run)
    for folder in folders:
        shutil.rmtree(folder)
    if as_json:
        print_json({"server": server, "deleted": ids, "is_local": local})
    else:
        errors.print(f"{count(len(ids), 'run')} deleted {' and '.join(places)}")


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
