"""``clusterscape migrate``: moves samples, records and artifacts between stores; resumable."""

from typing import Annotated

import typer

from clusterscape.cli.options import ConfigOption, JsonOption


def migrate(
    to: Annotated[
        list[str],
        typer.Option(
            "--to",
            help="Target store: http(s)://… (metrics), postgresql://… (records), s3://BUCKET/PREFIX (artifacts), "
            "`embedded` or a folder (all); repeatable.",
            show_default=False,
        ),
    ],
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--from", help="Source store, in the same format; repeatable.", show_default="stores of the settings"
        ),
    ] = None,
    config: ConfigOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be moved, and exit.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Move samples, records and artifacts to other stores; stop the server first. Run it again to resume."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from clusterscape.cli.migrate_moving import Move, parse_stores
    from clusterscape.cli.output import print_json, stderr
    from clusterscape.cli.site_settings import read_site_settings
    from clusterscape.store.data_folder import prepare_data_folder

    settings = read_site_settings(config)
    target = parse_stores(settings.storage, to)
    move = Move(settings, parse_stores(settings.storage, source or []), target)
    if not dry_run:
        prepare_data_folder(target)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    with move, Progress(*columns, console=stderr, transient=True) as bar:
        task = bar.add_task("preparing", total=None)

        def show_progress(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=max(1, total), description=what)

        report = move.plan() if dry_run else move.run(show_progress)
    if as_json:
        print_json(report)
        return
    for part, summary in report["parts"].items():
        stderr.print(f"{part}: {summary['from']} → {summary['to']}", soft_wrap=True, highlight=False)
        stderr.print(f"  {summary['summary']}", highlight=False)
    if dry_run:
        stderr.print("Nothing was changed.")
    else:
        stderr.print("All data was verified in the target. Now change [storage] in the settings and start the server.")
