"""``pip install .`` on a clean checkout: the wheel holds the built client, with Node from the Python package index."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_wheel_holds_the_built_client_when_built_from_a_clean_checkout(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in listed.decode().split("\0"):
        if name.startswith(("src/", "web/", "tools/")) or name in ("pyproject.toml", "README.md", "LICENSE"):
            target = checkout / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    done = subprocess.run(build, cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (tmp_path / "dist").glob("clusterscape-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "clusterscape/serve/static/index.html" in names
    assert any(name.startswith("clusterscape/serve/static/assets/") and name.endswith(".js") for name in names)
    assert "clusterscape/demo/shapes/h200.csv" in names
    assert "clusterscape/py.typed" in names
    assert not [name for name in names if "node_modules" in name]
