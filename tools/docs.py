"""Writes ``docs/reference`` from the code: settings, metrics, commands, the API. ``--check`` fails where one is out of date."""

import sys
from collections.abc import Iterator
from pathlib import Path

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.core import TyperGroup, TyperOption

from clusterscape.analyze.rules.reference import reference_page
from clusterscape.cli.entry import app as command
from clusterscape.model import CATALOGUE
from clusterscape.serve.app import ROUTES
from clusterscape.settings import CHANNEL_KINDS, AlertsSettings, ChannelSettings, Settings

FOLDER = Path(__file__).parents[1] / "docs/reference"
NOTE = "<!-- Written by `make docs`; change the code it names, not this file. -->\n"


def _settings(section: type[BaseModel], path: str = "") -> Iterator[str]:
    nested = []
    rows = []
    for name, field in section.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            nested.append((f"{path}.{name}".lstrip("."), kind))
            continue
        if section in CHANNEL_KINDS.values() and (name == "kind" or name not in section.__annotations__):
            continue  # told by the heading, or once for all kinds
        rows.append(f"| `{name}` | {_default(field)} | {field.description} |")
    if path:
        heading = path if "]" in path else f"{path}]"
        yield f"\n## [{heading}\n\n{(section.__doc__ or '').strip()}\n"
    if rows:
        yield "\n| setting | default | meaning |\n|---|---|---|"
        yield from rows
    for inner, kind in nested:
        yield from _settings(kind, inner)
    if section is AlertsSettings:
        yield from _settings(ChannelSettings, f"{path}.channels.NAME")
        for name, kind in CHANNEL_KINDS.items():
            yield from _settings(kind, f'{path}.channels.NAME] kind = "{name}"')


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if value is None or value in ((), {}):
        return ""
    plain = ", ".join(str(part) for part in value) if isinstance(value, tuple) else value
    return f"`{plain}`"


def settings_page() -> str:
    """Every setting."""
    head = """# Settings

Given in a TOML file (`clusterscape serve --config clusterscape.toml`), or as environment variables such as
`CLUSTERSCAPE_SERVER__PORT=9000` (two underscores per level; lists are comma-separated). The environment wins over the file, the
command line over both. From `settings/`."""
    return "\n".join([head, *_settings(Settings)])


def metrics_page() -> str:
    """The catalogue."""
    rows = [
        f"| `{m.name}` | {m.label} | {m.unit.value} | {m.kind.value} | {m.help} | {', '.join(f'`{a}`' for a in m.aliases)} |"
        for m in CATALOGUE
    ]
    head = """# Metrics

Canonical names and units; a source's value is multiplied into the canonical unit. From `model/metrics.py`.

| name | label | unit | kind | meaning | names at the sources |
|---|---|---|---|---|---|"""
    return "\n".join([head, *rows])


def commands_page() -> str:
    """Every sub-command with its options."""
    lines = ["# Commands", "", "From `cli/`. Every command takes `--json`."]
    group = typer.main.get_command(command)
    assert isinstance(group, TyperGroup)
    lines += _commands(group, "clusterscape")
    return "\n".join(lines)


def _commands(group: TyperGroup, path: str) -> Iterator[str]:
    for name, found in group.commands.items():
        if isinstance(found, TyperGroup):
            yield from _commands(found, f"{path} {name}")
            continue
        yield from ("", f"## {path} {name}", "", found.help or "", "", "| option | meaning |", "|---|---|")
        yield from (f"| `{', '.join(o.opts)}` | {o.help or ''} |" for o in found.params if isinstance(o, TyperOption))


def api_page() -> str:
    """Every route."""
    lines = [
        "# API",
        "",
        "The schema is at `/openapi.json`. Bulk answers are Arrow IPC streams; every error is",
        '`{"error": {"code", "message", "hint"}}`. From `serve/routes`.',
        "",
        "| route | answer |",
        "|---|---|",
    ]
    for area in ROUTES:
        for route in area.router.routes:
            methods = ", ".join(sorted(getattr(route, "methods", set()) - {"HEAD"}))
            text = (getattr(route, "endpoint", None).__doc__ or "").strip().splitlines()[0]
            lines.append(f"| `{methods} {getattr(route, 'path', '')}` | {text} |")
    return "\n".join(lines)


PAGES = {
    "settings.md": settings_page,
    "metrics.md": metrics_page,
    "commands.md": commands_page,
    "api.md": api_page,
    "rules.md": reference_page,
}


def main() -> int:
    """Write or check every page."""
    stale = []
    for name, make in PAGES.items():
        text = NOTE + make() + "\n"
        path = FOLDER / name
        if "--check" in sys.argv:
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                stale.append(name)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if stale:
        print(f"docs/reference is out of date ({', '.join(stale)}): run `make docs`", file=sys.stderr)
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
