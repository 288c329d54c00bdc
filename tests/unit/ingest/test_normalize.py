import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterscape.collect.exposition import ExpositionParser
from clusterscape.ingest.drops import DropReason, Drops, NoteReason
from clusterscape.ingest.normalize import FORGET_AFTER_MS, LATE_AFTER_MS, RESTATE_MS, Normalized, Normalizer
from clusterscape.model import ALIASES, METRICS, NodeId, RawScrape, UnitKind, UnixMs

NOW = UnixMs(1_700_000_000_000)
GPU = 'gpu="0",UUID="GPU-1",modelName="NVIDIA A100-SXM4-80GB",Hostname="gpu-001",DCGM_FI_DRIVER_VERSION="535.1"'
UTIL = "DCGM_FI_DEV_GPU_UTIL"


class Bench:
    """A parser and a normalizer for several rounds."""

    def __init__(self, node: str | None = None) -> None:
        self.drops = Drops()
        self.normalizer = Normalizer(self.drops)
        self.parser = ExpositionParser("http://gpu-001:9400/metrics", NodeId(node) if node else None)
        self.now = NOW

    def scrape(self, *lines: str) -> RawScrape:
        return self.parser.parse("".join(f"{line}\n" for line in lines).encode(), fetched_at=self.now)

    def round(self, *lines: str, after_ms: int = 15_000) -> Normalized:
        self.now = UnixMs(self.now + after_ms)
        return self.normalizer.normalize([self.scrape(*lines)], now_ms=self.now)

    def noted(self, reason: NoteReason) -> int:
        return self.drops.notes().get(("exporter", reason), 0)


def samples(normalized: Normalized) -> list[tuple[str, str, float]]:
    batch = normalized.batch
    return [
        (batch.units.values[unit], batch.metrics.values[metric], value)
        for unit, metric, value in zip(batch.unit, batch.metric, batch.value.tolist(), strict=True)
    ]


def test_values_are_canonical_when_units_differ_by_source() -> None:
    normalized = Bench().round(
        f"{UTIL}{{{GPU}}} 97",
        f"DCGM_FI_PROF_SM_ACTIVE{{{GPU}}} 0.5",
        f"DCGM_FI_DEV_FB_USED{{{GPU}}} 1024",
        f"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{GPU}}} 5000",
        f"DCGM_FI_DEV_SM_CLOCK{{{GPU}}} 1410",
        f"dcgm_power_usage{{{GPU}}} 300.5",
    )

    assert samples(normalized) == [
        ("gpu-001:0", "gpu_util_ratio", pytest.approx(0.97)),
        ("gpu-001:0", "sm_active_ratio", 0.5),
        ("gpu-001:0", "memory_used_bytes", 2.0**30),
        ("gpu-001:0", "energy_joules", pytest.approx(5.0)),
        ("gpu-001:0", "sm_clock_hertz", 1.41e9),
        ("gpu-001:0", "power_watts", 300.5),
    ]
    assert set(normalized.batch.time_ms.tolist()) == {NOW + 15_000}
    assert normalized.rows == 6
    assert not normalized.dropped


