"""What a move has done so far: one JSON line for each step, synced, so that a killed move goes on where it was."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from clusterscape.errors import StoreError


class Journal:
    """Steps by name, each begun or done with what was found."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._steps: dict[str, Mapping[str, object] | None] = {}
        for line in path.read_bytes().splitlines() if path.exists() else ():
            try:
                step, found = msgspec.json.decode(line, type=tuple[str, dict[str, object] | None])
            except msgspec.DecodeError:
                continue  # cut short by a crash: that step was not noted
            self._steps[step] = found

    def was_begun(self, step: str) -> bool:
        """Whether an earlier run began with a step; it may have done part of it."""
        return step in self._steps

    def find(self, step: str) -> Mapping[str, object] | None:
        """What was found when a step was done; None where it was not."""
        return self._steps.get(step)

    def begin(self, step: str) -> None:
        """Note that a step is under way."""
        if step not in self._steps:
            self._note(step, None)

    def finish(self, step: str, found: Mapping[str, object]) -> None:
        """Note that a step is done."""
        self._note(step, dict(found))

    def remove(self) -> None:
        """The move is over."""
        self._path.unlink(missing_ok=True)

    def _note(self, step: str, found: dict[str, object] | None) -> None:
        self._steps[step] = found
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                # A line that a crash cut short must not swallow this one.
                file.write((b"\n" if file.tell() else b"") + msgspec.json.encode((step, found)))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(
                f"{self._path} cannot be written: {error.strerror}", hint="Free space there, then move again."
            ) from error
