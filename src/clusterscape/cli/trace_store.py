"""``clusterscape trace import|list|delete|diff``: traces stored on a running server or on this machine, and comparisons of two
traces.
"""

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clusterscape.cli.options import CONNECTION, ConfigOption, JsonOption, SchedulerOption, TokenOption
from clusterscape.cli.output import count, listing_table, print_json, stderr, stdout
from clusterscape.cli.trace_text import format_s
from clusterscape.errors import ConfigError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clusterscape.analyze.trace.diff import RunTables
    from clusterscape.ingest.traces import TraceIntake
    from clusterscape.query.traces.answers import TraceRow
    from clusterscape.settings import Settings


ServerOption = Annotated[
    str | None,
    typer.Option(
        "--url",
        help="URL of a running ClusterScape server.",
        envvar="CLUSTERSCAPE_URL",
        show_default="the store of this machine",
        rich_help_panel=CONNECTION,
    ),
]
POLL_INTERVAL_S = 0.5


def import_trace(
    paths: Annotated[
        list[Path], typer.Argument(help="Trace files, folders or tar archives of one run.", metavar="DIR_OR_FILES...")
    ],
    workload: Annotated[str | None, typer.Option(help="Workload of the trace.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the trace.", show_default="name of the folder")] = None,
    server: ServerOption = None,
    scheduler: SchedulerOption = None,
    token: TokenOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import a trace for the page: read, align and analyze it, and store its report."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from clusterscape.query.search import qualify

    if server and scheduler:
        raise ConfigError("--url and --scheduler cannot be combined", hint="Remove one of them.")
    title = name or _title(paths)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=stderr, transient=True, disable=as_json) as progress:
        task = progress.add_task(f"Importing {title}", total=1.0)

        def show_progress(share: float) -> None:
            progress.update(task, completed=share)

        if server:
            row = _upload(server, token, paths, title, workload, show_progress)
        else:
            workload_id = None if workload is None else qualify(workload)
            row = _describe(
                _intake(_read_settings(config), scheduler).take(paths, title, workload_id, progress=show_progress)
            )
    if as_json:
        print_json(row)
        return
    for note in row["notes"]:
        stderr.print(note, style="yellow", highlight=False, soft_wrap=True)
    stdout.print(f"{row['trace_id']}: {_summarize(row)}", highlight=False, soft_wrap=True)


def _summarize(row: dict[str, Any]) -> str:
    from clusterscape.cli.trace_text import GRAPH_ONLY, is_graph_only

    if is_graph_only(row["spans"]):
        return f"{row['format']}, {count(row['ranks'], 'rank')}. {GRAPH_ONLY}"
    return (
        f"{row['format']}, {count(row['ranks'], 'rank')}, {count(row['steps'], 'step')}, {count(row['spans'], 'span')}. "
        f"{row['headline'] or 'Nothing significant.'}"
    )


