"""Writes ``docs/reference`` from the code: settings, metrics, XIDs, commands, the API; and the table of limits of
``docs/design/access.md``. ``--check`` fails if one is out of date."""

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
from clusterscape.model import CATALOGUE, MetricSubject
from clusterscape.model.xids import ADVICE, XIDS, XidAction
from clusterscape.serve.app import ROUTES
from clusterscape.settings import (
    CHANNEL_KINDS,
    AccountingSettings,
    AlertsSettings,
    BudgetSettings,
    ChannelSettings,
    PriceSettings,
    Settings,
)
from clusterscape.settings.limits import LimitsSettings

FOLDER = Path(__file__).parents[1] / "docs/reference"
ACCESS = FOLDER.parent / "design/access.md"
LIMITS_BEGIN, LIMITS_END = "<!-- limits: written by `make docs` -->", "<!-- end of limits -->"
NOTE = "<!-- Written by `make docs`; change the code it names, not this file. -->\n"


class Words(str):
    """A default in words, such as "all users"."""


def _settings(section: type[BaseModel], path: str = "") -> Iterator[str]:
    nested = []
    rows = []
    for name, field in section.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            nested.append((f"{path}.{name}".lstrip("."), kind))
            continue
        if section in CHANNEL_KINDS.values() and (name == "kind" or name not in section.__annotations__):
            continue  # in the heading, or documented once for all kinds
        rows.append(f"| `{name}` | {_default(field)} | {field.description} |")
    if path:
        heading = path if "]" in path else f"{path}]"
        yield f"\n## [{heading}\n\n{(section.__doc__ or '').strip()}\n"
    if rows:
        yield "\n| setting | default | meaning |\n|---|---|---|"
        yield from rows
    for inner, kind in nested:
        yield from _settings(kind, inner)
    if section is AccountingSettings:
        yield from _settings(PriceSettings, f'{path}.prices."DAY"')
        yield from _settings(BudgetSettings, f"{path}.budgets.NAME")
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
    """The table of all limits, for docs/design/access.md."""
    rows = ["| setting | default | bounds |", "|---|---|---|"]
    for name, section in LimitsSettings.model_fields.items():
        kind = section.annotation
        assert isinstance(kind, type)
        assert issubclass(kind, BaseModel)
        for setting, field in kind.model_fields.items():
            rows.append(f"| `limits.{name}.{setting}` | {_default(field)} | {field.description} |")
    return "\n".join(rows)


def fill_in(page: str) -> str:
    """``page`` with the current table between its two markers."""
    before, _, rest = page.partition(LIMITS_BEGIN)
    _, _, after = rest.partition(LIMITS_END)
    return f"{before}{LIMITS_BEGIN}\n{limits_table()}\n{LIMITS_END}{after}"


def settings_page() -> str:
    """The page of all settings."""
    head = """# Settings

Given in a TOML file (`clusterscape serve --config clusterscape.toml`), or as environment variables such as
`CLUSTERSCAPE_SERVER__PORT=9000` (two underscores per level; lists are comma-separated). The environment wins over the file, the
command line over both. From `settings/`."""
    return "\n".join([head, *_settings(Settings)])


_MEASURED = {
    MetricSubject.UNIT: "GPU",
    MetricSubject.JOB: "job",
    MetricSubject.NODE: "whole node",
    MetricSubject.SOURCE: "source",
    MetricSubject.PERIOD: "jobs of a user or project",
}


def metrics_page() -> str:
    """The page of the metric catalogue."""
    rows = [
        f"| `{m.name}` | {m.label} | {_MEASURED[m.subject]} | {m.unit.value} | {m.kind.value} | {m.help} | "
        f"{', '.join(f'`{name}`' for name in m.aliases)} |"
        for m in CATALOGUE
    ]
    head = """# Metrics

Canonical names and units; a source's value is multiplied into the canonical unit. A name with labels in braces means only the
series that have them. Metrics of a job are of its part on one node; metrics of a whole node include whatever else runs there.
From `model/metrics.py`.

| name | label | of | unit | kind | meaning | names at the sources |
|---|---|---|---|---|---|---|"""
    return "\n".join([head, *rows])


def xids_page() -> str:
    """The page of XID codes."""
    rows = [
        f"| {xid.code} | {xid.meaning} | {ADVICE[xid.action]} | {'yes' if xid.needs_operator else ''} |"
        for _, xid in sorted(XIDS.items())
    ]
    head = f"""# XID errors

What each error code of NVIDIA's driver requires. Codes marked *hardware* break the rules *Faulty GPU* and *XID, ECC or
row-remap error*, through the metric `xid_hardware_code`; the others are of programs, or harmless. Any code that is not
listed counts as hardware: {ADVICE[XidAction.REPORT]}. From `model/xids.py`, after NVIDIA's XID catalogue.

| XID | meaning | what to do | hardware |
|---|---|---|---|"""
    return "\n".join([head, *rows])