@pytest.mark.parametrize(
    "blank",
    [
        *(str(0x7FFFFFF0 + code) for code in range(4)),
        *(str(0x7FFFFFFFFFFFFFF0 + code) for code in range(4)),
        "2147483632.000000",
        "9223372036854775794",
        "9.223372036854776e+18",
        "-9223372036854775808",
        "18446744073709551615",
        "140737488355328.000000",
        "1.40737488355330e+14",
    ],
)
@pytest.mark.parametrize("name", [UTIL, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"])
def test_value_is_blank_when_dcgm_has_none(name: str, blank: str) -> None:
    normalized = Bench().round(f"{name}{{{GPU}}} {blank}")

    assert len(normalized.batch) == 0
    assert normalized.dropped == {DropReason.BLANK: 1}


@pytest.mark.parametrize("large", ["2147483631", "2147483648", "140737488355344", "9000000000000000000"])
def test_large_counter_is_kept_when_it_is_no_blank(large: str) -> None:
    normalized = Bench().round(f"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{GPU}}} {large}")

    assert normalized.batch.value.tolist() == pytest.approx([float(large) / 1000])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f"{UTIL}{{{GPU}}} NaN", DropReason.NOT_A_NUMBER),
        (f"{UTIL}{{{GPU}}} +Inf", DropReason.NOT_A_NUMBER),
        (f"{UTIL}{{{GPU}}} -1", DropReason.OUT_OF_RANGE),
        (f"{UTIL}{{{GPU}}} 103", DropReason.OUT_OF_RANGE),
        (f"DCGM_FI_DEV_GPU_TEMP{{{GPU}}} 300", DropReason.OUT_OF_RANGE),
        (f"DCGM_FI_DEV_PSTATE{{{GPU}}} 0", DropReason.UNKNOWN_METRIC),
        ("go_goroutines 12", DropReason.UNKNOWN_METRIC),
        (f'{UTIL}{{gpu="0"}} 5', DropReason.NO_NODE),
        (f'{UTIL}{{Hostname="gpu-001"}} 5', DropReason.NO_GPU),
        (f"{UTIL}{{{GPU}}} 5 {NOW - LATE_AFTER_MS}", DropReason.LATE),
        (f"{UTIL}{{{GPU}}} ERROR - FAILED TO CONVERT TO STRING", "malformed_value"),
    ],
)
def test_row_is_counted_by_reason_when_it_is_dropped(line: str, reason: str) -> None:
    bench = Bench()

    normalized = bench.round(line, 'DCGM_FI_DEV_POWER_USAGE{gpu="0",Hostname="gpu-001"} 300')

    assert samples(normalized) == [("gpu-001:0", "power_watts", 300.0)]
    assert normalized.dropped == {reason: 1}
    assert bench.drops.counts() == {("exporter", reason): 1}


def test_temperature_below_zero_is_kept_when_the_catalogue_allows_it() -> None:
    assert samples(Bench().round(f"DCGM_FI_DEV_GPU_TEMP{{{GPU}}} -5")) == [
        ("gpu-001:0", "gpu_temperature_celsius", -5.0)
    ]


def test_shared_gpu_counts_once_when_each_job_has_its_row() -> None:
    normalized = Bench().round(*(f'{UTIL}{{{GPU},hpc_job="{job}"}} 50' for job in (11, 12, 13)))

    assert samples(normalized) == [("gpu-001:0", "gpu_util_ratio", 0.5)]
    assert normalized.dropped == {DropReason.DUPLICATE: 2}
    assert normalized.facts is not None
    assert normalized.facts.labels == {"gpu-001:0": ("slurm:11", "slurm:12", "slurm:13")}


def test_first_value_stays_when_rows_of_one_gpu_disagree() -> None:
    normalized = Bench().round(f'{UTIL}{{{GPU},hpc_job="1"}} 50', f'{UTIL}{{{GPU},hpc_job="2"}} 60')

    assert samples(normalized) == [("gpu-001:0", "gpu_util_ratio", 0.5)]
    assert normalized.dropped == {DropReason.CONFLICT: 1}


def test_first_name_of_the_catalogue_stays_when_a_metric_comes_under_two() -> None:
    normalized = Bench().round(f"DCGM_FI_DEV_POWER_USAGE_INSTANT{{{GPU}}} 350", f"DCGM_FI_DEV_POWER_USAGE{{{GPU}}} 300")

    assert samples(normalized) == [("gpu-001:0", "power_watts", 300.0)]
    assert normalized.dropped == {DropReason.OTHER_NAME: 1}


