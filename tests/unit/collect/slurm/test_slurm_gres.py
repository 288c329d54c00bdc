"""GRES and TRES texts, and machine types named after them."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterscape.collect.slurm.gres import GpuCount, Gres, name_machine_type, parse_gpu_count, parse_gres, sum_gpus


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("(null)", []),
        ("gpu", [Gres("gpu", None, 1)]),
        ("gpu:8", [Gres("gpu", None, 8)]),
        ("gpu:a100:8", [Gres("gpu", "a100", 8)]),
        ("gpu:a100", [Gres("gpu", "a100", 1)]),
        ("gpu:1080ti:2", [Gres("gpu", "1080ti", 2)]),
        ("gpu:a100:1(S:0)", [Gres("gpu", "a100", 1)]),
        ("gpu:h100:4(IDX:0-3)", [Gres("gpu", "h100", 4, (0, 1, 2, 3))]),
        ("gpu:a100:2(IDX:4-5,7)", [Gres("gpu", "a100", 2, (4, 5, 7))]),
        ("gpu:h100:0(IDX:N/A)", [Gres("gpu", "h100", 0, ())]),
        ("gpu:2(CNT:2)", [Gres("gpu", None, 2)]),
        (
            "gpu:a100:1(IDX:0),gpu:v100:1(IDX:2),lustre:no_consume:1",
            [Gres("gpu", "a100", 1, (0,)), Gres("gpu", "v100", 1, (2,)), Gres("lustre", None, 1)],
        ),
        ("shard:2(IDX:0)", [Gres("shard", None, 2, (0,))]),
        ("shard:v100:3(0/4,3/4)", [Gres("shard", "v100", 3, (1,))]),
        ("mps:50(IDX:1)", [Gres("mps", None, 50, (1,))]),
        ("mps:1K", [Gres("mps", None, 1024)]),
        ("gpu:a100_1g.5gb:7(IDX:0-6)", [Gres("gpu", "a100_1g.5gb", 7, tuple(range(7)))]),
        ("gres/gpu:a100=8", [Gres("gpu", "a100", 8)]),
        ("gres:gpu:3", [Gres("gpu", None, 3)]),
        ("gpu:(null):0(IDX:N/A)", [Gres("gpu", None, 0, ())]),
        ("gpu:(null):2(IDX:0,3)", [Gres("gpu", None, 2, (0, 3))]),
        ("gpu:(null):4", [Gres("gpu", None, 4)]),
        ("gpu:0", [Gres("gpu", None, 0)]),
        ("gpu(IDX:0-1)", [Gres("gpu", None, 2, (0, 1))]),
        ("gpu:tesla(IDX:2)", [Gres("gpu", "tesla", 1, (2,))]),
        ("gpu:tesla:2(S:0-1)", [Gres("gpu", "tesla", 2)]),
        ("gpu:no_consume:4", [Gres("gpu", None, 4)]),
        ("gpu:tesla:no_consume:4", [Gres("gpu", "tesla", 4)]),
        (
            "gpu:nvidia_a100_1g.10gb:2(S:0),gpu:nvidia_a100:1",
            [
                Gres("gpu", "nvidia_a100_1g.10gb", 2),
                Gres("gpu", "nvidia_a100", 1),
            ],
        ),
        (
            "craynetwork:4,gpu:2,bandwidth:lustre:no_consume:4G",
            [
                Gres("craynetwork", None, 4),
                Gres("gpu", None, 2),
                Gres("bandwidth", "lustre", 4 * 2**30),
            ],
        ),
    ],
)
def test_gres_is_read_when_in_any_spelling(text: str, expected: list[Gres]) -> None:
    assert parse_gres(text) == expected


@pytest.mark.parametrize(
    "text", ["gpu:a100:2(IDX:0-", "gpu:1(IDX:5-2)", "gpu:1(IDX:0-99999)", "gpu)(", "gpu:(((", "(IDX:0)"]
)
def test_gres_is_refused_when_malformed(text: str) -> None:
    with pytest.raises(ValueError):
        parse_gres(text)


@given(st.text(alphabet="gpushard:()IDX0123456789-,/=S ", max_size=40))
def test_gres_reading_ends_when_text_is_arbitrary(text: str) -> None:
    with contextlib.suppress(ValueError):
        parse_gres(text)
    with contextlib.suppress(ValueError):
        parse_gpu_count(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", GpuCount()),
        ("cpu=4,mem=8G,node=1,billing=4", GpuCount()),
        ("cpu=4,gres/gpu=8,gres/gpu:a100=8", GpuCount(8, "a100")),
        ("gres/gpu:a100=8", GpuCount(8, "a100")),
        ("gres/gpu:a100=2,gres/gpu:v100=1", GpuCount(3, None)),
        ("gres/gpu:8", GpuCount(8)),
        ("gres:gpu:a100:8", GpuCount(8, "a100")),
        ("gpu:2", GpuCount(2)),
        ("gres/gpu", GpuCount(1)),
        ("gres/shard:4,gres/gpumem=10G", GpuCount()),
    ],
)
def test_request_is_counted_when_in_any_spelling(text: str, expected: GpuCount) -> None:
    assert parse_gpu_count(text) == expected


def test_shares_do_not_count_when_gpus_are_summed() -> None:
    assert sum_gpus(parse_gres("gpu:a100:2(IDX:0-1),shard:4(IDX:3)")) == GpuCount(2, "a100")


@pytest.mark.parametrize(
    ("gres_type", "features", "expected"),
    [
        ("a100", (), "A100"),
        ("h100", ("h100", "nvlink"), "H100"),
        ("nvidia_a100-sxm4-80gb", (), "A100-80G"),
        ("nvidia_h100_80gb_hbm3", (), "H100-80G"),
        ("tesla_v100-pcie-32gb", (), "V100-32G"),
        ("nvidia_geforce_rtx_3090", (), "RTX-3090"),
        ("a100", ("amd", "a100-80gb"), "A100-80G"),
        ("a100", ("a100-80gb", "a100-40gb"), "A100"),
        ("a100_1g.5gb", (), "A100"),
        ("1g.5gb", (), None),
        (None, ("x86", "v100", "ib"), "V100"),
        (None, ("x86", "ib"), None),
        (None, (), None),
    ],
)
def test_machine_type_is_named_when_slurm_reports_enough(
    gres_type: str | None, features: tuple[str, ...], expected: str | None
) -> None:
    assert name_machine_type(gres_type, features) == expected
