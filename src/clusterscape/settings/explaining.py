"""What is wrong with a setting, in plain words: which key, from where, what is allowed."""

import difflib
from collections.abc import Mapping

from pydantic import BaseModel, ValidationError

from clusterscape.errors import ConfigError
from clusterscape.settings.telling import CHANNEL_KINDS
from clusterscape.settings.whole import Settings


def explain(error: ValidationError, where: Mapping[str, str]) -> ConfigError:
    """The first problem in plain words: which key, from where, what is allowed."""
    first = error.errors(include_url=False)[0]
    path = [str(part) for part in first["loc"]]
    # Behind a channel's name stands its kind, which is no part of the key.
    key = ".".join(path[:3] + path[4:] if path[:2] == ["alerts", "channels"] else path)
    source = where.get(key, "the settings")
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        allowed = _fields_at(path[:-1])
        close = difflib.get_close_matches(path[-1], allowed, n=1)
        hint = f"Did you mean `{close[0]}`? " if close else ""
        section = f"[{key.rpartition('.')[0]}]" if len(path) > 1 else "the top level"
        return ConfigError(
            f"unknown setting `{key}` in {source}{more}", hint=f"{hint}{section} takes: {', '.join(allowed)}."
        )
    # A whole section may hold secrets.
    is_hidden = _is_secret(path) or isinstance(first["input"], Mapping)
    value = "" if first["type"] == "missing" else f" = {'(hidden)' if is_hidden else repr(first['input'])}"
    return ConfigError(f"setting `{key}`{value} in {source} is wrong: {first['msg']}{more}", hint=_describe(path))


def _is_secret(path: list[str]) -> bool:
    """Whether the field or one that it is part of is kept out of what is printed."""
    for length in range(1, len(path) + 1):
        section = section_at(path[: length - 1])
        field = section.model_fields.get(path[length - 1]) if section else None
        if field is not None and not field.repr:
            return True
    return False


def section_at(path: list[str]) -> type[BaseModel] | None:
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
