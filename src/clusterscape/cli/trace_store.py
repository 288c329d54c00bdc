"""``clusterscape trace import|list|delete|diff``: traces that are kept, on a running server or in this machine's state folder."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clusterscape.cli.options import ConfigOption, JsonOption, SchedulerOption, TokenOption
from clusterscape.cli.output import answers, count, errors, listing_table, print_json
from clusterscape.errors import ConfigError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clusterscape.ingest.traces import TraceIntake
    from clusterscape.query.traces.answers import TraceRow
    from clusterscape.settings import Settings

ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server", help="A running ClusterScape; by default this machine's state folder.", envvar="CLUSTERSCAPE_URL"
    ),
]
LOOK_EVERY_S = 0.5


def import_trace(
    paths: Annotated[
        list[Path], typer.Argument(help="Trace files, folders or tar archives of one run.", metavar="DIR_OR_FILES...")
    ],
    workload: Annotated[str | None, typer.Option(help="The workload it belongs to.")] = None,
    name: Annotated[str | None, typer.Option(help="What it is called.", show_default="the folder's name")] = None,
    server: ServerOption = None,
    scheduler: SchedulerOption = None,
    token: TokenOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep a trace so that the page shows it: read, aligned, analyzed, with its report."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from clusterscape.query.workload_ids import qualify

    if server and scheduler:
        raise ConfigError("a server reads traces by itself", hint="Leave out --server or --scheduler.")
    title = name or _title(paths)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=errors, transient=True, disable=as_json) as progress:
        task = progress.add_task(f"Importing {title}", total=1.0)

        def tell(share: float) -> None:
            progress.update(task, completed=share)

        if server:
            row = _send(server, token, paths, title, workload, tell)
        else:
            named = None if workload is None else qualify(workload)
            row = _describe(_intake(_read(config), scheduler).take(paths, title, named, progress=tell))
    if as_json:
        print_json(row)
        return
    for note in row["notes"]:
        errors.print(note, style="yellow", highlight=False, soft_wrap=True)
    answers.print(f"{row['trace_id']}: {_sum_up(row)}", highlight=False, soft_wrap=True)


def _sum_up(row: dict[str, Any]) -> str:
    from clusterscape.cli.trace_text import GRAPH_ONLY, is_graph_only

    if is_graph_only(row["spans"]):
        return f"{row['format']}, {count(row['ranks'], 'rank')}. {GRAPH_ONLY}"
    return (
        f"{row['format']}, {count(row['ranks'], 'rank')}, {count(row['steps'], 'step')}, {count(row['spans'], 'span')}. "
        f"{row['headline'] or 'Nothing significant.'}"
    )


def list_traces(
    workload: Annotated[str | None, typer.Option(help="Only those of this workload.")] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Traces that are kept, newest first."""
    if server:
        from urllib.parse import urlencode

        from clusterscape.cli.status import fetch

        query = f"?{urlencode({'workload': workload})}" if workload else ""
        rows = fetch(f"{server.rstrip('/')}/api/v1/traces{query}", token)["traces"]
    else:
        from clusterscape.query.workload_ids import qualify
        from clusterscape.runtime.site import open_artifacts
        from clusterscape.store.artifacts.traces import list_abouts

        found = list_abouts(open_artifacts(_read(config)))
        wanted = None if workload is None else qualify(workload)
        rows = [_describe(each) for each in found if wanted in (None, each.workload_id)]
    if as_json:
        print_json(rows)
        return
    table = listing_table()
    for heading in ("trace", "name", "workload", "state", "format", "ranks", "steps", "spans", "why"):
        table.add_column(heading, justify="right" if heading in ("ranks", "steps", "spans") else "left")
    for row in rows:
        table.add_row(
            row["trace_id"], row["name"], row["workload_id"] or "–", row["state"], row["format"] or "–",
            str(row["ranks"]), str(row["steps"]), f"{row['spans']:,}", row["problem"] or row["headline"] or _lacking(row),
        )  # fmt: skip
    answers.print(table, highlight=False)


def _lacking(row: dict[str, Any]) -> str:
    from clusterscape.cli.trace_text import GRAPH_ONLY, is_graph_only

    return GRAPH_ONLY if row["state"] == "ready" and is_graph_only(row["spans"]) else "–"


def delete_trace(
    trace: Annotated[str, typer.Argument(help="Its id, as `trace list` shows it.")],
    server: ServerOption = None,
    token: TokenOption = None,
    config: ConfigOption = None,
) -> None:
    """Remove a trace and all its files."""
    if server:
        from clusterscape.cli.status import send

        send("DELETE", f"{server.rstrip('/')}/api/v1/traces/{trace}", None, token)
    else:
        _intake(_read(config)).delete(trace)
    answers.print(f"Deleted {trace}.", highlight=False)


def _title(paths: "Sequence[Path]") -> str:
    first = paths[0].resolve()
    return first.name if first.is_dir() else first.name.partition(".")[0]


def _read(config: Path | None) -> "Settings":
    from clusterscape.cli.site_settings import read_site_settings

    return read_site_settings(config)


def _intake(settings: "Settings", scheduler: str | None = None) -> "TraceIntake":
    from clusterscape.runtime.site import open_artifacts, open_trace_intake

    return open_trace_intake(settings, open_artifacts(settings), scheduler=scheduler)


def _describe(about: Any) -> dict[str, Any]:
    from dataclasses import asdict

    from clusterscape.query.traces.describing import describe_row

    row: TraceRow = describe_row(about)
    return asdict(row)


def _send(
    server: str,
    token: str | None,
    paths: "Sequence[Path]",
    name: str,
    workload: str | None,
    tell: "Callable[[float], None]",
) -> dict[str, Any]:
    """Send the files, have them read there, and wait."""
    import urllib.request
    from urllib.parse import quote

    from clusterscape.cli.status import fetch, send
    from clusterscape.remote import open_url

    base = f"{server.rstrip('/')}/api/v1/traces"
    files = _files_to_send(paths)
    trace = send("POST", base, {"name": name, "workload_id": workload}, token)["trace_id"]
    sent = 0
    total = sum(path.stat().st_size for path, _ in files) or 1
    for path, title in files:
        with path.open("rb") as file:
            request = urllib.request.Request(  # noqa: S310 – the scheme was checked by the first request
                f"{base}/{trace}/files/{quote(title)}", data=file, method="PUT"
            )
            request.add_header("Content-Length", str(path.stat().st_size))
            request.add_header("Content-Type", "application/octet-stream")
            with open_url(request, token, timeout_s=600.0):
                pass
        sent += path.stat().st_size
        tell(0.5 * sent / total)
    send("POST", f"{base}/{trace}/import", None, token)
    while True:
        row: dict[str, Any] = fetch(f"{base}/{trace}", token)["row"]
        if row["state"] == "failed":
            raise SourceError(f"the server could not read the trace: {row['problem']}", hint="See its log.")
        if row["state"] == "ready":
            return row
        tell(0.5 + 0.5 * (row["progress"] or 0.0))
        time.sleep(LOOK_EVERY_S)


def _files_to_send(paths: "Sequence[Path]") -> list[tuple[Path, str]]:
    """Files with the name they are sent under: below a named folder their path in it, which may tell the rank."""
    from clusterscape.collect.traces.files import find_trace_files

    found = {file.path: file.path.name for file in find_trace_files(paths)}
    for folder in (path for path in paths if path.is_dir()):
        beside = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        found |= {path: path.relative_to(folder).as_posix() for path in beside if path in found or "scope" in path.name}
    return sorted(found.items())
