"""Prints the verdict on a hang. Light to import: ``clusterscape run`` prints it, too."""

from clusterscape.model.hangs import HangKind, HangVerdict

MOST_GROUPS = 8
MOST_STACKS = 4
MOST_FRAMES = 8
CERTAINTY = {"certain": "certain", "likely": "likely", "possible": "possible, not certain"}


def hang_lines(verdict: HangVerdict) -> list[str]:
    """The verdict as lines: what, why, where, what it costs, and what to do."""
    lines = [f"{verdict.title} ({CERTAINTY[verdict.certainty]})", f"  {verdict.reason}"]
    facts = [
        ("where", _join(verdict.place, f"module {verdict.module}" if verdict.module else None)),
        ("since", _format_since(verdict.since_ms)),
        ("cost", _format_cost(verdict)),
        *(("evidence", text) for text in verdict.evidence),
        ("or else", _format_alternatives(verdict)),
        ("do", verdict.advice),
    ]
    lines += [f"  {name:<9}{text}" for name, text in facts if text]
    return lines


def group_lines(verdict: HangVerdict) -> list[str]:
    """The groups that wait, first cause first."""
    from clusterscape.analyze.hang.wording import name_ranks

    lines = []
    for stalled in verdict.stalled[:MOST_GROUPS]:
        about = f" ({stalled.description})" if stalled.description else ""
        missing = f" for {name_ranks(stalled.missing)}" if stalled.missing else ""
        victim = "; waits for another group" if stalled.is_victim else ""
        what = f"{stalled.collective or 'collective'} {'' if stalled.sequence is None else stalled.sequence}".rstrip()
        waiting = name_ranks(stalled.waiting) if stalled.waiting else "nobody"
        waits = f"{waiting} wait{'' if len(stalled.waiting) > 1 else 's'}{missing}"
        lines.append(f"  group {stalled.group}{about}: {what}: {waits}{victim}")
    if len(verdict.stalled) > MOST_GROUPS:
        lines.append(f"  and {len(verdict.stalled) - MOST_GROUPS:,} more; --json prints all")
    return lines


def stack_lines(verdict: HangVerdict) -> list[str]:
    """Stacks of ranks that are alike, the rarest first."""
    from clusterscape.analyze.hang.wording import name_ranks

    lines = []
    for group in verdict.stacks[:MOST_STACKS]:
        lines.append(f"  {name_ranks(group.ranks)}")
        lines += [f"    {frame}" for frame in group.frames[:MOST_FRAMES]]
    if len(verdict.stacks) > MOST_STACKS:
        lines.append(f"  and {len(verdict.stacks) - MOST_STACKS:,} more; --json prints all")
    return lines


def _format_alternatives(verdict: HangVerdict) -> str:
    if not verdict.alternatives:
        return ""
    return f"{' or '.join(verdict.alternatives)}: these sources cannot tell them apart"


def _join(*parts: str | None) -> str:
    return ", ".join(part for part in parts if part)


def _format_since(since_ms: int | None) -> str:
    if since_ms is None:
        return ""
    from datetime import datetime

    return f"{datetime.fromtimestamp(since_ms / 1000).astimezone():%Y-%m-%d %H:%M:%S %Z}"


def _format_cost(verdict: HangVerdict) -> str:
    if verdict.held_gpus is None or verdict.kind is HangKind.SLOW:
        return ""
    return f"{verdict.held_gpus:,} GPU-hours per hour"
