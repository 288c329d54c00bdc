"""``clusterscape migrate``: a whole site, or a part of it, from some stores to others, without loss and resumable."""

from typing import Annotated

import typer

from clusterscape.cli.options import ConfigOption, JsonOption


def migrate(
    to: Annotated[
        list[str],
        typer.Option(
            "--to",
            help="Where to: http(s)://… (metrics), postgresql://… (records), s3://BUCKET/PREFIX (artifacts), "
            "`embedded` or a folder (all). Repeat it for each part.",
            show_default=False,
        ),
    ],
    source: Annotated[
        list[str] | None,
        typer.Option("--from", help="Where from, in the same words; by default what the settings name."),
    ] = None,
    config: ConfigOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be moved.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Move samples, records and artifacts to other stores; the server must be stopped. Killed, it goes on when run again."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from clusterscape.cli.migrate_moving import Move
    from clusterscape.cli.migrate_places import read_place
    from clusterscape.cli.output import errors, print_json
    from clusterscape.cli.site_settings import read_site_settings
    from clusterscape.store.data_folder import prepare_data_folder

    settings = read_site_settings(config)
    target = read_place(settings.storage, to)
    move = Move(settings, read_place(settings.storage, source or []), target)
    if not dry_run:
        prepare_data_folder(target)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    with move, Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task("looking", total=None)

        def tell(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=max(1, total), description=what)

        found = move.plan() if dry_run else move.run(tell)
    if as_json:
        print_json(found)
        return
    for part, about in found["parts"].items():
        errors.print(f"{part}: {about['from']} → {about['to']}", soft_wrap=True, highlight=False)
        errors.print(f"  {about['summary']}", highlight=False)
    if dry_run:
        errors.print("Nothing was changed.")
    else:
        errors.print(
            "All of it was read again at its new place. Now change [storage] in the settings and start the server."
        )
