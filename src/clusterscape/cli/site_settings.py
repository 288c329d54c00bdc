"""The settings of this machine's site, for commands that open its stores: read, reported, and its data folder made ready."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clusterscape.settings import Settings, find_config, read_settings
from clusterscape.store.data_folder import prepare_data_folder

log = logging.getLogger(__name__)

UNEXPANDED = Path("~/.local/share/clusterscape")
"""Below the current folder: where older versions kept the data of a site that named no folder."""


def read_site_settings(config: Path | None, *, overrides: Mapping[str, Any] | None = None) -> Settings:
    """The settings of the site; the data folder exists afterwards, is private and belongs to this user."""
    settings = read_settings(find_config(config), overrides=overrides)
    report_places(settings, config)
    prepare_data_folder(settings.storage)
    return settings


def report_places(settings: Settings, config: Path | None) -> None:
    """Log which settings file and data folder are used."""
    log.info("settings: %s; data folder: %s", describe_config(config), settings.storage.data_dir)
    if UNEXPANDED.is_dir():
        log.warning(
            "%s holds data of an older version and is not used: move it to %s",
            UNEXPANDED.absolute(),
            settings.storage.data_dir,
        )


def describe_config(config: Path | None) -> str:
    """The settings file that is used, in words."""
    used = find_config(config)
    return "defaults (no file)" if used is None else str(used.absolute())
