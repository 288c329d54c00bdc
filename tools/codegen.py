"""Writes the client's generated inputs: ``web/openapi.json`` from the routes (the client's types are generated from it,
``npm run codegen``), and ``web/src/base/catalogue.ts`` from the catalogues of metrics, policies, backfills and placements.

``--check`` writes nothing and fails if a file is out of date.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from clusterscape import __version__
from clusterscape.model import CATALOGUE
from clusterscape.model.metrics import MetricUnit
from clusterscape.query.scheduling.whatif_scenario import DEFAULT_BACKFILL, LIVE_BACKFILLS
from clusterscape.serve.app import ROUTES, describe_api
from clusterscape.simulate.batch.contract import BACKFILL_CHOICES, ESTIMATES
from clusterscape.simulate.batch.policies import POLICIES
from clusterscape.simulate.batch.semantics import PRESETS
from clusterscape.simulate.choices import Choice
from clusterscape.simulate.placements import PLACEMENT_FILES

WEB = Path(__file__).parents[1] / "web"

_CATALOGUE_HEAD = """// Generated from the server's catalogues by `make codegen`; do not edit.
// What the server measures and simulates: metrics (`model/metrics.py`), policies, backfills, placements (`simulate/`).

"""


def schema_text() -> str:
    """The OpenAPI document as it is committed."""
    app: FastAPI = describe_api()
    for router in ROUTES:
        app.include_router(router)
    document = get_openapi(title=app.title, version=__version__, description=app.description, routes=app.routes)
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def catalogue_text() -> str:
    """The catalogues as a TypeScript module."""
    units = list(MetricUnit)
    metrics = sorted((metric for metric in CATALOGUE if metric.is_offered), key=lambda metric: units.index(metric.unit))
    live_backfills = [choice for choice in BACKFILL_CHOICES if choice.name in LIVE_BACKFILLS]
    parts = [
        "/** Canonical units of metrics. */",
        f"export type Quantity = {' | '.join(_write(unit.value) for unit in units)};",
        "",
        "/** Metrics of units that are sampled again and again, by unit and then as the server lists them. */",
        "export const METRICS = {",
        *(f"  {metric.name}: {{ label: {_write(metric.label)}, unit: {_write(metric.unit)} }}," for metric in metrics),
        "} as const satisfies Readonly<Record<string, { readonly label: string; readonly unit: Quantity }>>;",
        "",
        "/** `label`: short name in tables; `title`: name in menus. */",
        "export interface Choice {",
        "  readonly name: string;",
        "  readonly label: string;",
        "  readonly title: string;",
        "}",
        *_choices("POLICIES", "Orders of a queue.", POLICIES.describe()),
        *_choices("BACKFILLS", "Ways of backfilling.", BACKFILL_CHOICES),
        *_choices(
            "LIVE_BACKFILLS",
            "What a what-if may choose in place of the scheduler's.",
            [choice for choice in live_backfills if choice.name != DEFAULT_BACKFILL],
        ),
        *_choices(
            "PLACEMENTS",
            "Which of the nodes with room a workload gets.",
            PLACEMENT_FILES.describe(),
        ),
        "",
        "/** What run times are taken for. */",
        f"export const ESTIMATES = {_write(list(ESTIMATES))} as const;",
        "",
        "/** Whose semantics a simulation follows. */",
        f"export const RULE_PRESETS = {_write(list(PRESETS))} as const;",
    ]
    return _CATALOGUE_HEAD + "\n".join(parts) + "\n"


def _choices(name: str, about: str, choices: Iterable[Choice]) -> list[str]:
    rows = [
        f"  {{ name: {_write(choice.name)}, label: {_write(choice.label)}, title: {_write(choice.title)} }},"
        for choice in choices
    ]
    return ["", f"/** {about} */", f"export const {name}: readonly Choice[] = [", *rows, "];"]


def _write(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


TARGETS: Mapping[Path, Callable[[], str]] = {
    WEB / "openapi.json": schema_text,
    WEB / "src/base/catalogue.ts": catalogue_text,
}


def main() -> int:
    """Write or check."""
    stale = []
    for target, make in TARGETS.items():
        text = make()
        if "--check" not in sys.argv:
            target.write_text(text, encoding="utf-8")
        elif not target.is_file() or target.read_text(encoding="utf-8") != text:
            stale.append(target.name)
    for name in stale:
        print(f"{name} is out of date: run `make codegen` and commit the result", file=sys.stderr)
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
