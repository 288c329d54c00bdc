"""Python environments of their own for servers that would burden ours; made once, kept in the user's cache folder."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
INSTALL_TIMEOUT_S = 600.0


def need_venv(name: str) -> Path:
    """The ``bin`` folder of an environment with all of ``NAME-requirements.txt``, whose versions are pinned.

    Where it cannot be made the test fails in CI and is skipped elsewhere.
    """
    requirements = FOLDER / f"{name}-requirements.txt"
    key = f"{sys.version_info[:2]} {requirements.read_text()}"
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clusterscape-tests"
    home = base / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    base.mkdir(parents=True, exist_ok=True)
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "complete").exists():
            shutil.rmtree(home, ignore_errors=True)
            _make(home, requirements)
            (home / "complete").touch()
    return home / "bin"


def _make(home: Path, requirements: Path) -> None:
    words = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile", "-r", str(requirements)]
    try:
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, timeout=INSTALL_TIMEOUT_S)
        subprocess.run(
            [str(home / "bin/pip"), *words], check=True, timeout=INSTALL_TIMEOUT_S, capture_output=True, text=True
        )
    except (subprocess.SubprocessError, OSError) as error:
        message = f"{requirements.name} cannot be installed: {getattr(error, 'stderr', None) or error}"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
