"""The embedded store: files, versions, locks, damage, retention, many threads."""

import logging
import os
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stores.batches import DAY, NOON, Sample, batch_of, window
from stores.embedded import EAGER, UNITS, opened, samples_of, scrape

from clusterscape.errors import ConfigError, StoreBusyError, StoreError, StoreVersionError
from clusterscape.model import UnixMs
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.metrics import EmbeddedMetricStore, open_metric_store
from clusterscape.store.metrics.embedded import CompactionPolicy


def files_of(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.glob("**/*")) if p.is_file()}


# -- life of the folder ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_maintained", [False, True])
def test_samples_are_there_when_store_is_opened_again(tmp_path: Path, is_maintained: bool) -> None:
    with opened(tmp_path / "metrics") as store:
        for index in range(20):
            store.append(batch_of(*scrape(index)))
        if is_maintained:
            store.maintain(now_ms=UnixMs(NOON + DAY))
        before, info = samples_of(store), store.info()
        latest = store.latest(["power_watts"], at_ms=UnixMs(NOON + DAY), lookback_ms=DAY).sort("unit")
    with opened(tmp_path / "metrics") as store:
        assert samples_of(store) == before
        assert len(before) == 60
        assert store.info() == info
        again = store.latest(["power_watts"], at_ms=UnixMs(NOON + DAY), lookback_ms=DAY).sort("unit")
        assert again.equals(latest)


def test_settings_choose_the_embedded_store_when_nothing_else_is_named(tmp_path: Path) -> None:
    store = open_metric_store(StorageSettings(data_dir=tmp_path, min_free_bytes=0), RetentionSettings())
    store.append(batch_of(*scrape(0)))
    store.close()
    assert (tmp_path / "metrics/FORMAT").read_text() == "clusterscape-metrics 1\n"


def test_second_opening_is_refused_when_store_is_in_use(tmp_path: Path) -> None:
    with opened(tmp_path / "metrics") as store:
        with pytest.raises(StoreBusyError, match=f"process {os.getpid()}") as caught:
            EmbeddedMetricStore(tmp_path / "metrics", RetentionSettings())
        assert caught.value.hint
        store.append(batch_of(*scrape(0)))
        assert len(samples_of(store)) == 3


def test_newer_store_is_refused_untouched_when_opened(tmp_path: Path) -> None:
    with opened(tmp_path / "metrics", EAGER) as store:
        store.append(batch_of(*scrape(0)))
        store.maintain(now_ms=UnixMs(NOON))
        store.append(batch_of(*scrape(1)))
    (tmp_path / "metrics/FORMAT").write_text("clusterscape-metrics 2\n")
    (tmp_path / "metrics/raw/unknown.tmp").write_text("of a newer version")
    before = files_of(tmp_path)
    with pytest.raises(StoreVersionError, match="format 2") as caught:
        EmbeddedMetricStore(tmp_path / "metrics", RetentionSettings())
    assert caught.value.hint
    assert files_of(tmp_path) == before


def test_foreign_folder_is_refused_when_its_format_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "FORMAT").write_text("something else")
    with pytest.raises(StoreError, match="does not name a format"):
        EmbeddedMetricStore(tmp_path, RetentionSettings())


def test_nothing_is_deleted_when_the_manifest_is_lost(tmp_path: Path) -> None:
    with opened(tmp_path / "metrics", EAGER) as store:
        store.append(batch_of(*scrape(0)))
        store.maintain(now_ms=UnixMs(NOON))
    (tmp_path / "metrics/manifest.json").unlink()
    before = files_of(tmp_path)
    with pytest.raises(StoreError, match=r"cannot read .*manifest\.json"):
        EmbeddedMetricStore(tmp_path / "metrics", RetentionSettings())
    assert files_of(tmp_path) == before


def test_coarse_step_is_refused_when_it_does_not_divide_a_day(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="coarse_step_s"):
        EmbeddedMetricStore(tmp_path / "metrics", RetentionSettings(coarse_step_s=700))


def test_calls_are_refused_when_store_is_closed(tmp_path: Path) -> None:
    with opened(tmp_path / "metrics") as store:
        pass
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.append(batch_of(*scrape(0)))
    with pytest.raises(StoreError, match="closed"):
        samples_of(store)


