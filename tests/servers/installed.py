"""ClusterScape as strangers have it: its wheel, installed in an environment of its own, away from the checkout."""

import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]


def install_wheel(folder: Path) -> Path:
    """The ``clusterscape`` of a fresh environment; packages that it needs are those of this one."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "wheel")]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (folder / "wheel").glob("clusterscape-*.whl")
    home = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    (site,) = home.glob("lib/python*/site-packages")
    words = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", f"--target={site}", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    # After our own folder, so that the wheel's files are the ones that count.
    (site / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    command = home / "bin/clusterscape"
    command.write_text(f"#!{home}/bin/python\nfrom clusterscape.cli.entry import main\nmain()\n")
    command.chmod(0o755)
    return command
