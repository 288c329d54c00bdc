"""Compiled functions of earlier sources are removed before kernels are compiled."""

from pathlib import Path

from clusterscape.runtime.compiling import remove_compiled


def test_compiled_functions_are_removed_and_nothing_else(tmp_path: Path) -> None:
    names = (
        "simulate/kernels.refresh-206.py311.nbi",
        "simulate/kernels.refresh-206.py311.1.nbc",
        "simulate/kernels.pyc",
    )
    for name in (*names, "compiled-0123"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    remove_compiled(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["compiled-0123", "kernels.pyc"]
