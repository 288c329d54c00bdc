"""Quantities as people read them, the same in every command and finding. The page's are in ``web/src/base/format.ts``."""


def format_hours(hours: float | None) -> str:
    """Hours with a digit below ten, where a whole number would hide half of them: ``0.4``, ``9.9``, ``27``, ``1,234``."""
    if hours is None:
        return "–"
    if hours <= 0:
        return "0"
    if hours < 0.05:
        return "<0.1"
    return f"{hours:.1f}" if hours < 9.95 else f"{hours:,.0f}"
