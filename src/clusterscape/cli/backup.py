"""``clusterscape backup`` and ``clusterscape restore``: a whole site in one file, and back."""

from pathlib import Path
from typing import Annotated

import typer

from clusterscape.cli.options import ConfigOption, JsonOption


def backup(
    target: Annotated[Path, typer.Argument(help="The tar file to write.", show_default=False)],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write records, samples and artifacts to one file; the server may be running."""
    from clusterscape.cli.output import errors, print_json
    from clusterscape.cli.site_settings import read_site_settings
    from clusterscape.errors import StoreError
    from clusterscape.runtime.site import system_clock
    from clusterscape.store.backup import write_backup

    if target.exists():
        raise StoreError(f"{target} is already there", hint="Give a new name; a backup is never overwritten.")
    storage = read_site_settings(config).storage
    with errors.status("…") as line:
        contents = write_backup(storage, target, at=system_clock(), progress=line.update)
    size = target.stat().st_size
    if as_json:
        about = {"file": str(target), "data_dir": str(storage.data_dir), "size_bytes": size}
        print_json({**about, "files": len(contents.members), "rows": contents.rows})
        return
    errors.print(f"{target}: {size:,} bytes, {len(contents.members):,} files, {sum(contents.rows.values()):,} records")
    if contents.samples_elsewhere:
        errors.print(f"The samples are in {contents.samples_elsewhere} and not in this file; back them up there.")
    if contents.artifacts_elsewhere:
        errors.print(f"The artifacts are in {contents.artifacts_elsewhere} and not in this file; back them up there.")


def restore(
    source: Annotated[Path, typer.Argument(help="A file of `clusterscape backup`.", show_default=False)],
    config: ConfigOption = None,
    check: Annotated[bool, typer.Option("--check", help="Only read the file and check every byte of it.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Bring a backup into an empty data folder and an empty database; nothing is overwritten."""
    from clusterscape.cli.output import errors, print_json
    from clusterscape.cli.site_settings import read_site_settings
    from clusterscape.store.backup import read_contents, restore_backup

    places = {}
    with errors.status("checking") as line:
        if check:
            contents = read_contents(source)
        else:
            storage = read_site_settings(config).storage
            contents = restore_backup(storage, source, progress=line.update)
            places = {"data_dir": str(storage.data_dir)}
    if as_json:
        about = {"written_at": contents.written_at, "files": len(contents.members), "rows": contents.rows}
        print_json({**about, **places})
        return
    done = "is whole" if check else "is restored"
    errors.print(f"{source} {done}: {len(contents.members):,} files, {sum(contents.rows.values()):,} records")