def commands_page() -> str:
    """The page of all subcommands with their arguments and options."""
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
    for name, subcommand in group.commands.items():
        if isinstance(subcommand, TyperGroup):
            yield from _commands(subcommand, f"{path} {name}")
            continue
        rows = list(_run_options() if name == "run" else _parameters(subcommand.params))
        words = [_usage_word(parameter) for parameter in subcommand.params if isinstance(parameter, TyperArgument)]
        usage = "[OPTIONS] SCRIPT.py … | -- COMMAND …" if name == "run" else " ".join(["[OPTIONS]", *words])
        yield from ("", f"## {path} {name}", "", f"    {path} {name} {usage}", "", subcommand.help or "", "")
        yield from ("```sh", *_examples(subcommand.epilog or ""), "```", "")
        if rows:
            yield from ("| argument, option | default | meaning |", "|---|---|---|", *rows)


def _examples(epilog: str) -> list[str]:
    """The command lines of an epilog; its first line is a heading."""
    return [line.strip() for line in epilog.splitlines()[1:]]


def _usage_word(argument: TyperArgument) -> str:
    word = (argument.name or "").upper() + ("…" if argument.nargs == -1 else "")
    return word if argument.required else f"[{word}]"


def _parameters(parameters: Sequence[object]) -> Iterator[str]:
    for parameter in parameters:
        if isinstance(parameter, TyperArgument):
            yield _command_row((parameter.name or "").upper(), _shown_default(parameter), parameter.help)
        elif isinstance(parameter, TyperOption) and not parameter.hidden:
            default = None if parameter.is_flag else _shown_default(parameter)
            yield _command_row(", ".join(parameter.opts), default, parameter.help)


def _shown_default(parameter: TyperArgument | TyperOption) -> object:
    """The default as `--help` shows it: in words if the command has words for it."""
    return Words(parameter.show_default) if isinstance(parameter.show_default, str) else parameter.default


def _run_options() -> Iterator[str]:
    """Options of ``run``, which parses its arguments itself because they precede another command's."""
    for action in build_parser()._actions:
        if action.option_strings and action.dest != "help":
            text = (action.help or "").replace("%(default)s", str(action.default))
            yield _command_row(", ".join(reversed(action.option_strings)), None, text)


def _command_row(name: str, default: object, text: str | None) -> str:
    plain = default.value if isinstance(default, Enum) else default
    is_shown = plain is not None and not callable(plain) and plain not in ((), [], "", ".")
    shown = (
        "" if not is_shown or isinstance(plain, (bool, Path)) else plain if isinstance(plain, Words) else f"`{plain}`"
    )
    return f"| `{name}` | {shown} | {(text or '').replace('|', chr(92) + '|')} |"


def api_page() -> str:
    """The page of all routes by area, with their parameters."""
    lines = [
        "# API",
        "",
        "The schema is at `/openapi.json`: types of parameters, bodies and answers. Times are Unix ms, ratios 0–1, missing is",
        'null. Bulk answers are Arrow IPC streams; every error is `{"error": {"code", "message", "hint"}}`. Where somebody must',
        "sign in, scripts send `Authorization: Bearer TOKEN` ([access](../guide/access.md#tokens-for-scripts-and-trackers)).",
        "From `serve/routes`.",
    ]
    areas: dict[str, list[str]] = {}
    for router in ROUTES:
        for route in router.routes:
            assert isinstance(route, APIRoute)
            methods = ", ".join(sorted(set(route.methods or ()) - {"HEAD"}))
            text = (route.endpoint.__doc__ or "").strip().splitlines()[0]
            parameters = ", ".join(f"`{parameter.alias}`" for parameter in route.dependant.query_params)
            rows = areas.setdefault(str(route.tags[0]) if route.tags else "server", [])
            rows.append(f"| `{methods} {route.path}` | {parameters} | {text} |")
    for tag, rows in areas.items():
        lines += ["", f"## {tag[:1].upper() + tag[1:]}", "", "| route | parameters | answer |", "|---|---|---|", *rows]
    return "\n".join(lines)


PAGES = {
    "settings.md": settings_page,
    "metrics.md": metrics_page,
    "xids.md": xids_page,
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
    access_page = ACCESS.read_text(encoding="utf-8")
    if "--check" not in sys.argv:
        ACCESS.write_text(fill_in(access_page), encoding="utf-8")
    elif fill_in(access_page) != access_page:
        stale.append("../design/access.md")
    if stale:
        print(f"docs/reference is out of date ({', '.join(stale)}): run `make docs`", file=sys.stderr)
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
