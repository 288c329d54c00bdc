"""Finds third-party reference data, which is never part of the project."""

import os
from pathlib import Path

import pytest

_ROOT = Path(os.environ.get("CLUSTERSCAPE_REFERENCE_DATA") or Path(__file__).parents[3] / "shared/data/reference")


def reference_data(*parts: str) -> Path:
    """The path of a reference file or folder; skips the test, saying why, where it is not on this machine."""
    path = _ROOT.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"reference data {'/'.join(parts)} is not here; CLUSTERSCAPE_REFERENCE_DATA names its folder")
    return path
