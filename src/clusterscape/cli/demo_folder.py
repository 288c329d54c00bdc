"""The folder of a demo: only one that a demo made is used, locked before anything of it is read or removed.

The marker ``demo.json`` is written first, so that a folder with anything in it and no marker is somebody's data.
"""

import json
import logging
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from clusterscape import __version__
from clusterscape.errors import ConfigError
from clusterscape.settings import StorageSettings
from clusterscape.store.data_folder import LOCK_FILE, hold_data_folder, prepare_data_folder
from clusterscape.store.metrics.embedded.files import write_file
from clusterscape.store.metrics.embedded.manifest import locked

log = logging.getLogger(__name__)

MARKER = "demo.json"
DEMO_FILES = (
    "metrics",
    "records.db",
    "records.db-wal",
    "records.db-shm",
    "alerts.db",
    "alerts.db-wal",
    "alerts.db-shm",
    "life-statistics.bin",
    "artifacts",
)
ANCHOR_KEPT_MS = 3 * 86_400_000
"""A demo cluster older than this begins anew: its past would take too long to simulate again."""

ClusterChoice = dict[str, int | str]


@contextmanager
def hold_demo_folder(folder: Path, cluster: ClusterChoice, *, is_fresh: bool) -> Iterator[int]:
    """The moment (Unix ms) from which the demo's past is simulated; what an earlier demo of another kind stored is removed.

    Raises ConfigError, having changed nothing, where the folder is not a demo's; StoreBusyError where one is running.
    """
    _claim(folder, cluster)
    with hold_data_folder(folder):
        anchor_ms = _kept_anchor(_check_marker(folder), cluster)
        if anchor_ms is None or is_fresh:
            _remove_data(folder)
            anchor_ms = _now_ms()
            write_file(folder / MARKER, _marker(anchor_ms, cluster))
        yield anchor_ms


def disown_demo(folder: Path) -> None:
    """A site uses the folder from now on: no demo may remove anything there."""
    if (folder / MARKER).exists():
        (folder / MARKER).unlink()
        log.warning("%s was a demo's folder and is a site's now; demos refuse it from now on", folder)


def _claim(folder: Path, cluster: ClusterChoice) -> None:
    """Mark an empty or new folder as a demo's; refuse one with other contents."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if names - {LOCK_FILE}:
        _check_marker(folder)
        prepare_data_folder(StorageSettings(data_dir=folder))
        return
    prepare_data_folder(StorageSettings(data_dir=folder))
    try:
        with (folder / MARKER).open("xb") as file:
            file.write(_marker(_now_ms(), cluster))
    except FileExistsError:
        pass  # another demo was first; the lock decides


def _check_marker(folder: Path) -> dict[str, Any]:
    """The marker; raises ConfigError where there is none, or a part of the folder leads elsewhere."""
    marker = folder / MARKER
    try:
        written = json.loads(marker.read_text(encoding="utf-8"))
        is_valid = not marker.is_symlink() and {"anchor_ms", "version", "cluster"} <= written.keys()
    except (OSError, ValueError, AttributeError):
        is_valid = False
    if not is_valid:
        raise ConfigError(
            f"{folder} is not a folder of a demo: it is not empty and has no valid {MARKER}",
            hint="Give --data-dir a new or empty folder. Nothing was changed.",
        )
    for name in (*DEMO_FILES, LOCK_FILE):
        if (folder / name).is_symlink():
            raise ConfigError(
                f"{folder / name} is a link to another place",
                hint="Remove the link, or give --data-dir a new folder. Nothing was changed.",
            )
    return dict(written)


def _kept_anchor(marker: dict[str, Any], cluster: ClusterChoice) -> int | None:
    """The anchor of an earlier demo of the same cluster by the same version, where it is recent."""
    anchor_ms = marker["anchor_ms"]
    is_same = marker["version"] == __version__ and marker["cluster"] == cluster
    is_recent = isinstance(anchor_ms, int) and _now_ms() - anchor_ms < ANCHOR_KEPT_MS
    return anchor_ms if is_same and is_recent else None


def _remove_data(folder: Path) -> None:
    with ExitStack() as stack:
        if (folder / "metrics").is_dir():
            stack.enter_context(locked(folder / "metrics"))  # demos of older versions hold only this lock
        for name in DEMO_FILES:
            path = folder / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def _marker(anchor_ms: int, cluster: ClusterChoice) -> bytes:
    return json.dumps({"anchor_ms": anchor_ms, "version": __version__, "cluster": cluster}).encode()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
