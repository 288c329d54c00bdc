"""``clusterscape audit``: prints the audit log."""

import dataclasses
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from clusterscape.cli.options import ConfigOption, JsonOption
from clusterscape.cli.output import listing_table, print_json, stdout
from clusterscape.model.durations import HOUR_MS

if TYPE_CHECKING:
    from clusterscape.model.access import AuditEntry


def audit(
    hours: Annotated[
        float | None, typer.Option(min=0, help="Only entries of the last hours.", show_default="all")
    ] = None,
    actor: Annotated[str | None, typer.Option(help="Only entries of this user.")] = None,
    action: Annotated[
        str | None, typer.Option(help="Only this action, such as sign_in or rule.save, or a prefix, such as rule.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=10_000, help="Maximum number of entries; the newest are shown.")
    ] = 100,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the audit log, oldest first."""
    from clusterscape.cli.access import open_access
    from clusterscape.model import UnixMs
    from clusterscape.runtime.site import system_clock
    from clusterscape.store.access import AuditFilter

    since = None if hours is None else UnixMs(int(system_clock() - hours * HOUR_MS))
    with open_access(config) as access:
        entries = access.store.audit(AuditFilter(actor=actor, action=action, since_ms=since), limit=limit)[::-1]
    if as_json:
        print_json([dataclasses.asdict(entry) for entry in entries])
    elif entries:
        _print(entries)
    else:
        stdout.print("No entries.")


def _print(entries: "list[AuditEntry]") -> None:
    table = listing_table()
    for heading in ("when (UTC)", "who", "way", "from", "what", "on", ""):
        table.add_column(heading, no_wrap=heading != "on", overflow="fold")
    for entry in entries:
        when = datetime.fromtimestamp(entry.at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
        details = " ".join(f"{name}={value}" for name, value in entry.details.items())
        style = "yellow" if entry.outcome.value == "refused" else None
        table.add_row(
            *(when, entry.actor or "–", entry.way or "–", entry.address or "–", entry.action),
            f"{entry.target or ''} {details}".strip() or "–",
            "refused" if style else "",
            style=style,
        )
    stdout.print(table)
