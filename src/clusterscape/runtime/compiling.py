"""Has the kernels of a server compiled by another process, once for each version, machine and place of the compiled files."""

import asyncio
import hashlib
import logging
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import clusterscape
from clusterscape.warm_up import Area, WarmUp

log = logging.getLogger(__name__)

CACHE_VARIABLE = "NUMBA_CACHE_DIR"
COMPILED_FOLDER = "compiled"
"""Below ``storage.data_dir``, where the package's own folder cannot be written to."""
PACKAGE = Path(clusterscape.__file__).parent


def choose_folder(data_dir: Path) -> Path:
    """Where compiled functions are kept: as the environment says, beside the sources, or in the data folder.

    Call it before anything imports numba, which reads the environment then.
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    if os.access(PACKAGE, os.W_OK):
        return PACKAGE / "__pycache__"
    folder = data_dir / COMPILED_FOLDER
    os.environ[CACHE_VARIABLE] = str(folder)
    return folder


def find_marker(folder: Path) -> Path:
    """The file that says that everything was compiled; not there before that, nor after an upgrade."""
    return folder / f"compiled-{_fingerprint()}"


async def compile_ahead(warm_up: WarmUp, marker: Path) -> None:
    """Have everything compiled, telling ``warm_up`` of each area; whatever happens, all counts as ready in the end."""
    try:
        if await _run_compiler(warm_up):
            _mark(marker)
    finally:
        warm_up.finish_all()


async def _run_compiler(warm_up: WarmUp) -> bool:
    command = [sys.executable, "-m", "clusterscape.runtime.compile_kernels"]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        async for line in process.stdout:
            warm_up.finish(Area(line.decode().strip()))
        problem = (await process.stderr.read()).decode(errors="replace")
        if await process.wait():
            log.warning("compiling ahead failed; each part is compiled when it is first used: %s", problem[-2000:])
            return False
        return True
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _fingerprint() -> str:
    """Of the sources, the interpreter and the processor: what compiled code depends on."""
    parts = [clusterscape.__version__, platform.python_version(), platform.machine(), *_processor(), *_sources()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _sources() -> Iterator[str]:
    for path in sorted(PACKAGE.rglob("*.py")):
        stat = path.stat()
        yield f"{path} {stat.st_mtime_ns} {stat.st_size}"


def _processor() -> list[str]:
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return [next((line for line in lines if line.startswith("model name")), "")]
    return []


def _mark(marker: Path) -> None:
    """Leave the marker in place of those of former versions; where that fails, the next start compiles again."""
    with suppress(OSError):
        marker.parent.mkdir(parents=True, exist_ok=True)
        for former in marker.parent.glob("compiled-*"):
            former.unlink()
        marker.touch()
