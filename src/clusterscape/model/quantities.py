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
    """``45 s``, ``12 min``, ``3 h 5 min``, ``2 d 4 h``; an en dash if unknown."""
    if seconds is None:
        return "–"
    minutes, rest = divmod(int(seconds), 60)
    if not minutes:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return f"{minutes} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if days else f"{hours} h {minutes} min"
