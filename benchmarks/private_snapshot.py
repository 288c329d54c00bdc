"""The picture of 10,000 units on a private site, as a researcher sees it, compared with the plain one: server time and bytes.

Budget: ≤ 1.5 times the plain picture, uncached; a viewer of the same scope gets it for nothing.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from clusters.opened import open_queries

from benchmarks.report import Report
from benchmarks.snapshot_wire import build_site, median_ms
from clusterscape.model.access import Role, Viewer
from clusterscape.query import Queries
from clusterscape.query.picture import SnapshotRow
from clusterscape.serve.redaction import redact_table
from clusterscape.serve.wire import compress, to_ipc

RESEARCHER = Viewer(login="user-7", role=Role.RESEARCHER)
LEAD = Viewer(login="user-7", role=Role.LEAD, projects=frozenset({"project-3"}))


def cpu_ms(works: Mapping[str, Callable[[], object]], repeat: int = 15) -> dict[str, float]:
    """Median CPU time of each in ms, measured in turns, so that other load on the machine affects all alike."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeat):
        for name, work in works.items():
            begin = time.process_time()
            work()
            times[name].append(time.process_time() - begin)
    return {name: statistics.median(seconds) * 1000 for name, seconds in times.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report = Report(f"A private picture of {options.gpus:,} units")
    with tempfile.TemporaryDirectory() as folder:
        plain = build_site(Path(folder), options.gpus)
        site = open_queries(replace(plain.context, is_private=True))

        def answer(queries: Queries) -> bytes:
            return compress(
                to_ipc(redact_table(queries.redactor, queries.cluster.build_picture(), SnapshotRow).frame), "zstd"
            )

        def first_look() -> bytes:
            # Every name is redacted again: the cost of the first viewer after a restart.
            return answer(open_queries(site.context).scoped_to(RESEARCHER))

        spent = cpu_ms(
            {
                "plain": lambda: answer(plain),
                "researcher": lambda: answer(site.scoped_to(RESEARCHER)),
                "lead": lambda: answer(site.scoped_to(LEAD)),
                "first viewer after a start": first_look,
            }
        )
        plain_ms = spent.pop("plain")
        for name, spent_ms in spent.items():
            budget = None if name.startswith("first") else 1.5 * plain_ms
            report.add(f"{name}, uncached", spent_ms, "ms of CPU", plain_ms, "plain picture", budget=budget)
        scoped = site.scoped_to(RESEARCHER)
        scoped.redacted_picture()
        report.add(
            "the same scope again", median_ms(lambda: site.scoped_to(RESEARCHER).redacted_picture()), "ms", budget=1
        )
        packed = len(answer(scoped)) / 1000
        usual = len(compress(to_ipc(plain.cluster.build_picture()), "zstd")) / 1000
        report.add("on the wire, zstd", packed, "KB", usual, "plain picture", budget=500)
    report.publish(as_json=options.json)


if __name__ == "__main__":
    main()
