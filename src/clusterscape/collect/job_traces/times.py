"""Times and durations as traces write them, to seconds. What cannot be read becomes a text that fails as a number later."""

import polars as pl

_CLOCK = r"^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?$"
UNREADABLE = "unreadable"


def unix_seconds(column: str, timezone: str = "UTC") -> pl.Expr:
    """Seconds of ``2023-03-01 00:18:22``, also with ``T``, with an offset, or already as Unix seconds; in text.

    A time without an offset is read in ``timezone``.
    """
    text = pl.col(column).str.strip_chars()
    plain = text.str.replace("T", " ", literal=True)
    local = plain.str.slice(0, 19).str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="ms")
    away = plain.str.extract(r"([+-]\d\d:?\d\d)$", 1)
    sign = pl.when(away.str.starts_with("-")).then(-1).otherwise(1)
    digits = away.str.replace(":", "", literal=True)
    offset_s = sign * (
        digits.str.slice(1, 2).cast(pl.Int64, strict=False) * 3600
        + digits.str.slice(3, 2).cast(pl.Int64, strict=False) * 60
    )
    at_utc_s = local.dt.epoch("s") - offset_s
    at_zone_s = local.dt.replace_time_zone(timezone, ambiguous="earliest", non_existent="null").dt.epoch("s")
    seconds = pl.when(away.is_not_null()).then(at_utc_s).otherwise(at_zone_s).cast(pl.String)
    is_number = text.str.contains(r"^\d+(\.\d+)?$")
    nothing = text.is_null() | text.is_in(["", "Unknown", "None", "N/A", "NaT", "nan"])
    return pl.when(nothing).then(None).when(is_number).then(text).otherwise(seconds.fill_null(pl.lit(UNREADABLE)))


def clock_seconds(column: str) -> pl.Expr:
    """Seconds of Slurm's ``1-02:03:04``, ``02:03:04`` or ``03:04``; null where there is no limit. In text."""
    text = pl.col(column).str.strip_chars()
    parts = [text.str.extract(_CLOCK, group).cast(pl.Int64, strict=False).fill_null(0) for group in range(1, 5)]
    seconds = (parts[0] * 86_400 + parts[1] * 3600 + parts[2] * 60 + parts[3]).cast(pl.String)
    nothing = text.is_null() | text.str.to_lowercase().is_in(["", "unlimited", "partition_limit", "invalid"])
    return pl.when(nothing).then(None).when(text.str.contains(_CLOCK)).then(seconds).otherwise(pl.lit(UNREADABLE))