def test_counts_add_up_and_the_worst_state_stays_when_a_label_splits_a_number() -> None:
    normalized = Bench().round(
        *(f'DCGM_EXP_XID_ERRORS_COUNT{{{GPU},xid="{xid}"}} {count}' for xid, count in ((31, 2), (43, 5))),
        *(f'DCGM_EXP_XID_ERRORS_COUNT{{{GPU},xid="{xid}",hpc_job="9"}} {count}' for xid, count in ((31, 2), (43, 5))),
        *(
            f'DCGM_EXP_GPU_HEALTH_STATUS{{{GPU},health_watch="{watch}"}} {state}'
            for watch, state in (("PCIE", 0), ("MEM", 20), ("SM", 10))
        ),
    )

    assert {metric: value for _, metric, value in samples(normalized)} == {
        "xid_errors_count": 7.0,
        "health_status": 20.0,
    }
    assert normalized.dropped == {DropReason.DUPLICATE: 2, DropReason.MERGED: 3}


def test_counter_is_stored_as_it_is_and_noted_when_it_falls() -> None:
    bench = Bench()
    bench.round(f"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{GPU}}} 5000", f"{UTIL}{{{GPU}}} 90")

    normalized = bench.round(f"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{GPU}}} 10", f"{UTIL}{{{GPU}}} 10")

    assert normalized.batch.value.tolist() == pytest.approx([0.01, 0.1])
    assert bench.noted(NoteReason.COUNTER_RESET) == 1


def test_fetch_time_is_taken_and_noted_when_a_timestamp_lies_in_the_future() -> None:
    bench = Bench()

    normalized = bench.round(f"{UTIL}{{{GPU}}} 50 {NOW + 3_600_000}")

    assert normalized.batch.time_ms.tolist() == [bench.now]
    assert bench.noted(NoteReason.CLOCK_SKEW) == 1


def test_own_timestamp_is_kept_when_it_is_a_little_ahead_or_behind() -> None:
    normalized = Bench().round(
        f"{UTIL}{{{GPU}}} 50 {NOW + 16_000}", f"DCGM_FI_DEV_POWER_USAGE{{{GPU}}} 300 {NOW - 60_000}"
    )

    assert sorted(normalized.batch.time_ms.tolist()) == [NOW - 60_000, NOW + 16_000]


def test_sample_is_dropped_when_an_earlier_scrape_had_the_same_timestamp() -> None:
    bench = Bench()
    bench.round(f"{UTIL}{{{GPU}}} 50 {NOW}")

    again = bench.round(f"{UTIL}{{{GPU}}} 50 {NOW}", f"DCGM_FI_DEV_POWER_USAGE{{{GPU}}} 300 {NOW}")
    later = bench.round(f"{UTIL}{{{GPU}}} 50 {NOW + 1}")

    assert samples(again) == [("gpu-001:0", "power_watts", 300.0)]
    assert again.dropped == {DropReason.REPEATED: 1}
    assert len(later.batch) == 1


def test_all_times_are_kept_when_one_scrape_holds_several_of_a_series() -> None:
    bench = Bench()

    normalized = bench.round(*(f"DCGM_FI_DEV_POWER_USAGE{{{GPU}}} {300 + step} {NOW - step}" for step in range(3)))

    assert sorted(zip(normalized.batch.time_ms.tolist(), normalized.batch.value.tolist(), strict=True)) == [
        (NOW - 2, 302.0),
        (NOW - 1, 301.0),
        (NOW, 300.0),
    ]
    assert bench.round(f"DCGM_FI_DEV_POWER_USAGE{{{GPU}}} 300 {NOW}").dropped == {DropReason.REPEATED: 1}


def test_units_and_nodes_are_reported_once_when_nothing_changes() -> None:
    bench = Bench()
    lines = [f"DCGM_FI_DEV_FB_USED{{{GPU}}} 1000", f"DCGM_FI_DEV_FB_FREE{{{GPU}}} 80920"]

    facts = bench.round(*lines).facts

    assert facts is not None
    (unit,) = facts.units
    assert (unit.id, unit.kind, unit.node, unit.index, unit.uuid) == (
        "gpu-001:0",
        UnitKind.GPU,
        "gpu-001",
        0,
        "GPU-1",
    )
    assert (unit.machine_type, unit.memory_bytes) == ("A100-80G", 81_920 * 2**20)
    (node,) = facts.nodes
    assert (node.id, node.gpu_count, node.machine_type, node.driver_version) == ("gpu-001", 1, "A100-80G", "535.1")
    assert bench.round(*lines).facts is None


