"""Recorded nvidia-smi logs and events of runs."""

from datetime import timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from clusterscape.collect.recorded_logs import (
    _FIELDS,
    RunSpan,
    SmiLog,
    parse_run_events,
    parse_smi_log,
    read_run_events,
    read_smi_log,
)
from clusterscape.errors import SourceError
from clusterscape.model import NodeId, UnixMs, WorkloadId

NODE = NodeId("gpu-1")
PLAIN = """timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB], power.draw [W], power.limit [W], temperature.gpu
2025/01/02 03:04:05.678, 0, GPU-a, NVIDIA H200, 97, 1024, 650.25, 700.00, 61
2025/01/02 03:04:05.680, 1, GPU-b, NVIDIA H200, 3, 2, 78.00, 700.00, 30
2025/01/02 03:04:06.678, 0, GPU-a, NVIDIA H200, 99, 1024, [N/A], 700.00, 62
"""
FIRST_MS = 1735787045678


def values(log: SmiLog, metric: str, unit: str) -> list[tuple[int, float]]:
    batch = log.samples
    metric_code, unit_code = batch.metrics.find(metric), batch.units.find(unit)
    rows = np.nonzero((batch.metric == metric_code) & (batch.unit == unit_code))[0]
    return [(int(batch.time_ms[row]), float(batch.value[row])) for row in rows]


def test_samples_are_canonical_when_units_are_in_the_heading() -> None:
    log = parse_smi_log(PLAIN, node=NODE)
    assert values(log, "gpu_util_ratio", "gpu-1:0") == [(FIRST_MS, 0.97), (FIRST_MS + 1000, 0.99)]
    assert values(log, "memory_used_bytes", "gpu-1:0")[0] == (FIRST_MS, 2.0**30)
    assert values(log, "power_watts", "gpu-1:1") == [(FIRST_MS + 2, 78.0)]
    assert values(log, "gpu_temperature_celsius", "gpu-1:0")[1][1] == 62.0
    assert log.gpu_names == {"gpu-1:0": "NVIDIA H200", "gpu-1:1": "NVIDIA H200"}
    assert log.skipped_lines == 0


def test_samples_are_the_same_when_units_follow_the_values() -> None:
    with_units = PLAIN
    for plain, written in (
        (", 97,", ", 97 %,"), (", 3,", ", 3 %,"), (", 99,", ", 99 %,"), ("1024,", "1024 MiB,"), (", 2,", ", 2 MiB,"),
        ("650.25", "650.25 W"), ("78.00", "78.00 W"), ("700.00", "700.00 W"),
    ):  # fmt: skip
        with_units = with_units.replace(plain, written)
    plain_log, other = parse_smi_log(PLAIN, node=NODE), parse_smi_log(with_units, node=NODE)
    np.testing.assert_array_equal(plain_log.samples.value, other.samples.value)
    np.testing.assert_array_equal(plain_log.samples.time_ms, other.samples.time_ms)


@pytest.mark.parametrize("word", ["[N/A]", "[Not Supported]", "N/A", "[Unknown Error]", "[GPU requires reset]", ""])
def test_value_is_missing_when_the_gpu_does_not_report_it(word: str) -> None:
    log = parse_smi_log(PLAIN.replace("[N/A]", word), node=NODE)
    assert len(values(log, "power_watts", "gpu-1:0")) == 1


def test_last_line_is_left_out_when_it_is_torn() -> None:
    torn = PLAIN + "2025/01/02 03:04:07.678, 0, GPU-a, NVIDIA H200, 99, 1024, 65"
    # Cut after a digit, the line has all columns but a wrong value.
    full = PLAIN + "2025/01/02 03:04:07.678, 0, GPU-a, NVIDIA H200, 99, 1024, 650.25, 700.00, 6"
    for text in (torn, full):
        log = parse_smi_log(text, node=NODE)
        assert len(values(log, "gpu_util_ratio", "gpu-1:0")) == 2
        assert log.skipped_lines == 1


def test_malformed_lines_are_counted_when_they_are_between_others() -> None:
    lines = PLAIN.splitlines()
    text = "\n".join(
        [lines[0], lines[1], "2025/01/02 03:04", "Unable to determine the device handle", "", lines[0], lines[2], ""]
    )
    log = parse_smi_log(text, node=NODE)
    assert log.skipped_lines == 2
    assert len(values(log, "gpu_util_ratio", "gpu-1:1")) == 1


