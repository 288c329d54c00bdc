"""Hangs with known causes: simulated ranks whose dumps have NCCL's shape (``made_up``), and real gloo ranks (``gloo``)."""
