"""Reads settings from a TOML file, the environment and the command line, and says in plain words what is wrong."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_origin

from pydantic import ValidationError

from clusterscape.errors import ConfigError
from clusterscape.settings.explaining import explain, section_at
from clusterscape.settings.telling import CHANNEL_KINDS
from clusterscape.settings.whole import Settings

ENV_PREFIX = "CLUSTERSCAPE_"
ENV_NOT_SETTINGS = frozenset(
    {
        "CLUSTERSCAPE_CONFIG",
        "CLUSTERSCAPE_REFERENCE_DATA",
        "CLUSTERSCAPE_REFERENCE_DATA_REQUIRED",
        "CLUSTERSCAPE_RUN",
        "CLUSTERSCAPE_SCREENSHOTS",
        "CLUSTERSCAPE_URL",
    }
)
"""Variables of commands, of the tests and of tracked runs, not settings."""

SITE_CONFIG = Path("/etc/clusterscape/clusterscape.toml")
"""What commands read where no other file is named: the file of the service on this machine."""


def find_config(named: Path | None) -> Path | None:
    """The settings file that a command on this machine uses: the named one, else the service's, where there is one."""
    if named is not None:
        return named
    try:
        SITE_CONFIG.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        pass  # it exists and cannot be read: an error, not a reason to take the defaults
    return SITE_CONFIG


def read_settings(
    path: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """The settings from file, environment and overrides (nested mappings); raises ConfigError naming the key."""
    merged: dict[str, Any] = {}
    where: dict[str, str] = {}
    if path is not None:
        _merge(merged, _read_toml(path), where, str(path))
    _merge(merged, _from_environment(os.environ if environ is None else environ), where, "the environment")
    _merge(merged, overrides or {}, where, "the command line")
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise explain(error, where) from None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except PermissionError:
        hint = "Run the command as the user of the service (sudo -u …), or give a file of your own to --config."
        raise ConfigError(f"cannot read {path}: permission denied", hint=hint) from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", hint="Give an existing file to --config.") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}", hint="Mend the line that is named.") from None


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in environ.items():
        if not key.startswith(ENV_PREFIX) or key in ENV_NOT_SETTINGS:
            continue
        *parents, leaf = key.removeprefix(ENV_PREFIX).lower().split("__")
        level = tree
        for parent in parents:
            level = level.setdefault(parent, {})
        level[leaf] = value.split(",") if _is_list(parents, leaf) else value
    return tree


def _is_list(parents: list[str], leaf: str) -> bool:
    """Whether the setting holds several values, which a variable has with commas between."""
    # A channel's kind may stand in another variable or in the file.
    is_channel = parents[:2] == ["alerts", "channels"]
    sections = CHANNEL_KINDS.values() if is_channel else (section_at(parents),)
    fields = (section.model_fields.get(leaf) for section in sections if section)
    return any(field is not None and get_origin(field.annotation) is tuple for field in fields)


def _merge(
    into: dict[str, Any], update: Mapping[str, Any], where: dict[str, str], source: str, prefix: str = ""
) -> None:
    for key, value in update.items():
        dotted = f"{prefix}{key}"
        where[dotted] = source
        if isinstance(value, Mapping):
            level = into.setdefault(key, {})
            if isinstance(level, dict):
                _merge(level, value, where, source, f"{dotted}.")
                continue
        into[key] = value
