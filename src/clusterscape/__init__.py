"""ClusterScape shows who uses which GPUs of a shared cluster, and how efficiently."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clusterscape.remote import connect
    from clusterscape.track import trace
    from clusterscape.track.api import Run, run

__version__ = "0.1.0"
__all__ = ["Run", "__version__", "connect", "run", "trace"]


def __getattr__(name: str) -> object:
    """Import the public API lazily, so that `import clusterscape` stays fast."""
    if name in ("Run", "run"):
        from clusterscape.track import api

        return getattr(api, name)
    if name == "trace":
        from clusterscape.track import trace

        return trace
    if name == "connect":
        from clusterscape.remote import connect

        return connect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
