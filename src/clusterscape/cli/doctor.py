"""``clusterscape doctor``: checks settings, stores and sources, and prints how to fix problems."""

from typing import TYPE_CHECKING

import typer
from rich.text import Text

from clusterscape.cli.options import ConfigOption, JsonOption
from clusterscape.cli.output import listing_table, print_json, stdout, styled_line

if TYPE_CHECKING:
    from clusterscape.cli.site_checks import Check


def doctor(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Check the settings, the stores and every source; exits with 1 if a check fails."""
    from clusterscape.cli.checks import check_everything
    from clusterscape.cli.site_settings import log_paths
    from clusterscape.settings import find_config, read_settings

    settings = read_settings(find_config(config))
    log_paths(settings, config)
    checks = check_everything(settings, find_config(config))
    if as_json:
        print_json([{"what": c.what, "ok": c.is_ok, "message": c.message, "hint": c.hint} for c in checks])
    else:
        _print(checks)
    if not all(check.is_ok for check in checks):
        raise typer.Exit(1)


def _print(checks: "list[Check]") -> None:
    table = listing_table(show_header=False)
    table.add_column(width=2)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        sign = Text("✓", "green") if check.is_ok else Text("✗", "red")
        text = styled_line(check.message)
        if check.hint and (not check.is_ok or check.is_note):
            text = Text("\n").join([text, styled_line((f"→ {check.hint}", "dim"))])
        table.add_row(sign, check.what, text)
    stdout.print(table)
    failed = sum(not check.is_ok for check in checks)
    if failed:
        stdout.print(f"{failed} of {len(checks)} checks failed.", style="red")
    else:
        stdout.print("All checks passed.")
