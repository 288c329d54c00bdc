"""``clusterscape doctor``: checks every configured connection and says what is wrong and how to mend it."""

from typing import TYPE_CHECKING

import typer
from rich.table import Table

from clusterscape.cli.options import ConfigOption, JsonOption
from clusterscape.cli.output import answers, print_json

if TYPE_CHECKING:
    from clusterscape.cli.checks import Check


def doctor(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Check the configuration, the stores and every source. Ends with 1 where something is wrong."""
    from clusterscape.cli.checks import check_everything
    from clusterscape.settings import read_settings

    checks = check_everything(read_settings(config), config)
    if as_json:
        print_json([{"what": c.what, "ok": c.is_ok, "message": c.message, "hint": c.hint} for c in checks])
    else:
        _print(checks)
    if not all(check.is_ok for check in checks):
        raise typer.Exit(1)


def _print(checks: "list[Check]") -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(width=2)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        sign = "[green]✓[/green]" if check.is_ok else "[red]✗[/red]"
        text = check.message if check.is_ok or not check.hint else f"{check.message}\n[dim]→ {check.hint}[/dim]"
        table.add_row(sign, check.what, text)
    answers.print(table)
    wrong = sum(not check.is_ok for check in checks)
    answers.print("All is well." if not wrong else f"[red]{wrong} of {len(checks)} checks failed.[/red]")
