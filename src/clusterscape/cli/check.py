"""The result of one check of ``clusterscape doctor``."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing looked at. ``is_note``: it is well, but its hint is to be read."""

    what: str
    is_ok: bool
    message: str
    hint: str | None = None
    is_note: bool = False
