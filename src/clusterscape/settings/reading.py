"""Reads the configuration from a TOML file, the environment and the command line.

An error names the key, the source and the allowed values.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_origin

from pydantic import BaseModel, Field, ValidationError

from clusterscape.errors import ConfigError
from clusterscape.settings.access import AuthSettings, SiteSettings
from clusterscape.settings.accounting import AccountingSettings
from clusterscape.settings.alerting import (
    CHANNEL_KINDS,
    AlertsSettings,
    JobMailSettings,
    RemoteWriteSettings,
    RulesSettings,
)
from clusterscape.settings.limits import LimitsSettings
from clusterscape.settings.renamed import rename_settings
from clusterscape.settings.section import Section
from clusterscape.settings.serving import LogSettings, ServerSettings
from clusterscape.settings.sources import CollectSettings
from clusterscape.settings.storage import RetentionSettings, StorageSettings


class Settings(Section):
    """The whole configuration."""

    cluster: str = Field("cluster", min_length=1, description="Display name of the cluster.")
    server: ServerSettings = ServerSettings()
    storage: StorageSettings = StorageSettings()
    retention: RetentionSettings = RetentionSettings()
    collect: CollectSettings = CollectSettings()
    rules: RulesSettings = RulesSettings()
    alerts: AlertsSettings = AlertsSettings()
    job_mail: JobMailSettings = JobMailSettings()
    remote_write: RemoteWriteSettings = RemoteWriteSettings()
    auth: AuthSettings = AuthSettings()
    site: SiteSettings = SiteSettings()
    accounting: AccountingSettings = AccountingSettings()
    limits: LimitsSettings = LimitsSettings()
    log: LogSettings = LogSettings()


def explain(error: ValidationError, sources: Mapping[str, str]) -> ConfigError:
    """The first problem: the key, its source and the allowed values. ``sources``: source by key."""
    first = error.errors(include_url=False)[0]
    path = [str(part) for part in first["loc"]]
    # Pydantic adds the kind of the channel after its name; it is not part of the key.
    key = ".".join(path[:3] + path[4:] if path[:2] == ["alerts", "channels"] else path)
    source = sources.get(key, "the settings")
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        allowed = _fields_at(path[:-1])
        close = difflib.get_close_matches(path[-1], allowed, n=1)
        hint = f"Did you mean `{close[0]}`? " if close else ""
        section = f"[{key.rpartition('.')[0]}]" if len(path) > 1 else "the top level"
        return ConfigError(
            f"unknown setting `{key}` in {source}{more}", hint=f"{hint}{section} takes: {', '.join(allowed)}."
        )
    # A section may contain secrets.
    is_hidden = _is_secret(path) or isinstance(first["input"], Mapping)
    value = "" if first["type"] == "missing" else f" = {'(hidden)' if is_hidden else repr(first['input'])}"
    return ConfigError(f"setting `{key}`{value} in {source} is invalid: {first['msg']}{more}", hint=_describe(path))


def _is_secret(path: list[str]) -> bool:
    """Whether the field, or a section that contains it, is never printed."""
    for length in range(1, len(path) + 1):
        section = section_at(path[: length - 1])
        field = section.model_fields.get(path[length - 1]) if section else None
        if field is not None and not field.repr:
            return True
    return False


def section_at(path: list[str]) -> type[BaseModel] | None:
    """The section at ``path``; None if there is no such section."""
    section: type[BaseModel] = Settings
    if path[:2] == ["alerts", "channels"] and len(path) > 3 and path[3] in CHANNEL_KINDS:
        section, path = CHANNEL_KINDS[path[3]], path[4:]
    for part in path:
        field = section.model_fields.get(part)
        kind = field.annotation if field else None
        if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            return None
        section = kind
    return section


def _fields_at(path: list[str]) -> list[str]:
    section = section_at(path)
    return list(section.model_fields) if section else []


def _describe(path: list[str]) -> str | None:
    while path:
        section = section_at(path[:-1])
        field = section.model_fields.get(path[-1]) if section else None
        if field is not None:
            default = "" if field.is_required() else f" Default: {field.default!r}."
            return f"`{'.'.join(path)}`: {field.description}{default}" if field.description else None
        path = path[:-1]
    return None


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
"""Variables of commands, tests and tracked runs that are not settings."""

SITE_CONFIG = Path("/etc/clusterscape/clusterscape.toml")
"""Default settings file: that of the service on this machine."""


def find_config(named: Path | None) -> Path | None:
    """The settings file that a command uses: ``named``, else the default file if it exists, else None."""
    if named is not None:
        return named
    try:
        SITE_CONFIG.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        pass  # it exists but cannot be read: an error, not a reason to use defaults
    return SITE_CONFIG


def read_settings(
    path: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """The settings from file, environment and overrides (nested mappings); raises ConfigError naming the key."""
    merged: dict[str, Any] = {}
    sources: dict[str, str] = {}
    if path is not None:
        _merge(merged, rename_settings(_read_toml(path), str(path)), sources, str(path))
    variables = _from_environment(os.environ if environ is None else environ)
    _merge(merged, rename_settings(variables, "the environment"), sources, "the environment")
    _merge(merged, overrides or {}, sources, "the command line")
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise explain(error, sources) from None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except PermissionError:
        hint = "Run the command as the user of the service (sudo -u …), or choose another file with --config."
        raise ConfigError(f"cannot read {path}: permission denied", hint=hint) from None
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}", hint="Choose an existing file with --config."
        ) from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}", hint="Fix the line named above.") from None


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
    """Whether the setting is a list, which a variable holds comma-separated."""
    # The kind of a channel may be set in another variable or in the file.
    is_channel = parents[:2] == ["alerts", "channels"]
    sections = CHANNEL_KINDS.values() if is_channel else (section_at(parents),)
    fields = (section.model_fields.get(leaf) for section in sections if section)
    return any(field is not None and get_origin(field.annotation) is tuple for field in fields)


def _merge(
    into: dict[str, Any], update: Mapping[str, Any], sources: dict[str, str], source: str, prefix: str = ""
) -> None:
    for key, value in update.items():
        dotted = f"{prefix}{key}"
        sources[dotted] = source
        if isinstance(value, Mapping):
            level = into.setdefault(key, {})
            if isinstance(level, dict):
                _merge(level, value, sources, source, f"{dotted}.")
                continue
        into[key] = value
