"""Loaded by tracked Python processes: records the exception that a process ends with, then handles it as usual.

Imports as little as possible, because it delays the start of every Python process of a run.
"""

import os
import sys
from types import TracebackType

_before = sys.excepthook
MOST_CHARACTERS = 1_000_000


def _note(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    folder = os.environ.get("CLUSTERSCAPE_RUN", "").partition(":")[2]
    if folder and issubclass(kind, Exception):
        try:
            _write(folder, kind, error, traceback)
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
    """The text with secrets masked: those known to the script's own run, else those of its variables and command."""
    api = sys.modules.get("clusterscape.track.api")
    if current := getattr(api, "_current", None):
        return [current.redactor.text(text) for text in texts]
    from importlib.util import module_from_spec, spec_from_file_location

    # By its path: the script's Python need not have ClusterScape installed.
    spec = spec_from_file_location("_clusterscape_redaction", f"{__file__.rpartition('/')[0]}/../redaction.py")
    if spec is None or spec.loader is None:
        raise ImportError("redaction.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    redactor = module.Redactor(os.environ, sys.orig_argv)
    return [redactor.text(text) for text in texts]


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
_offer_looks()
_run_hidden()