def test_mig_instance_comes_with_its_gpu_when_only_the_instance_has_rows() -> None:
    facts = Bench().round(f'DCGM_FI_PROF_SM_ACTIVE{{{GPU},GPU_I_ID="7",GPU_I_PROFILE="1g.10gb"}} 0.5').facts

    assert facts is not None
    gpu, instance = facts.units
    assert (gpu.id, gpu.kind, gpu.uuid, gpu.mig_profile) == ("gpu-001:0", UnitKind.GPU, "GPU-1", None)
    assert (instance.id, instance.kind, instance.uuid) == ("gpu-001:0/7", UnitKind.MIG, None)
    assert (instance.parent, instance.mig_profile) == ("gpu-001:0", "1g.10gb")
    assert facts.nodes[0].gpu_count == 1


def test_unit_is_reported_again_when_the_card_is_swapped() -> None:
    bench = Bench()
    bench.round(f"{UTIL}{{{GPU}}} 1")

    facts = bench.round(f"{UTIL}{{{GPU.replace('GPU-1', 'GPU-2')}}} 1").facts

    assert facts is not None
    assert [unit.uuid for unit in facts.units] == ["GPU-2"]


def test_holders_are_reported_when_they_change_and_again_after_a_while() -> None:
    bench = Bench()
    job = f'{UTIL}{{{GPU},hpc_job="7"}} 50'
    idle = f"{UTIL}{{{GPU}}} 0"

    def labels(line: str, after_ms: int = 1_000) -> object:
        facts = bench.round(line, after_ms=after_ms).facts
        return None if facts is None else facts.labels

    assert labels(idle) == {"gpu-001:0": ()}  # closes what an earlier program run left open
    assert labels(job) == {"gpu-001:0": ("slurm:7",)}
    assert labels(job) is None
    assert labels(job, RESTATE_MS) == {"gpu-001:0": ("slurm:7",)}
    assert labels(idle) == {"gpu-001:0": ()}
    assert labels(idle, RESTATE_MS) is None


def test_node_of_the_target_is_taken_when_rows_name_none() -> None:
    normalized = Bench(node="gpu-009").round(f'{UTIL}{{gpu="0"}} 50')

    assert samples(normalized) == [("gpu-009:0", "gpu_util_ratio", 0.5)]


def test_difference_is_noted_when_target_and_exporter_name_other_nodes() -> None:
    bench = Bench(node="gpu-009")

    assert samples(bench.round(f"{UTIL}{{{GPU}}} 50")) == [("gpu-009:0", "gpu_util_ratio", 0.5)]
    assert bench.noted(NoteReason.NODE_DIFFERS) == 1


def test_one_batch_holds_all_nodes_when_a_round_has_many_exporters() -> None:
    drops = Drops()
    normalizer = Normalizer(drops)
    parsers = [ExpositionParser(f"http://gpu-{n}:9400/metrics", NodeId(f"gpu-{n}")) for n in range(50)]
    for value in (10, 20):
        scrapes = [
            parser.parse(
                f'{UTIL}{{gpu="0"}} {value}\n{UTIL}{{gpu="1"}} {value}\n'.encode(), fetched_at=UnixMs(NOW + value)
            )
            for parser in parsers
        ]
        normalized = normalizer.normalize(scrapes, now_ms=UnixMs(NOW + value))

        assert len({(unit, metric) for unit, metric, _ in samples(normalized)}) == 100
        assert set(normalized.batch.value.tolist()) == {value / 100}
    assert normalized.batch.unit.dtype == np.int32
    assert normalized.batch.metric.dtype == np.int32
    assert normalized.batch.time_ms.dtype == np.int64


