"""``pip install .`` on a checkout: the wheel holds the client of its own sources, with Node from the Python package index."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


SHOWN = "The sign-in provider is not responding or sent an invalid response."
"""A text of the page."""


def build_wheel(checkout: Path, into: Path) -> zipfile.ZipFile:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)]
    done = subprocess.run(build, cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = into.glob("clusterscape-*.whl")
    return zipfile.ZipFile(wheel)


def scripts_of(wheel: zipfile.ZipFile) -> str:
    names = [name for name in wheel.namelist() if name.startswith("clusterscape/serve/static/assets/")]
    return "".join(wheel.read(name).decode() for name in names if name.endswith(".js"))


def test_wheel_holds_the_client_of_its_own_sources_when_built_from_a_checkout(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in listed.decode().split("\0"):
        if name.startswith(("src/", "web/", "tools/")) or name in ("pyproject.toml", "README.md", "LICENSE"):
            target = checkout / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
    first = build_wheel(checkout, tmp_path / "first")
    names = first.namelist()
    assert "clusterscape/serve/static/index.html" in names
    assert "clusterscape/serve/static/report.html" in names
    assert "clusterscape/demo/shapes/h200.csv" in names
    assert "clusterscape/py.typed" in names
    assert not [name for name in names if "node_modules" in name]
    assert SHOWN in scripts_of(first)

    built = checkout / "src/clusterscape/serve/static/index.html"
    made_at = built.stat().st_mtime_ns
    build_wheel(checkout, tmp_path / "same")
    assert built.stat().st_mtime_ns == made_at  # nothing changed: nothing is built again

    changed = [path for path in (checkout / "web/src").rglob("*.tsx") if SHOWN in path.read_text()]
    for path in changed:
        path.write_text(path.read_text().replace(SHOWN, "The provider is silent."))
    second = scripts_of(build_wheel(checkout, tmp_path / "changed"))
    assert "The provider is silent." in second
    assert SHOWN not in second
