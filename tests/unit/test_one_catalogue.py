"""A metric, policy, placement or rule statistic that is added in one file of a copy of the package appears in the API."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

METRIC = """    _gauge(
        "fan_speed_hertz", "Fan speed", MetricUnit.HERTZ, "Turns of the fan in a second.", "EXAMPLE_FAN_SPEED"
    ),
    _computed(
        "gpu_missing",
"""

POLICY = '''"""Smallest job first."""

from clusterscape.model.arrays import Float64s
from clusterscape.simulate.batch.contract import Waiting


class SmallestFirst:
    """By processors."""

    is_static = True

    def score(self, waiting: Waiting) -> Float64s:
        """Processors."""
        return waiting.processors.astype(float)


TITLE = "Smallest job first"
POLICY = SmallestFirst()
'''

PLACEMENT = '''"""Nodes in the order of the site's list."""

import numpy as np

from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.simulate.placing import NodeLoads, Placement, PodRequest


class InOrder(Placement):
    """The first node that fits."""

    def score(self, state: NodeLoads, candidates: Int64s, request: PodRequest) -> Float64s:
        """The place in the list."""
        return np.asarray(candidates, np.float64)


PLACEMENT = InOrder()
'''

STATISTIC_KIND = """    INCREASE = "increase"  # of a counter, corrected for resets
    RANGE = "range"  # from the smallest value to the largest
"""
STATISTIC = """STATISTIC_CATALOGUE: tuple[StatisticEntry, ...] = (
    StatisticEntry(
        kind=StatisticKind.RANGE,
        label="range",
        help="From the smallest value to the largest.",
        words=("reach",),
        promql="max_over_time({series}[{window}]) - min_over_time({series}[{window}])",
        derive=lambda column: column(StatisticKind.MAX) - column(StatisticKind.MIN),
    ),
"""

ASK = """
import json
import sys
from pathlib import Path

import numpy as np

tools, tests, folder = sys.argv[1:]
sys.path[:0] = [tools, tests]

import codegen
from clusters.opened import open_services
from clusters.small import SmallCluster, fill_inventory, fill_queue
from fastapi.testclient import TestClient

import clusterscape
from clusterscape.analyze.stats.exact import ExactColumns, Series
from clusterscape.analyze.stats.sketch import MetricSketch
from clusterscape.model.rules import Statistic, StatisticKind
from clusterscape.serve.app import create_app
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.records import open_record_store

assert clusterscape.__file__.startswith(folder)
storage = StorageSettings(data_dir=Path(folder) / "data")
cluster = SmallCluster(open_metric_store(storage, RetentionSettings()), open_record_store(storage))
fill_inventory(cluster.records)
fill_queue(cluster.records)

time_ms, values = np.arange(4) * 15_000, np.array([[0.2, 0.9, 0.4, 0.3]])
RANGE = Statistic(StatisticKind("range"))
sketch = MetricSketch("gpu_util_ratio", 1)
sketch.add(np.zeros(4, np.int64), time_ms, values[0])
exact = ExactColumns({"gpu_util_ratio": Series.from_table(time_ms, values)}, 1)

queries = cluster.queries
with TestClient(create_app(queries, services=open_services(queries), static=Path(folder))) as client:
    rule = {"text": "gpu_util range > 50%", "name": "Mine"}
    answers = {
        "metrics": [metric["name"] for metric in client.get("/api/v1/metrics").json()],
        "tick": client.get("/api/v1/tick?metrics=fan_speed_hertz,gpu_util_ratio:range").status_code,
        "statistics": {entry["kind"]: entry for entry in client.get("/api/v1/rule-language").json()["statistics"]},
        "rule": client.put("/api/v1/rules/mine", json=rule).status_code,
        "options": client.get("/api/v1/simulations/options").json(),
    }
answers["range"] = [exact.column("gpu_util_ratio", RANGE).tolist(), sketch.column(np.zeros(1, np.int64), RANGE).tolist()]
answers["client"] = codegen.catalogue_text()
print(json.dumps(answers))
"""


def add(path: Path, before: str, after: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1, before
    path.write_text(text.replace(before, after), encoding="utf-8")


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Answers of a package in which each has been added to one file."""
    folder = tmp_path_factory.mktemp("extended")
    package = folder / "src/clusterscape"
    # With their times, so that compiled code of files that stay as they are is found.
    shutil.copytree(ROOT / "src/clusterscape", package, ignore=shutil.ignore_patterns("static"))
    add(package / "model/metrics.py", '    _computed(\n        "gpu_missing",\n', METRIC)
    (package / "simulate/batch/policies/smallest_first.py").write_text(POLICY, encoding="utf-8")
    (package / "simulate/placements/in_order.py").write_text(PLACEMENT, encoding="utf-8")
    statistics = package / "model/statistics.py"
    add(statistics, '    INCREASE = "increase"  # of a counter, corrected for resets\n', STATISTIC_KIND)
    add(statistics, "STATISTIC_CATALOGUE: tuple[StatisticEntry, ...] = (\n", STATISTIC)
    (folder / "ask.py").write_text(ASK, encoding="utf-8")
    process = subprocess.run(
        [sys.executable, folder / "ask.py", ROOT / "tools", ROOT / "tests", folder],
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    answers: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return answers


def test_metric_is_listed_read_and_offered_when_it_is_in_the_catalogue(answers: dict[str, Any]) -> None:
    assert "fan_speed_hertz" in answers["metrics"]
    assert answers["tick"] == 200
    assert 'fan_speed_hertz: { label: "Fan speed", unit: "hertz" },' in answers["client"]


def test_policy_and_placement_are_offered_when_their_files_are_there(answers: dict[str, Any]) -> None:
    assert "smallest-first" in answers["options"]["policies"]
    assert "in-order" in answers["options"]["placements"]
    assert '{ name: "smallest-first", label: "smallest first", title: "Smallest job first" },' in answers["client"]
    assert '{ name: "in-order", label: "in order", title: "In order" },' in answers["client"]


def test_statistic_is_offered_read_and_computed_when_it_is_in_the_catalogue(answers: dict[str, Any]) -> None:
    assert answers["statistics"]["range"]["help"] == "From the smallest value to the largest."
    assert answers["rule"] == 200
    assert answers["range"] == [[pytest.approx(0.7)], [pytest.approx(0.7)]]
