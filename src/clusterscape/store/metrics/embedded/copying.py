"""A consistent set of the embedded store's files, taken while a server goes on writing to it. Reads only.

Files never change once they have their name, so a set is consistent when the manifest was the same before and after it was
taken: links hold on to files that are compacted away later.
"""

import os
import shutil
from pathlib import Path

from clusterscape.errors import StoreBusyError
from clusterscape.store.metrics.embedded.manifest import check_version, read_manifest

TRIES = 20


def link_files(folder: Path, into: Path) -> None:
    """Link (copy, on another device) the store's live files under ``into``, which then is a store of its own.

    Raises StoreBusyError where compaction changed the set each time, which takes a disk far slower than the server.
    """
    check_version(folder)
    for _ in range(TRIES):
        before = (folder / "manifest.json").read_bytes()
        try:
            for name in _live_names(folder):
                _link(folder / name, into / name)
            is_same = (folder / "manifest.json").read_bytes() == before
        except FileNotFoundError:  # compacted away since the manifest was read
            is_same = False
        if is_same:
            (into / "manifest.json").write_bytes(before)
            return
        shutil.rmtree(into)
    raise StoreBusyError(
        f"the files of {folder} changed {TRIES} times while they were being linked", hint="Try again in a minute."
    )


def _live_names(folder: Path) -> list[str]:
    manifest = read_manifest(folder)
    recent = sorted(
        path.relative_to(folder).as_posix() for path in (folder / "recent").iterdir() if path.suffix == ".parquet"
    )
    return ["FORMAT", *(entry.file for entry in (*manifest.raw, *manifest.coarse)), *recent]


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:  # another device, or a file system without links
        shutil.copyfile(source, target)
