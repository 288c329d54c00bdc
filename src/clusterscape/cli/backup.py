"""``clusterscape backup`` and ``clusterscape restore``: a whole site in one file."""

from pathlib import Path
from typing import Annotated

import typer

from clusterscape.cli.options import ConfigOption, JsonOption


def backup(
    target: Annotated[Path, typer.Argument(help="Tar file to write.", show_default=False)],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write records, samples and artifacts to one tar file; the server may be running."""
    from clusterscape.cli.output import print_json, stderr
    from clusterscape.cli.site_settings import read_site_settings
    from clusterscape.errors import StoreError
    from clusterscape.runtime.site import system_clock
    from clusterscape.store.backup import write_backup

    if target.exists():
        raise StoreError(f"{target} already exists", hint="Choose another name; backups are never overwritten.")
    storage = read_site_settings(config).storage
    with stderr.status("…") as spinner:
        contents = write_backup(storage, target, at=system_clock(), progress=spinner.update)
    size = target.stat().st_size
    if as_json:
        summary = {"file": str(target), "data_dir": str(storage.data_dir), "size_bytes": size}
        print_json({**summary, "files": len(contents.members), "rows": contents.rows})
        return
    stderr.print(f"{target}: {size:,} bytes, {len(contents.members):,} files, {sum(contents.rows.values()):,} records")
    if contents.samples_elsewhere:
        stderr.print(f"The samples are in {contents.samples_elsewhere} and not in this file; back them up there.")
    if contents.artifacts_elsewhere:
        stderr.print(f"The artifacts are in {contents.artifacts_elsewhere} and not in this file; back them up there.")


def restore(
    source: Annotated[Path, typer.Argument(help="Tar file of `clusterscape backup`.", show_default=False)],
    config: ConfigOption = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only verify the checksums of the file; restore nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Restore a backup into an empty data folder and an empty database; overwrites nothing."""
    from clusterscape.cli.output import print_json, stderr
    from clusterscape.cli.site_settings import read_site_settings
    from clusterscape.store.backup import read_contents, restore_backup

    location = {}
    with stderr.status("checking") as spinner:
        if check:
            contents = read_contents(source)
        else:
            storage = read_site_settings(config).storage
            contents = restore_backup(storage, source, progress=spinner.update)
            location = {"data_dir": str(storage.data_dir)}
    if as_json:
        summary = {"written_at": contents.written_at, "files": len(contents.members), "rows": contents.rows}
        print_json({**summary, **location})
        return
    outcome = "is intact" if check else "is restored"
    stderr.print(f"{source} {outcome}: {len(contents.members):,} files, {sum(contents.rows.values()):,} records")
