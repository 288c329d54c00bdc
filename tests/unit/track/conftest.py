"""The command with a separate state folder."""

from pathlib import Path

import pytest
from tracking.command import Command


@pytest.fixture
def command(tmp_path: Path) -> Command:
    (tmp_path / "code").mkdir()
    return Command(folder=tmp_path / "code", home=tmp_path / "home")
