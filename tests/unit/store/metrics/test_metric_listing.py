"""Listing and full export of the embedded store, as a move reads it."""

from pathlib import Path

from stores.batches import DAY, NOON, batch_of
from stores.embedded import EAGER, opened

from clusterscape.model import UnixMs

ALL = {"start_ms": UnixMs(0), "end_ms": UnixMs(2**50)}
UNITS = ("n1:0", "n1:1", "n2:0")


def test_all_units_are_handed_out_when_the_store_was_just_opened(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.append_history([batch_of(*(("power_watts", unit, NOON, 1.0) for unit in UNITS))])
        store.append(batch_of(("gpu_util_ratio", "n1:0", NOON + 2 * DAY, 0.5)))
    with opened(tmp_path) as store:
        rows = store.read_all(["power_watts", "gpu_util_ratio"], **ALL)
        assert sorted(rows["unit"]) == sorted([*UNITS, "n1:0"])
        days = store.days(**ALL)
        assert [(day.day, day.metrics) for day in days] == [
            (NOON // DAY, ("power_watts",)),
            (NOON // DAY + 2, ("gpu_util_ratio",)),
        ]
        assert store.days(start_ms=UnixMs(NOON + DAY), end_ms=UnixMs(NOON + 3 * DAY)) == days[1:]


def test_coarse_values_are_handed_out_when_the_samples_are_gone(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER, raw_days=1.0, coarse_days=30.0) as store:
        store.append(batch_of(*(("power_watts", "n1:0", NOON + i * 15_000, float(i)) for i in range(40))))
        store.maintain(now_ms=UnixMs(NOON + 10 * DAY))
        (day,) = store.days(**ALL)
        assert (day.day, day.metrics) == (NOON // DAY, ("power_watts",))
        rows = store.read_all(["power_watts"], **ALL)
        assert rows["value"].to_list() == [9.5, 29.5], "one mean for each five minutes"
