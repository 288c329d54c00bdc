"""Formatting of hours and durations in commands and findings. The page formats in ``web/src/base/format.ts``."""


def format_hours(hours: float | None) -> str:
    """Hours, with one decimal below ten because rounding would hide too much: ``0.4``, ``9.9``, ``27``, ``1,234``."""
    if hours is None:
        return "–"
    if hours <= 0:
        return "0"
    if hours < 0.05:
        return "<0.1"
    return f"{hours:.1f}" if hours < 9.95 else f"{hours:,.0f}"


def format_duration(seconds: float | None) -> str:
    """The two largest units, as the page writes them: ``45 s``, ``2 min 5 s``, ``12 min``, ``3 h 5 min``, ``2 d 4 h``, ``63 d``.
    An en dash if unknown.
    """
    if seconds is None:
        return "–"
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 600:
        return _join_units(whole, 60, "min", 1, "s")
    if whole < 3600:
        return f"{whole // 60} min"
    if whole < 86_400:
        return _join_units(whole, 3600, "h", 60, "min")
    return _join_units(whole, 86_400, "d", 3600, "h") if whole < 30 * 86_400 else f"{whole // 86_400} d"


def _join_units(whole: int, large_s: int, large: str, small_s: int, small: str) -> str:
    rest = whole % large_s // small_s
    return f"{whole // large_s} {large} {rest} {small}" if rest else f"{whole // large_s} {large}"
