"""Compiles the kernels of a server in a child process, once per version, machine and cache folder."""

import asyncio
import hashlib
import logging
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import clusterscape
from clusterscape.warm_up import Area, WarmUp

log = logging.getLogger(__name__)

CACHE_VARIABLE = "NUMBA_CACHE_DIR"
COMPILED_FOLDER = "compiled"
"""The cache folder below ``storage.data_dir``, if the package folder is not writable."""
PACKAGE = Path(clusterscape.__file__).parent


def choose_folder(data_dir: Path) -> Path:
    """The cache folder of compiled functions: from the environment, next to the sources, or in the data folder.

    Call it before numba is imported, because numba reads the environment variable at import.
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
    """The marker file that exists if everything is compiled for this version and machine."""
    return folder / f"compiled-{_fingerprint()}"


async def compile_ahead(warm_up: WarmUp, marker: Path) -> None:
    """Compile everything and report each area to ``warm_up``; in the end all areas count as ready, even after a failure."""
    remove_compiled(marker.parent)
    try:
        with tempfile.TemporaryDirectory(prefix="clusterscape-compile-", ignore_cleanup_errors=True) as folder:
            is_compiled = await _run_compiler(warm_up, folder)
        if is_compiled:
            _mark(marker)
    finally:
        warm_up.finish_all()


def remove_compiled(folder: Path) -> None:
    """Remove compiled functions of older sources.

    numba checks the file of each function, but not the files of the functions that it calls: it would use stale code, or fail to
    load an index that names a removed class.
    """
    root = PACKAGE if folder == PACKAGE / "__pycache__" else folder
    for path in root.rglob("*.nb[ci]"):
        with suppress(OSError):
            path.unlink()


async def _run_compiler(warm_up: WarmUp, folder: str) -> bool:
    command = [sys.executable, "-m", "clusterscape.runtime.compile_kernels", folder]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        # Read while it runs: a full pipe would stop the compiler.
        messages = asyncio.create_task(process.stderr.read())
        async for line in process.stdout:
            warm_up.finish(Area(line.decode().strip()))
        errors = (await messages).decode(errors="replace")
        if await process.wait():
            log.warning("compiling kernels failed; each part is compiled on first use: %s", errors[-2000:])
            return False
        return True
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _fingerprint() -> str:
    """A hash of everything that compiled code depends on: the sources, the interpreter and the processor."""
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
    """Write the marker and remove older ones; if that fails, the next start compiles again."""
    with suppress(OSError):
        marker.parent.mkdir(parents=True, exist_ok=True)
        for old_marker in marker.parent.glob("compiled-*"):
            old_marker.unlink()
        marker.touch()
