"""Time zones by name, only those that both Python and Polars know."""

from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


@lru_cache(maxsize=256)
def find_timezone(name: str) -> ZoneInfo:
    """The time zone. Raises ValueError if its name is unknown."""
    import polars as pl

    try:
        zone = ZoneInfo(name)
        # Python reads any file of the system's folder, such as `localtime` and `posix/UTC`.
        pl.Series([0]).cast(pl.Datetime("ms", "UTC")).dt.convert_time_zone(name)
    except (ZoneInfoNotFoundError, OSError, pl.exceptions.ComputeError):
        raise ValueError(f"unknown time zone {name!r}") from None
    return zone
