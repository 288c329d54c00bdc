"""Builds the stand-in for the driver's library, which ``LD_LIBRARY_PATH`` then puts before a real one."""

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")


def build_stub(compiler: str, folder: Path) -> dict[str, str]:
    """The variables under which a process finds it."""
    library = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE)], check=True)
    return {"LD_LIBRARY_PATH": str(folder)}
