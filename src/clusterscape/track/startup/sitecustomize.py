"""Loaded by tracked Python processes: records the exception that a process ends with, then handles it as usual; starts the
recording of MLflow in processes that import its client, and, if asked for, of slow steps in those that import torch's optimizers.

Imports as little as possible, because it delays the start of every Python process of a run, whatever its version.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # importing typing takes too long here
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType, TracebackType
    from typing import Any

_before = sys.excepthook
_folder = os.environ.get("CLUSTERSCAPE_RUN", "").partition(":")[2]
_recorder: Any = None  # of MLflow
MOST_CHARACTERS = 1_000_000
_MLFLOW_CLIENT = "mlflow.tracking._tracking_service.client"
_OPTIMIZERS = "torch.optim.optimizer"


def _note(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if _folder and issubclass(kind, Exception):
        try:
            _write(_folder, kind, error, traceback)
        except Exception as failure:  # the script's error must still be reported
            sys.stderr.write(f"clusterscape: cannot note the exception: {failure}\n")
    _before(kind, error, traceback)


def _write(folder: str, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    import json
    from traceback import format_exception

    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    whole = "".join(format_exception(kind, error, traceback))
    # Masked before truncation: a truncated secret is not recognized.
    message, trace = _mask(str(error)[:MOST_CHARACTERS], whole[-MOST_CHARACTERS:])
    entry = {"pid": os.getpid(), "type": name, "message": message[:2000], "traceback": trace[-8000:]}
    # One write to an append-only file: several processes may end at once.
    fd = os.open(f"{folder}/exceptions.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(fd, (json.dumps(entry) + "\n").encode("utf-8", "replace"))
    os.close(fd)


def _mask(*texts: str) -> list[str]:
    """The text with secrets masked: those that the script logged, and those of its variables and command."""
    current = getattr(sys.modules.get("clusterscape.track.api"), "_current", None)
    redactors = [
        holder.redactor for holder in (current, _recorder) if holder is not None and holder.redactor is not None
    ]
    for redactor in redactors or [_load("redaction.py").Redactor(os.environ, getattr(sys, "orig_argv", sys.argv))]:
        texts = tuple(redactor.text(text) for text in texts)
    return list(texts)


class _ImportHook:
    """Starts a recording when a module of ``_RECORDINGS`` is imported."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name not in _RECORDINGS:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find and finder is not self else None
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _RecordingLoader(spec.loader)  # type: ignore[assignment] # it is all that imports need of a loader
                return spec
        return None


class _RecordingLoader:
    """Loads a module as its own loader does, which the module then shows, and starts the recording."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        what, record = _RECORDINGS[module.__name__]
        try:
            record(module)
        except Exception as failure:  # the script must still run
            sys.stderr.write(f"clusterscape: {what} not recorded: {failure}\n")


def _record_mlflow(client: ModuleType) -> None:
    global _recorder  # one per process
    recording = _load("mlflow/recording.py")
    _recorder = recording.MlflowRecorder(recording.Path(_folder))
    _recorder.record_calls_of(getattr(client, recording.CLIENT_CLASS))


def _record_slow_steps(optimizers: ModuleType) -> None:
    _load("slow_steps.py").start(optimizers, _folder)


_RECORDINGS: dict[str, tuple[str, Callable[[ModuleType], None]]] = {_MLFLOW_CLIENT: ("MLflow is", _record_mlflow)}
if "CLUSTERSCAPE_SLOW_STEPS" in os.environ:
    _RECORDINGS[_OPTIMIZERS] = ("slow steps are", _record_slow_steps)


def _load(path: str) -> Any:
    """A module of the tracker by its path: the script's Python need not have ClusterScape installed."""
    from importlib.util import module_from_spec, spec_from_file_location

    name = f"_clusterscape_{path.rpartition('/')[2].partition('.')[0]}"
    spec = spec_from_file_location(name, f"{__file__.rpartition('/')[0]}/../{path}")
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _run_hidden() -> None:
    """Run the site's sitecustomize, which this one hides."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = __file__.rpartition("/")[0]
    spec = PathFinder.find_spec("sitecustomize", [folder for folder in sys.path if folder != here])
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


def _offer_looks() -> None:
    """Let the tracker look at this process when its run makes no steps any more."""
    folder = os.environ.get("CLUSTERSCAPE_RUN", "").partition(":")[2]
    if folder and "CLUSTERSCAPE_NO_HANG_WATCH" not in os.environ:
        try:
            import _clusterscape_looks  # type: ignore[import-not-found] # it is next to this file, on the path

            _clusterscape_looks.offer(folder)
        except Exception as failure:  # the script must still run
            sys.stderr.write(f"clusterscape: hangs of this process cannot be looked at: {failure}\n")


sys.excepthook = _note
if _folder:
    sys.meta_path.insert(0, _ImportHook())
_offer_looks()
_run_hidden()