def list_traces(
    workload: Annotated[str | None, typer.Option(help="Only traces of this workload.")] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List stored traces, newest first."""
    if server:
        from urllib.parse import urlencode

        from clusterscape.cli.status import fetch

        query = f"?{urlencode({'workload': workload})}" if workload else ""
        rows = fetch(f"{server.rstrip('/')}/api/v1/traces{query}", token)["traces"]
    else:
        from clusterscape.query.search import qualify
        from clusterscape.runtime.site import open_artifacts
        from clusterscape.store.artifacts.traces import list_abouts

        traces = list_abouts(open_artifacts(_read_settings(config)))
        workload_id = None if workload is None else qualify(workload)
        rows = [_describe(trace) for trace in traces if workload_id in (None, trace.workload_id)]
    if as_json:
        print_json(rows)
        return
    table = listing_table()
    for heading in ("trace", "name", "workload", "state", "format", "ranks", "steps", "spans", "why"):
        table.add_column(heading, justify="right" if heading in ("ranks", "steps", "spans") else "left")
    for row in rows:
        table.add_row(
            row["trace_id"], row["name"], row["workload_id"] or "–", row["state"], row["format"] or "–",
            str(row["ranks"]), str(row["steps"]), f"{row['spans']:,}", row["problem"] or row["headline"] or _describe_lack(row),
        )  # fmt: skip
    stdout.print(table, highlight=False)


def _describe_lack(row: dict[str, Any]) -> str:
    from clusterscape.cli.trace_text import GRAPH_ONLY, is_graph_only

    return GRAPH_ONLY if row["state"] == "ready" and is_graph_only(row["spans"]) else "–"


def delete_trace(
    trace: Annotated[str, typer.Argument(help="Id of the trace, from `trace list`.")],
    server: ServerOption = None,
    token: TokenOption = None,
    config: ConfigOption = None,
) -> None:
    """Delete a trace and all its files."""
    if server:
        from clusterscape.cli.status import send

        send("DELETE", f"{server.rstrip('/')}/api/v1/traces/{trace}", None, token)
    else:
        _intake(_read_settings(config)).delete(trace)
    stdout.print(f"Deleted {trace}.", highlight=False)


def _title(paths: "Sequence[Path]") -> str:
    first = paths[0].resolve()
    return first.name if first.is_dir() else first.name.partition(".")[0]


def _read_settings(config: Path | None) -> "Settings":
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


def _upload(
    server: str,
    token: str | None,
    paths: "Sequence[Path]",
    name: str,
    workload: str | None,
    progress: "Callable[[float], None]",
) -> dict[str, Any]:
    """Upload the files, start the import on the server, and wait until it is done."""
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
        progress(0.5 * sent / total)
    send("POST", f"{base}/{trace}/import", None, token)
    while True:
        row: dict[str, Any] = fetch(f"{base}/{trace}", token)["row"]
        if row["state"] == "failed":
            raise SourceError(f"the server cannot read the trace: {row['problem']}", hint="See the log of the server.")
        if row["state"] == "ready":
            return row
        progress(0.5 + 0.5 * (row["progress"] or 0.0))
        time.sleep(POLL_INTERVAL_S)


def _files_to_send(paths: "Sequence[Path]") -> list[tuple[Path, str]]:
    """Files with their upload names: paths relative to the given folder, as they may contain the rank."""
    from clusterscape.collect.traces.files import find_trace_files

    names = {file.path: file.path.name for file in find_trace_files(paths)}
    for folder in (path for path in paths if path.is_dir()):
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        names |= {path: path.relative_to(folder).as_posix() for path in files if path in names or "scope" in path.name}
    return sorted(names.items())


MAX_ROWS = 24
SEED = 0


def diff_traces(
    before: Annotated[str, typer.Argument(help="A trace's id, or its folder or file.", metavar="A")],
    after: Annotated[str, typer.Argument(help="The other one.", metavar="B")],
    server: ServerOption = None,
    token: TokenOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what changed from one run to another: per step, operator, phase and rank, beyond chance."""
    if server:
        from urllib.parse import urlencode

        from clusterscape.cli.status import fetch

        query = urlencode({"a": before, "b": after})
        comparison = fetch(f"{server.rstrip('/')}/api/v1/traces/diff?{query}", token)
    else:
        comparison = _compare(before, after, config)
    if as_json:
        print_json(comparison)
        return
    for note in comparison["notes"]:
        stderr.print(note, style="yellow", highlight=False, soft_wrap=True)
    for sentence in comparison["sentences"]:
        stdout.print(sentence, highlight=False, soft_wrap=True)
    _print_changes(comparison["changes"])


def _compare(before: str, after: str, config: Path | None) -> dict[str, Any]:
    import numpy as np

    from clusterscape.analyze.trace.diff import compare_runs

    diff = compare_runs(_tables(before, config), _tables(after, config), np.random.default_rng(SEED))
    changes = [asdict(change) | {"sentence": change.sentence} for change in diff.changes]
    return {"sentences": list(diff.sentences), "changes": changes, "notes": list(diff.notes)}


def _tables(named: str, config: Path | None) -> "RunTables":
    """A run from its files where there are such, else from what is kept."""
    import numpy as np

    from clusterscape.analyze.trace.diff import RunTables

    path = Path(named)
    if path.exists():
        from clusterscape.analyze.trace.document import pack_trace, write_report
        from clusterscape.analyze.trace.report import analyze_trace
        from clusterscape.collect.traces import read_traces

        report = analyze_trace(read_traces([path]), np.random.default_rng(SEED))
        packed = pack_trace(report)
        return RunTables(packed.spans, packed.steps, write_report(report))
    from clusterscape.cli.site_settings import read_site_settings
    from clusterscape.errors import NotFoundError
    from clusterscape.query.traces.opened import OpenTraces
    from clusterscape.runtime.site import open_artifacts

    try:
        settings = read_site_settings(config)
        opened = OpenTraces(open_artifacts(settings), settings.limits.uploads).find(named)
    except NotFoundError:
        raise SourceError(
            f"no file, folder or stored trace {named}",
            hint="`clusterscape trace list` lists stored traces.",
        ) from None
    return RunTables(opened.spans, opened.steps, opened.report)


def _print_changes(changes: list[dict[str, Any]]) -> None:
    table = listing_table()
    for heading in ("", "what", "before", "after", "difference", "95 %"):
        table.add_column(heading, justify="left" if heading in ("", "what") else "right", overflow="fold")
    for change in changes[:MAX_ROWS]:
        has_interval = change["low_s"] is not None
        between = f"{format_s(change['low_s'])} to {format_s(change['high_s'])}" if has_interval else "too few steps"
        where = f"{change['name']} (rank {change['rank']})" if change["rank"] is not None else change["name"]
        table.add_row(
            "*" if change["is_significant"] else "", where[:80], format_s(change["before_s"]), format_s(change["after_s"]),
            format_s(change["difference_s"]), between,
        )  # fmt: skip
    stdout.print(table, highlight=False)
