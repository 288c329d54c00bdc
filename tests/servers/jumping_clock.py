"""A wall clock that can be set for one process alone, while it runs: a library that is put before the C library."""

import os
import struct
import subprocess
from pathlib import Path

from servers.programs import need_program

SOURCE = Path(__file__).with_suffix(".c")


class JumpingClock:
    """``environment`` is what a process needs to have this clock."""

    def __init__(self, folder: Path) -> None:
        library = folder / "jumping_clock.so"
        self._offset = folder / "clock-offset"
        self.set_ahead(0)
        compiler = need_program("gcc", "gcc")
        command = [compiler, "-O2", "-Wall", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True)
        self.environment = {"LD_PRELOAD": str(library), "CLOCK_OFFSET_FILE": str(self._offset)}

    def set_ahead(self, seconds: float) -> None:
        """From now on the process's clock is so far ahead of the true one."""
        # In place: the process has the file mapped.
        file = os.open(self._offset, os.O_WRONLY | os.O_CREAT, 0o644)
        os.pwrite(file, struct.pack("<q", round(seconds * 1e9)), 0)
        os.close(file)
