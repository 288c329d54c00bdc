"""``clusterscape trace diff``: two runs of the same model, from files or from traces that are kept."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clusterscape.cli.options import ConfigOption, JsonOption, TokenOption
from clusterscape.cli.output import answers, errors, listing_table, print_json
from clusterscape.cli.trace_store import ServerOption
from clusterscape.cli.trace_text import format_s
from clusterscape.errors import SourceError

if TYPE_CHECKING:
    from clusterscape.analyze.trace.diff import RunTables

MAX_ROWS = 24
SEED = 0


def diff_traces(
    before: Annotated[str, typer.Argument(help="A trace's id, or its folder or file.", metavar="A")],
    after: Annotated[str, typer.Argument(help="The other one.", metavar="B")],
    server: ServerOption = None,
    token: TokenOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what changed from one run to another: per step, operator, phase and rank, beyond chance."""
    if server:
        from urllib.parse import urlencode

        from clusterscape.cli.status import fetch

        query = urlencode({"a": before, "b": after})
        found = fetch(f"{server.rstrip('/')}/api/v1/traces/diff?{query}", token)
    else:
        found = _compare(before, after, config)
    if as_json:
        print_json(found)
        return
    for note in found["notes"]:
        errors.print(note, style="yellow", highlight=False, soft_wrap=True)
    for sentence in found["sentences"]:
        answers.print(sentence, highlight=False, soft_wrap=True)
    _print_changes(found["changes"])


def _compare(before: str, after: str, config: Path | None) -> dict[str, Any]:
    import numpy as np

    from clusterscape.analyze.trace.diff import compare_runs

    diff = compare_runs(_tables(before, config), _tables(after, config), np.random.default_rng(SEED))
    changes = [asdict(each) | {"sentence": each.sentence} for each in diff.changes]
    return {"sentences": list(diff.sentences), "changes": changes, "notes": list(diff.notes)}


def _tables(named: str, config: Path | None) -> "RunTables":
    """A run from its files where there are such, else from what is kept."""
    import numpy as np

    from clusterscape.analyze.trace.diff import RunTables

    path = Path(named)
    if path.exists():
        from clusterscape.analyze.trace.packing import pack_trace
        from clusterscape.analyze.trace.report import analyze_trace
        from clusterscape.collect.traces import read_traces

        packed = pack_trace(analyze_trace(read_traces([path]), np.random.default_rng(SEED)))
        return RunTables(packed.spans, packed.steps)
    from clusterscape.cli.site_settings import read_site_settings
    from clusterscape.errors import NotFoundError
    from clusterscape.query.traces.opened import OpenTraces
    from clusterscape.runtime.site import open_artifacts

    try:
        opened = OpenTraces(open_artifacts(read_site_settings(config))).find(named)
    except NotFoundError:
        raise SourceError(
            f"there is neither a file or folder nor a kept trace {named}",
            hint="`clusterscape trace list` shows traces.",
        ) from None
    return RunTables(opened.spans, opened.steps)


def _print_changes(changes: list[dict[str, Any]]) -> None:
    table = listing_table()
    for heading in ("", "what", "before", "after", "difference", "95 %"):
        table.add_column(heading, justify="left" if heading in ("", "what") else "right", overflow="fold")
    for each in changes[:MAX_ROWS]:
        known = each["low_s"] is not None
        between = f"{format_s(each['low_s'])} to {format_s(each['high_s'])}" if known else "too few steps"
        where = f"{each['name']} (rank {each['rank']})" if each["rank"] is not None else each["name"]
        table.add_row(
            "*" if each["is_significant"] else "", where[:80], format_s(each["before_s"]), format_s(each["after_s"]),
            format_s(each["difference_s"]), between,
        )  # fmt: skip
    answers.print(table, highlight=False)
