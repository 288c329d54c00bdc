"""The committed cut has the signatures that the recording's own description states."""

import json
import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from clusterscape.demo.recorded import (
    RECORDED_IDLE_WATTS,
    RECORDED_LIMIT_WATTS,
    Mode,
    read_shapes,
)

CUT_TOOL = Path(__file__).parents[3] / "tools" / "cut_h200.py"


def percentiles(mode: Mode, column: str) -> list[float]:
    shapes = read_shapes()
    piece = slice(shapes.offset[mode], shapes.offset[mode] + shapes.length[mode])
    values = getattr(shapes, column)[piece]
    if column == "power":
        values = values * (RECORDED_LIMIT_WATTS - RECORDED_IDLE_WATTS) + RECORDED_IDLE_WATTS
    return [float(value) for value in np.percentile(values, (5, 50, 95))]


@pytest.mark.parametrize(
    ("mode", "util", "watts"),
    [
        (Mode.HEALTHY, (99, 100, 100), (652, 694, 738)),
        (Mode.MIXED, (0, 100, 100), (122, 683, 747)),
        (Mode.HANG, (100, 100, 100), (121, 121, 122)),
        (Mode.INPUT_BOUND, (3, 4, 7), (122, 127, 185)),
    ],
)
def test_shape_has_the_recorded_percentiles_when_cut(
    mode: Mode, util: tuple[float, ...], watts: tuple[float, ...]
) -> None:
    assert percentiles(mode, "util") == pytest.approx(util, abs=0.5)
    assert percentiles(mode, "power") == pytest.approx(watts, rel=0.02)


def test_idle_shapes_differ_when_a_process_holds_the_gpu() -> None:
    assert percentiles(Mode.IDLE, "power")[1] == pytest.approx(78.5, abs=1)
    assert percentiles(Mode.CONTEXT, "power")[1] == pytest.approx(121, abs=1)


def test_light_cycle_pauses_less_when_training_is_repeated() -> None:
    shapes = read_shapes()
    assert shapes.power_mean[Mode.MIXED_LIGHT] > shapes.power_mean[Mode.MIXED] + 0.1
    assert (
        shapes.checkpoint.sum() == 2 * shapes.checkpoint[shapes.offset[Mode.MIXED] :][: shapes.length[Mode.MIXED]].sum()
    )


def test_committed_cut_is_small_when_packaged() -> None:
    cut = resources.files("clusterscape.demo") / "shapes" / "h200.csv"
    assert len(cut.read_bytes()) < 100_000


def test_tool_cuts_each_mode_when_run_on_a_recording(tmp_path: Path) -> None:
    header = (
        "timestamp, index, uuid, name, utilization.gpu [%], utilization.memory [%], memory.used [MiB], memory.total [MiB], "
        "power.draw.instant [W], power.limit [W], temperature.gpu, temperature.memory, clocks.current.sm [MHz]"
    )
    rows = [
        f"2026/11/15 06:00:{second:02d}.000, 0, GPU-0, NVIDIA H200, {90 if second >= 4 else 0}, 5, 700, 1000, 80.0, 700.0, "
        f"35, 38, {1980 if second >= 2 else 345}"
        for second in range(60)
    ]
    (tmp_path / "telemetry.csv").write_text("\n".join([header, *rows]))
    start_s = 1_794_722_400.0
    stages = [
        (4, "healthy", "start"), (9, "healthy", "end"),
        (10, "mixed", "train"), (12, "mixed", "validation"), (14, "mixed", "checkpoint"), (16, "mixed", "train"),
        (18, "mixed", "validation"), (19, "mixed", "end"),
        (20, "hang", "hang"), (28, "hang", "end"), (30, "inputbound", "start"), (40, "inputbound", "end"),
    ]  # fmt: skip
    events = [json.dumps({"t": start_s + at, "mode": mode, "phase": phase}) for at, mode, phase in stages]
    (tmp_path / "events.jsonl").write_text("\n".join(events))
    output = tmp_path / "cut.csv"
    subprocess.run([sys.executable, CUT_TOOL, tmp_path, "--output", output], check=True, capture_output=True)
    kept = [line.split(",")[:2] for line in output.read_text().splitlines()[1:]]
    assert [mode for mode, _ in kept] == (
        ["idle"] * 2 + ["context"] * 4 + ["healthy"] * 2 + ["inputbound"] * 7 + ["hang"] * 5 + ["mixed"] * 6
    )
    assert [phase for mode, phase in kept if mode == "mixed"] == ["validation"] * 2 + ["checkpoint"] * 2 + ["train"] * 2