def test_gpu_is_named_by_its_uuid_when_there_is_no_index() -> None:
    text = "timestamp, uuid, utilization.gpu [%]\n2025/01/02 03:04:05.678, GPU-a, 5\n"
    assert parse_smi_log(text, node=NODE).samples.units.values == ["GPU-a"]
    text = "timestamp, utilization.gpu [%]\n2025/01/02 03:04:05, 5 %\n"
    assert parse_smi_log(text, node=NODE).samples.units.values == ["gpu-1:0"]


def test_instant_power_is_taken_when_several_are_recorded() -> None:
    text = "timestamp, index, power.draw.average [W], power.draw [W], power.draw.instant [W]\n2025/01/02 03:04:05, 0, 1, 2, 3\n"
    assert values(parse_smi_log(text, node=NODE), "power_watts", "gpu-1:0")[0][1] == 3.0


def test_yes_and_no_are_numbers_when_health_is_recorded() -> None:
    text = "timestamp, index, remapped_rows.failure, retired_pages.pending\n2025/01/02 03:04:05, 0, Yes, No\n"
    log = parse_smi_log(text, node=NODE)
    assert values(log, "row_remap_failure", "gpu-1:0")[0][1] == 1.0
    assert values(log, "retired_pages_pending_count", "gpu-1:0")[0][1] == 0.0


def test_time_is_moved_when_the_log_is_of_another_zone() -> None:
    log = parse_smi_log(PLAIN, node=NODE, zone=ZoneInfo("Europe/Berlin"))
    assert int(log.samples.time_ms.min()) == FIRST_MS - 3_600_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2025/01/02 03:04:05.678, 0, 97 %, 650.25 W\n", "not a header of nvidia-smi"),
        ("", "not a header of nvidia-smi"),
        ("index, utilization.gpu [%]\n0, 5\n", "no timestamps"),
        ("timestamp, index, name\n2025/01/02 03:04:05.678, 0, H200\n", "no metric"),
        ("timestamp, index, utilization.gpu [%]\n", "no samples"),
        ("timestamp, index, utilization.gpu [%]\n2025/01/02 03:04:05.678, 0, 5", "no samples"),
    ],
)
def test_error_says_how_to_record_when_the_log_cannot_be_used(text: str, message: str) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        parse_smi_log(text, node=NODE)
    assert caught.value.hint


def test_error_is_reported_when_there_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"cannot read .*: No such file"):
        read_smi_log(tmp_path / "none.csv", node=NODE)


def test_every_known_field_is_read_when_a_recent_driver_wrote_the_log() -> None:
    """Written on an H200 by driver 580: all the fields ``nvidia_smi`` knows, with and without units."""
    folder = Path(__file__).parent / "nvidia_smi"
    logs = [read_smi_log(folder / f"{name}.csv", node=NODE) for name in ("units", "nounits")]
    for log in logs:
        assert log.skipped_lines == 0
        batch = log.samples
        # Pages are retired on older GPUs only: this one says [N/A].
        assert set(batch.metrics.values) == {metric for _, metric in _FIELDS if not metric.startswith("retired_pages")}
        assert 70 < values(log, "power_watts", "gpu-1:0")[0][1] < 90
        assert values(log, "power_limit_watts", "gpu-1:0")[0][1] == 700.0
        assert values(log, "memory_total_bytes", "gpu-1:0")[0][1] == 143771 * 2.0**20
        assert values(log, "memory_clock_hertz", "gpu-1:0")[0][1] == 3.201e9
        assert values(log, "row_remap_failure", "gpu-1:0")[0][1] == 0.0
    with pytest.raises(SourceError, match="not a header of nvidia-smi"):
        read_smi_log(folder / "noheader.csv", node=NODE)


