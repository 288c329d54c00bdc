"""Finds third-party reference data, which is never part of the project."""

import os
from pathlib import Path

import pytest

_ROOT = Path(os.environ.get("CLUSTERSCAPE_REFERENCE_DATA") or Path(__file__).parents[3] / "shared/data/reference")


def reference_data(*parts: str) -> Path:
    """The path of a reference file or folder; skips the test, saying why, where it is not on this machine.

    Where CLUSTERSCAPE_REFERENCE_DATA_REQUIRED is set, its absence is a failure.
    """
    path = _ROOT.joinpath(*parts)
    if not path.exists():
        message = f"reference data {'/'.join(parts)} is not here; CLUSTERSCAPE_REFERENCE_DATA names its folder"
        if os.environ.get("CLUSTERSCAPE_REFERENCE_DATA_REQUIRED") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return path
