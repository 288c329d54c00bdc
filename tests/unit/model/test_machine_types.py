import pytest

from clusterscape.model.machine_types import name_machine_type

MIB = 2**20


@pytest.mark.parametrize(
    ("model_name", "memory_mib", "expected"),
    [
        ("NVIDIA A100-SXM4-80GB", None, "A100-80G"),
        ("NVIDIA A100-SXM4-80GB", 81_251, "A100-80G"),
        ("NVIDIA A100 80GB PCIe", None, "A100-80G"),
        ("NVIDIA A100-PCIE-40GB", 40_960, "A100-40G"),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", None, "A100-80G"),
        ("Tesla V100-SXM2-32GB", 32_510, "V100-32G"),
        ("Tesla T4", 15_109, "T4-16G"),
        ("Tesla T4", None, "T4"),
        ("NVIDIA A10", 23_028, "A10-24G"),
        ("NVIDIA L40S", 46_068, "L40S-48G"),
        ("NVIDIA H100 80GB HBM3", 81_559, "H100-80G"),
        ("NVIDIA H100 NVL", 95_830, "H100-94G"),
        ("NVIDIA H200", 143_771, "H200-141G"),
        ("NVIDIA B200", 183_359, "B200-180G"),
        ("NVIDIA GH200 480GB", 97_871, "GH200-96G"),
        ("NVIDIA GeForce RTX 3090 Ti", 24_564, "RTX-3090-TI-24G"),
        ("Some New Thing", 7 * 1024, "SOME-NEW-THING-7G"),
        ("NVIDIA", None, None),
        ("", 81_920, None),
    ],
)
def test_machine_type_is_short_and_readable_when_named_from_a_product(
    model_name: str, memory_mib: int | None, expected: str | None
) -> None:
    assert name_machine_type(model_name, memory_mib * MIB if memory_mib else None) == expected