def test_files_are_readable_by_other_tools_when_compacted(tmp_path: Path) -> None:
    with opened(tmp_path / "metrics", CompactionPolicy(wait_ms=0)) as store:
        store.append(batch_of(*scrape(0, metrics=("power_watts", "unit", "time_ms"))))
        store.append(batch_of(("power_watts", "n1:0", NOON + 15_000, 7.0)))
        store.maintain(now_ms=UnixMs(NOON))
        assert samples_of(store, "unit") == scrape(0, metrics=("unit",))
    frame = pl.read_parquet(tmp_path / "metrics/raw/**/*.parquet")
    assert frame.schema == {
        "unit": pl.String,
        "time_ms": pl.Int64,
        "power_watts": pl.Float64,
        "metric:unit": pl.Float64,
        "metric:time_ms": pl.Float64,
    }
    assert frame.select("unit", "time_ms", "power_watts").rows() == [
        ("n1:0", NOON, 0.0),
        ("n1:0", NOON + 15_000, 7.0),
        ("n1:1", NOON, 0.0),
        ("n2:0", NOON, 0.0),
    ]
    assert frame["metric:unit"].null_count() == 1


# -- crashes and damage ------------------------------------------------------------------------------------------------


def test_leftovers_of_a_crash_are_cleared_when_store_is_opened(tmp_path: Path) -> None:
    folder = tmp_path / "metrics"
    with opened(folder, EAGER) as store:
        for index in range(4):
            store.append(batch_of(*scrape(index)))
        store.maintain(now_ms=UnixMs(NOON))
        store.append(batch_of(*scrape(4)))
        expected = samples_of(store)
    segment = next(folder.glob("raw/*/*.parquet"))
    leftovers = [
        segment.with_name("0000000099-0.parquet"),  # a compaction that was not published
        segment.with_name("0000000100-0.parquet.tmp"),
        folder / "recent/0000000001.parquet",  # compacted, but not yet deleted
        folder / "recent/0000000006.parquet.tmp",
        folder / "manifest.json.tmp",
    ]
    for path in leftovers:
        shutil.copy(segment, path)
    with opened(folder, EAGER) as store:
        assert samples_of(store) == expected
        assert store.info().samples == len(expected)
    assert not any(path.exists() for path in leftovers)