def test_samples_stay_right_when_a_target_was_silent_for_long() -> None:
    bench = Bench()
    bench.round(f"{UTIL}{{{GPU}}} 50")
    other = ExpositionParser("http://gpu-002:9400/metrics", NodeId("gpu-002"))
    for step in (1, 2):
        at = UnixMs(bench.now + step * (FORGET_AFTER_MS + RESTATE_MS))
        bench.normalizer.normalize([other.parse(f'{UTIL}{{gpu="0"}} 5\n'.encode(), fetched_at=at)], now_ms=at)

    assert samples(bench.round(f"{UTIL}{{{GPU}}} 60", after_ms=4 * FORGET_AFTER_MS)) == [
        ("gpu-001:0", "gpu_util_ratio", 0.6)
    ]


def test_nothing_comes_out_when_a_round_is_empty() -> None:
    normalized = Normalizer(Drops()).normalize([], now_ms=NOW)

    assert len(normalized.batch) == 0
    assert normalized.facts is None


numbers = st.one_of(
    st.floats(-10, 200).map(repr),
    st.sampled_from(["NaN", "+Inf", "9223372036854775794", "2147483632", "-1", "1e308", "oops", "1_0", ""]),
)
times = st.one_of(
    st.just(""),
    st.just(""),
    st.sampled_from([f" {NOW + delta}" for delta in (-(10**10), -5_000, 0, 0, 5_000, 10**10)] + [" x", " 1e40"]),
)
lines = st.builds(
    lambda name, gpu, extra, value, time: f"{name}{{{gpu}{extra}}} {value}{time}",
    st.sampled_from([*list(ALIASES)[:12], "DCGM_EXP_XID_ERRORS_COUNT", "unknown_thing"]),
    st.sampled_from(
        ['gpu="0",Hostname="a"', 'gpu="1",hostname="a.b"', 'device="nvidia0",node="b"', 'UUID="GPU-1"', ""]
    ),
    st.sampled_from(["", ',hpc_job="1"', ',hpc_job="2"', ',xid="43"', ',GPU_I_ID="1"', ',GPU_I_ID="x"', ',bad="']),
    numbers,
    times,
)


@settings(deadline=None)
@given(st.lists(st.lists(lines, max_size=15), min_size=1, max_size=4), st.data())
def test_every_line_is_a_sample_or_a_counted_drop_when_text_is_damaged(
    rounds: list[list[str]], data: st.DataObject
) -> None:
    drops = Drops()
    normalizer = Normalizer(drops)
    parsers = [ExpositionParser("one"), ExpositionParser("two", NodeId("two"))]
    stored = came = 0
    for number, text_lines in enumerate(rounds):
        body = bytearray("".join(f"{line}\n" for line in text_lines).encode())
        for _ in range(data.draw(st.integers(0, 2))):
            if body:
                body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
        now = UnixMs(NOW + 15_000 * number)
        content = [line for line in bytes(body).split(b"\n") if line.strip() and not line.lstrip().startswith(b"#")]
        came += 2 * len(content)
        scrapes = [parser.parse(bytes(body), fetched_at=now) for parser in parsers]
        normalized = normalizer.normalize(scrapes, now_ms=now)
        stored += len(normalized.batch)

        assert normalized.rows == 2 * len(content)
        assert len(normalized.batch) + sum(normalized.dropped.values()) == normalized.rows
        keys = list(
            zip(
                normalized.batch.unit.tolist(),
                normalized.batch.metric.tolist(),
                normalized.batch.time_ms.tolist(),
                strict=True,
            )
        )
        assert len(keys) == len(set(keys))
        for _, metric, value in samples(normalized):
            assert math.isfinite(value)
            upper = METRICS[metric].upper
            assert value >= METRICS[metric].lower
            assert upper is None or value <= upper
    assert stored + sum(drops.counts().values()) == came
