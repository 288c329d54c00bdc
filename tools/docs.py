"""Writes ``docs/reference`` from the code: settings, metrics, commands, the API; and the table of limits of
``docs/design/access.md``. ``--check`` fails where one is out of date."""

import sys
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path

import typer
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.core import TyperArgument, TyperGroup, TyperOption

from clusterscape.analyze.rules.reference import reference_page
from clusterscape.cli.entry import app as command
from clusterscape.cli.run import build_parser
from clusterscape.model import CATALOGUE
from clusterscape.serve.app import ROUTES
from clusterscape.settings import CHANNEL_KINDS, AlertsSettings, ChannelSettings, Settings
from clusterscape.settings.limits import LimitsSettings

FOLDER = Path(__file__).parents[1] / "docs/reference"
ACCESS = FOLDER.parent / "design/access.md"
LIMITS_BEGIN, LIMITS_END = "<!-- limits: written by `make docs` -->", "<!-- end of limits -->"
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


def limits_table() -> str:
    """Every limit, for docs/design/access.md."""
    rows = ["| setting | default | bounds |", "|---|---|---|"]
    for name, section in LimitsSettings.model_fields.items():
        kind = section.annotation
        assert isinstance(kind, type)
        assert issubclass(kind, BaseModel)
        for setting, field in kind.model_fields.items():
            rows.append(f"| `limits.{name}.{setting}` | {_default(field)} | {field.description} |")
    return "\n".join(rows)


def fill_in(page: str) -> str:
    """``page`` with the table between its two marks as it is now."""
    before, _, rest = page.partition(LIMITS_BEGIN)
    _, _, after = rest.partition(LIMITS_END)
    return f"{before}{LIMITS_BEGIN}\n{limits_table()}\n{LIMITS_END}{after}"


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
    """Every sub-command with its arguments and options."""
    lines = [
        "# Commands",
        "",
        "From `cli/`. What answers questions takes `--json`; what asks a running server takes `--url` and `--token`.",
    ]
    group = typer.main.get_command(command)
    assert isinstance(group, TyperGroup)
    lines += _commands(group, "clusterscape")
    return "\n".join(lines)


def _commands(group: TyperGroup, path: str) -> Iterator[str]:
    for name, found in group.commands.items():
        if isinstance(found, TyperGroup):
            yield from _commands(found, f"{path} {name}")
            continue
        rows = list(_run_options() if name == "run" else _parameters(found.params))
        words = [_usage_word(each) for each in found.params if isinstance(each, TyperArgument)]
        usage = "[OPTIONS] SCRIPT.py … | -- COMMAND …" if name == "run" else " ".join(["[OPTIONS]", *words])
        yield from ("", f"## {path} {name}", "", f"    {path} {name} {usage}", "", found.help or "", "")
        if rows:
            yield from ("| argument, option | default | meaning |", "|---|---|---|", *rows)


def _usage_word(argument: TyperArgument) -> str:
    word = (argument.name or "").upper() + ("…" if argument.nargs == -1 else "")
    return word if argument.required else f"[{word}]"


def _parameters(parameters: Sequence[object]) -> Iterator[str]:
    for each in parameters:
        if isinstance(each, TyperArgument):
            yield _command_row((each.name or "").upper(), each.default, each.help)
        elif isinstance(each, TyperOption) and not each.hidden:
            yield _command_row(", ".join(each.opts), None if each.is_flag else each.default, each.help)


def _run_options() -> Iterator[str]:
    """``run`` parses its words itself, since they stand in front of another command's."""
    for action in build_parser()._actions:
        if action.option_strings and action.dest != "help":
            text = (action.help or "").replace("%(default)s", str(action.default))
            yield _command_row(", ".join(reversed(action.option_strings)), None, text)


def _command_row(name: str, default: object, text: str | None) -> str:
    plain = default.value if isinstance(default, Enum) else default
    is_shown = plain is not None and not callable(plain) and plain not in ((), [], "", ".")
    shown = f"`{plain}`" if is_shown and not isinstance(plain, (bool, Path)) else ""
    return f"| `{name}` | {shown} | {(text or '').replace('|', chr(92) + '|')} |"


def api_page() -> str:
    """Every route by area, with what it can be asked by."""
    lines = [
        "# API",
        "",
        "The schema is at `/openapi.json`: types of parameters, bodies and answers. Times are Unix ms, ratios 0–1, missing is",
        'null. Bulk answers are Arrow IPC streams; every error is `{"error": {"code", "message", "hint"}}`. Where somebody must',
        "sign in, scripts send `Authorization: Bearer TOKEN` ([access](../guide/access.md#tokens-for-scripts-and-trackers)).",
        "From `serve/routes`.",
    ]
    areas: dict[str, list[str]] = {}
    for area in ROUTES:
        for route in area.router.routes:
            assert isinstance(route, APIRoute)
            methods = ", ".join(sorted(set(route.methods or ()) - {"HEAD"}))
            text = (route.endpoint.__doc__ or "").strip().splitlines()[0]
            asked = ", ".join(f"`{each.alias}`" for each in route.dependant.query_params)
            rows = areas.setdefault(str(route.tags[0]) if route.tags else "server", [])
            rows.append(f"| `{methods} {route.path}` | {asked} | {text} |")
    for tag, rows in areas.items():
        lines += ["", f"## {tag[:1].upper() + tag[1:]}", "", "| route | parameters | answer |", "|---|---|---|", *rows]
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
    written = ACCESS.read_text(encoding="utf-8")
    if "--check" not in sys.argv:
        ACCESS.write_text(fill_in(written), encoding="utf-8")
    elif fill_in(written) != written:
        stale.append("../design/access.md")
    if stale:
        print(f"docs/reference is out of date ({', '.join(stale)}): run `make docs`", file=sys.stderr)
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
