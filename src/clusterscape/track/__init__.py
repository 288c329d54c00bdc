"""What runs around a training script: starts it, listens to its hardware, spools what it says and sends it later.

Imports stay light: a script that only says ``import clusterscape`` pays for nothing heavy.
``startup`` holds the one file that stands on the path of tracked Python processes.
"""

from clusterscape.track.api import Run, run

__all__ = ["Run", "run"]
