"""ClusterScape makes a shared GPU cluster transparent to its operators and its researchers."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clusterscape.track.api import Run, run

__version__ = "0.1.0"
__all__ = ["Run", "__version__", "run"]


def __getattr__(name: str) -> object:
    """``clusterscape.run`` is imported when a script asks for it: nothing else pays for it."""
    if name in ("Run", "run"):
        from clusterscape.track import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
