"""Cached columns of past minutes: bounded, and with the same results as without the cache."""

from pathlib import Path

import numpy as np
from stores.batches import NOON, batch_of
from stores.embedded import EAGER, opened, scrape

from clusterscape.model import UnixMs
from clusterscape.store.metrics.embedded.segments import ColumnCache


def test_least_recently_used_goes_when_there_is_too_much() -> None:
    kept = ColumnCache(limit_bytes=3 * 80)
    for name in "abc":
        kept.keep("file", name, np.zeros(10))
    assert kept.find("file", "a") is not None
    kept.keep("file", "d", np.zeros(10))
    assert kept.find("file", "b") is None
    assert [kept.find("file", name) is not None for name in "acd"] == [True, True, True]
    kept.keep("file", "large", np.zeros(100))
    assert kept.find("file", "large") is None


def test_past_values_are_the_same_when_asked_for_again_and_after_compaction(tmp_path: Path) -> None:
    metrics = ("power_watts", "gpu_util_ratio")
    with opened(tmp_path, EAGER) as store:
        for index in range(200):
            store.append(batch_of(*scrape(index, metrics=metrics)))
        store.maintain(now_ms=UnixMs(NOON + 3_600_000))
        moments = [NOON + index * 15_000 for index in (3, 4, 50, 3, 4)]

        def look() -> list[list[tuple[object, ...]]]:
            return [store.latest(metrics, at_ms=UnixMs(at), lookback_ms=20_000).sort("unit").rows() for at in moments]

        first = look()
        assert first[0] == first[3] == [("n1:0", 3.0, 3.0), ("n1:1", 3.0, 3.0), ("n2:0", 3.0, 3.0)]
        store.append(batch_of(*scrape(4, metrics=("power_watts",))))  # the same again, late
        store.maintain(now_ms=UnixMs(NOON + 7_200_000))
        assert look() == first