@pytest.mark.parametrize("damage", ["truncated", "scrambled", "missing", "flipped magic"])
def test_damaged_segment_is_set_aside_when_found(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "metrics"
    with opened(folder) as store:
        store.append_history([batch_of(*scrape(0)), batch_of(*scrape(0, at=NOON + DAY))])
        store.append(batch_of(*scrape(1, at=NOON + DAY)))
    path = sorted(folder.glob("raw/*/*.parquet"))[0]
    content = path.read_bytes()
    match damage:
        case "truncated":
            path.write_bytes(content[: len(content) // 2])
        case "scrambled":
            path.write_bytes(content[:8] + bytes(255 - byte for byte in content[8:-8]) + content[-8:])
        case "missing":
            path.unlink()
        case _:
            path.write_bytes(content[:-4] + b"XXXX")
    with caplog.at_level(logging.WARNING), opened(folder) as store:
        assert samples_of(store) == sorted(scrape(0, at=NOON + DAY) + scrape(1, at=NOON + DAY), key=lambda s: s[:3])
        assert store.info().samples == 6
        store.append(batch_of(*scrape(2, at=NOON + DAY)))
        store.maintain(now_ms=UnixMs(NOON + 2 * DAY))
        assert len(samples_of(store)) == 9
    assert path.name in caplog.text
    if damage != "missing":
        assert len(list(folder.glob("damaged/*.parquet"))) == 1


def test_damaged_recent_file_is_set_aside_when_store_is_opened(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "metrics"
    with opened(folder) as store:
        for index in range(3):
            store.append(batch_of(*scrape(index)))
    (folder / "recent/0000000002.parquet").write_bytes(b"PAR1 but not really PAR1")
    with caplog.at_level(logging.WARNING), opened(folder) as store:
        assert {sample[3] for sample in samples_of(store)} == {0.0, 2.0}
        store.append(batch_of(*scrape(3)))
    assert "it was moved to" in caplog.text
    with opened(folder) as store:
        assert {sample[3] for sample in samples_of(store)} == {0.0, 2.0, 3.0}


def test_coarse_values_are_written_again_when_their_file_was_damaged(tmp_path: Path) -> None:
    folder = tmp_path / "metrics"

    def steps(store: EmbeddedMetricStore) -> pl.DataFrame:
        end = UnixMs(NOON + DAY)
        return store.series(["power_watts"], UNITS, start_ms=UnixMs(NOON - DAY), end_ms=end, step_ms=300_000)

    with opened(folder) as store:
        store.append_history([batch_of(*(sample for index in range(100) for sample in scrape(index)))])
        expected = steps(store)
        store.maintain(now_ms=UnixMs(NOON + DAY))
        assert steps(store).equals(expected)
    path = next(folder.glob("coarse/*/*.parquet"))
    path.write_bytes(path.read_bytes()[:-4] + b"XXXX")
    with opened(folder) as store:
        assert steps(store).equals(expected)
        store.maintain(now_ms=UnixMs(NOON + DAY))
        assert steps(store).equals(expected)
    assert len(list(folder.glob("coarse/*/*.parquet"))) == 1


# -- any sequence of operations ----------------------------------------------------------------------------------------

a_sample = st.tuples(
    st.sampled_from(["power_watts", "energy_joules"]),
    st.sampled_from([str(unit) for unit in UNITS]),
    st.integers(-20, 20).map(lambda step: NOON + step * 3_600_000),
    st.integers(0, 9).map(float),
)
an_operation: st.SearchStrategy[tuple[str, list[Sample]]] = st.one_of(
    st.tuples(st.just("append"), st.lists(a_sample, max_size=6)),
    st.tuples(st.just("history"), st.lists(a_sample, max_size=6)),
    st.tuples(st.just("maintain"), st.just([])),
    st.tuples(st.just("reopen"), st.just([])),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operations=st.lists(an_operation, max_size=14))
def test_store_equals_a_dictionary_when_operations_come_in_any_order(
    tmp_path: Path, operations: list[tuple[str, list[Sample]]]
) -> None:
    folder = tmp_path / "metrics"
    shutil.rmtree(folder, ignore_errors=True)
    model: dict[tuple[str, str, int], float] = {}
    store = EmbeddedMetricStore(folder, RetentionSettings(), policy=EAGER)
    for name, samples in operations:
        match name:
            case "append":
                store.append(batch_of(*samples))
            case "history":
                store.append_history([batch_of(sample) for sample in samples])
            case "maintain":
                store.maintain(now_ms=UnixMs(NOON + DAY))
            case _:
                store.close()
                store = EmbeddedMetricStore(folder, RetentionSettings(), policy=EAGER)
        model |= {sample[:3]: sample[3] for sample in samples}
    expected = sorted((*key, value) for key, value in model.items())
    assert samples_of(store, "power_watts", "energy_joules") == expected
    for at in (NOON - 4 * 3_600_000, NOON, NOON + DAY):
        newest = {s[1]: s[3] for s in expected if s[0] == "power_watts" and at - 2 * 3_600_000 <= s[2] <= at}
        latest = store.latest(["power_watts"], at_ms=UnixMs(at), lookback_ms=2 * 3_600_000)
        assert dict(latest.iter_rows()) == newest
    hours = store.series(["power_watts"], UNITS, **window(NOON - DAY + 1, NOON + DAY), step_ms=6 * 3_600_000)
    groups: dict[tuple[str, int], list[float]] = {}
    for metric, unit, time, value in expected:
        if metric == "power_watts" and time > NOON - DAY:
            groups.setdefault((unit, time - time % (6 * 3_600_000)), []).append(value)
    assert [(u, t, round(v, 9)) for u, t, v in hours.select("unit", "time_ms", "value").iter_rows()] == [
        (unit, time, round(float(np.mean(values)), 9)) for (unit, time), values in sorted(groups.items())
    ]
    store.close()
