"""Stands on the path of tracked Python processes: notes the exception a process ends with, then does what it would have done.

Imports nothing of ours and next to nothing else: every Python process of a run pays for it.
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
        except Exception as failure:  # the script's own error is what counts
            sys.stderr.write(f"clusterscape: cannot note the exception: {failure}\n")
    _before(kind, error, traceback)


def _write(folder: str, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    import json
    from traceback import format_exception

    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    whole = "".join(format_exception(kind, error, traceback))
    # Masked before they are cut: half a secret has no shape.
    message, trace = _mask(str(error)[:MOST_CHARACTERS], whole[-MOST_CHARACTERS:])
    told = {"pid": os.getpid(), "type": name, "message": message[:2000], "traceback": trace[-8000:]}
    # One write to an append-only file: several processes may end at once.
    fd = os.open(f"{folder}/exceptions.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(fd, (json.dumps(told) + "\n").encode("utf-8", "replace"))
    os.close(fd)


def _mask(*texts: str) -> list[str]:
    """Without secrets: a run that the script began itself knows those it was given, else variables and command tell them."""
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
    """The site's own sitecustomize, which this one hides."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = __file__.rpartition("/")[0]
    found = PathFinder.find_spec("sitecustomize", [folder for folder in sys.path if folder != here])
    if found is not None and found.loader is not None:
        found.loader.exec_module(module_from_spec(found))


sys.excepthook = _note
_run_hidden()