def test_runs_are_cut_when_they_start_and_end() -> None:
    text = """{"t": 10.5, "pid": 1, "mode": "train", "phase": "start", "gpu": 3}
{"t": 11, "pid": 2, "mode": "eval", "phase": "start", "gpus": [0, 1]}
{"t": 12, "pid": 1, "mode": "train", "phase": "step"}
not JSON
[1]
{"t": "soon", "pid": 1, "mode": "train", "phase": "end"}
{"t": 20, "pid": 1, "mode": "train", "phase": "end"}
{"t": 30, "pid": 1, "mode": "train", "phase": "start"}
{"t": 40, "pid": 1, "mod"""
    assert parse_run_events(text) == [
        RunSpan(WorkloadId("train-1"), "train", UnixMs(10_500), UnixMs(20_000), (3,)),
        RunSpan(WorkloadId("eval-2"), "eval", UnixMs(11_000), None, (0, 1)),
        RunSpan(WorkloadId("train-1"), "train", UnixMs(30_000), None),
    ]


def test_run_is_cut_when_it_starts_again_without_an_end() -> None:
    text = '{"t": 1, "mode": "a", "phase": "start"}\n{"t": 5, "mode": "a", "phase": "start"}\n'
    assert [(run.from_at, run.until_at) for run in parse_run_events(text)] == [(1000, None), (5000, None)]


def test_shape_is_shown_when_no_line_is_an_event(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("{}\n")
    with pytest.raises(SourceError, match="has no runs") as caught:
        read_run_events(path)
    assert '"phase": "start"' in (caught.value.hint or "")
    with pytest.raises(SourceError, match="cannot read"):
        read_run_events(tmp_path / "none")


HEADER = "timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W]\n"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_samples_are_the_same_when_powershell_wrote_the_log(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "smi.csv"
    path.write_bytes((HEADER + "2023/11/14 22:13:20.000, 0, 97 %, 1024 MiB, 300.50 W\n").encode(encoding))
    assert len(read_smi_log(path, node=NodeId("n")).samples) == 3


def test_other_columns_are_read_when_mig_leaves_some_empty() -> None:
    text = (
        HEADER + "2023/11/14 22:13:20.000, 0, [N/A], 1024 MiB, [N/A]\n2023/11/14 22:13:21.000, 0, [N/A], 5 MiB, [N/A]\n"
    )
    samples = parse_smi_log(text, node=NodeId("n")).samples
    assert samples.metrics.values == ["memory_used_bytes"]
    assert len(samples) == 2


def test_error_names_mig_when_no_column_has_values() -> None:
    text = HEADER + "2023/11/14 22:13:20.000, 0, [N/A], [Not Supported], [N/A]\n"
    with pytest.raises(SourceError, match=r"all its metrics are \[N/A\]") as caught:
        parse_smi_log(text, node=NodeId("n"))
    assert "MIG" in str(caught.value.hint)


@pytest.mark.parametrize(
    "line",
    [
        f"2023/11/14 22:13:20.000, {'9' * 5000}, 97 %, 1024 MiB, 300.50 W",
        f'2023/11/14 22:13:20.000, 0, "{"x" * 200_000}, 1024 MiB, 300.50 W',
        "2023/11/14 22:13:20.000, 0, 97\x00 %, 1024 MiB, 300.50 W",
        "0001/01/01 00:00:00.000, 0, 97 %, 1024 MiB, 300.50 W",
        "2023/11/14 22:13:20.000, 0, 1e400 %, 9" + "9" * 400 + " MiB, inf W",
    ],
)
def test_other_lines_are_read_when_one_is_absurd(line: str) -> None:
    sound = "2023/11/14 22:13:21.000, 0, 97 %, 1024 MiB, 300.50 W\n"
    log = parse_smi_log(f"{HEADER}{line}\n{sound}", node=NodeId("n"), zone=timezone(timedelta(hours=9)))
    assert 1_699_967_601_000 in log.samples.time_ms


@pytest.mark.parametrize("at", ["1e308", "NaN", "Infinity", "1" + "0" * 400, "[" * 100_000])
def test_other_events_are_read_when_the_time_of_one_is_absurd(at: str) -> None:
    sound = '{"t": 1700000000.0, "pid": 1, "mode": "train", "phase": "start"}'
    runs = parse_run_events(f'{{"t": {at}, "pid": 2, "mode": "x", "phase": "start"}}\n{sound}\n')
    assert [run.name for run in runs] == ["train"]
