"""The data folder of a demo. Refuses folders that no demo created; locks the folder before it reads or deletes anything.

The marker ``demo.json`` is written first: a folder with files but no marker holds other data.
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
from clusterscape.store.files import write_file
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
"""An older demo cluster starts again: simulating its past would take too long."""

ClusterChoice = dict[str, int | str]


@contextmanager
def hold_demo_folder(folder: Path, cluster: ClusterChoice, *, is_fresh: bool) -> Iterator[int]:
    """Lock the folder; yields the time (Unix ms) from which the past is simulated. Deletes the data of a different demo.

    Raises ConfigError if the folder is not a demo's, having changed nothing; StoreBusyError if a demo is running.
    """
    _claim(folder, cluster)
    with hold_data_folder(folder):
        anchor_ms = _kept_anchor(_check_marker(folder), cluster)
        if anchor_ms is None or is_fresh:
            _remove_data(folder)
            anchor_ms = _now_ms()
            write_file(folder / MARKER, _marker(anchor_ms, cluster))
        yield anchor_ms


def remove_demo_marker(folder: Path) -> None:
    """Remove the marker, so that no demo deletes the data of a site."""
    if (folder / MARKER).exists():
        (folder / MARKER).unlink()
        log.warning("%s was the folder of a demo and now belongs to a site; demos will refuse it", folder)


def _claim(folder: Path, cluster: ClusterChoice) -> None:
    """Mark an empty or new folder as a demo's; refuse one with other files."""
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
        pass  # another demo was faster; the lock decides


def _check_marker(folder: Path) -> dict[str, Any]:
    """The contents of the marker; raises ConfigError if there is none, or if a file of the folder is a link."""
    marker = folder / MARKER
    try:
        content = json.loads(marker.read_text(encoding="utf-8"))
        is_valid = not marker.is_symlink() and {"anchor_ms", "version", "cluster"} <= content.keys()
    except (OSError, ValueError, AttributeError):
        is_valid = False
    if not is_valid:
        raise ConfigError(
            f"{folder} is not the folder of a demo: it is not empty and has no valid {MARKER}",
            hint="Choose a new or empty folder with --data-dir. Nothing was changed.",
        )
    for name in (*DEMO_FILES, LOCK_FILE):
        if (folder / name).is_symlink():
            raise ConfigError(
                f"{folder / name} is a symbolic link",
                hint="Remove the link, or choose a new folder with --data-dir. Nothing was changed.",
            )
    return dict(content)


def _kept_anchor(marker: dict[str, Any], cluster: ClusterChoice) -> int | None:
    """The anchor of an earlier demo, if it has the same cluster and version and is recent."""
    anchor_ms = marker["anchor_ms"]
    is_same = marker["version"] == __version__ and marker["cluster"] == cluster
    is_recent = isinstance(anchor_ms, int) and _now_ms() - anchor_ms < ANCHOR_KEPT_MS
    return anchor_ms if is_same and is_recent else None


def _remove_data(folder: Path) -> None:
    with ExitStack() as stack:
        if (folder / "metrics").is_dir():
            stack.enter_context(locked(folder / "metrics"))  # older versions hold only this lock
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
