"""``clusterscape.trace``: what a training script calls to be profiled. Built in ``capture.py``."""

from clusterscape.track.capture import Capture, capture, write_capture

__all__ = ["Capture", "capture", "write_capture"]
