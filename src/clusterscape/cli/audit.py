"""``clusterscape audit``: what was done or tried on a site, by whom, when and from where."""

import dataclasses
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from clusterscape.cli.options import ConfigOption, JsonOption
from clusterscape.cli.output import answers, listing_table, print_json

if TYPE_CHECKING:
    from clusterscape.model.access import AuditEntry

HOUR_MS = 3_600_000


def audit(
    hours: Annotated[float | None, typer.Option(min=0, help="Only of the last hours.")] = None,
    actor: Annotated[str | None, typer.Option(help="Only of this login.")] = None,
    action: Annotated[str | None, typer.Option(help="Only this, such as sign_in, rule.save, or all of rule.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Most entries, the newest.")] = 100,
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
        found = access.store.audit(AuditFilter(actor=actor, action=action, since_ms=since), limit=limit)[::-1]
    if as_json:
        print_json([dataclasses.asdict(entry) for entry in found])
    elif found:
        _print(found)
    else:
        answers.print("Nothing was noted.")


def _print(entries: "list[AuditEntry]") -> None:
    table = listing_table()
    for heading in ("when (UTC)", "who", "way", "from", "what", "on", ""):
        table.add_column(heading, no_wrap=heading != "on", overflow="fold")
    for each in entries:
        when = datetime.fromtimestamp(each.at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
        details = " ".join(f"{name}={value}" for name, value in each.details.items())
        style = "yellow" if each.outcome.value == "refused" else None
        table.add_row(
            *(when, each.actor or "–", each.way or "–", each.address or "–", each.action),
            f"{each.target or ''} {details}".strip() or "–",
            "refused" if style else "",
            style=style,
        )
    answers.print(table)
