"""An embedded store for tests, what it holds, and scrapes for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clusterscape.model import UnitId
from clusterscape.settings import RetentionSettings
from clusterscape.store.metrics import EmbeddedMetricStore
from clusterscape.store.metrics.embedded import CompactionPolicy
from stores.batches import NOON, Sample, window

EAGER = CompactionPolicy(wait_ms=0, fan_in=2, small_cells=4, segment_cells=64)
UNITS = [UnitId("n1:0"), UnitId("n1:1"), UnitId("n2:0")]


@contextmanager
def opened(folder: Path, policy: CompactionPolicy | None = None, **retention: float) -> Iterator[EmbeddedMetricStore]:
    store = EmbeddedMetricStore(folder, RetentionSettings.model_validate(retention), policy=policy)
    try:
        yield store
    finally:
        store.close()


def samples_of(store: EmbeddedMetricStore, *metrics: str, start: int = 0, end: int = 2**60) -> list[Sample]:
    frame = store.series(metrics or ["power_watts"], UNITS, **window(start, end))
    return [(str(m), str(u), int(t), float(v)) for m, u, t, v in frame.iter_rows()]


def scrape(index: int, *, metrics: tuple[str, ...] = ("power_watts",), at: int = NOON) -> list[Sample]:
    return [(metric, unit, at + index * 15_000, float(index)) for metric in metrics for unit in UNITS]
