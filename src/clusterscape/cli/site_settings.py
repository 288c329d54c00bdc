"""Settings of the site on this machine, for commands that open its stores; prepares the data folder."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clusterscape.settings import Settings, find_config, read_settings
from clusterscape.store.data_folder import prepare_data_folder

log = logging.getLogger(__name__)

UNEXPANDED = Path("~/.local/share/clusterscape")
"""Relative to the working directory: the default data folder of older versions."""


def read_site_settings(config: Path | None, *, overrides: Mapping[str, Any] | None = None) -> Settings:
    """Read the settings and create the data folder, private to this user."""
    settings = read_settings(find_config(config), overrides=overrides)
    log_paths(settings, config)
    prepare_data_folder(settings.storage)
    return settings


def log_paths(settings: Settings, config: Path | None) -> None:
    """Log the settings file and the data folder."""
    log.info("settings: %s; data folder: %s", describe_config(config), settings.storage.data_dir)
    if UNEXPANDED.is_dir():
        log.warning(
            "%s holds data of an older version and is not used: move it to %s",
            UNEXPANDED.absolute(),
            settings.storage.data_dir,
        )


def describe_config(config: Path | None) -> str:
    """The path of the settings file, or that there is none."""
    path = find_config(config)
    return "defaults (no file)" if path is None else str(path.absolute())
