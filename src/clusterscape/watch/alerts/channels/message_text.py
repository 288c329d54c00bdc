"""A message as text: subject and one line per workload. No markup; each channel adds its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from clusterscape.model.ids import UnixMs
from clusterscape.model.rules import Severity
from clusterscape.watch.alerts.channels.site_info import SiteInfo
from clusterscape.watch.alerts.contract import Message, MessageKind, Tally
from clusterscape.watch.alerts.turns import AlertTurn

_RANK = list(Severity)


@dataclass(frozen=True, slots=True)
class MessageText:
    """The text of a message. Lists the first ``turns``; ``unlisted``: the number of the others."""

    subject: str
    turns: Sequence[AlertTurn]
    unlisted: int
    tallies: Sequence[Tally]
    reasons: Sequence[tuple[str, str]]  # (rule's name, why it matters)


def build_text(message: Message, cluster: str, *, most: int) -> MessageText:
    """The text of a message, with at most ``most`` turns listed."""
    reasons = {turn.rule_name: turn.reason for turn in message.turns if turn.reason and turn.is_start}
    return MessageText(
        subject=f"[{cluster}] {_subject(message)}",
        turns=message.turns[:most],
        unlisted=max(0, len(message.turns) - most),
        tallies=message.tallies,
        reasons=list(reasons.items()),
    )


def _subject(message: Message) -> str:
    if message.kind is MessageKind.TEST:
        return "Test message: alerts of ClusterScape are delivered here"
    started = sum(turn.is_start for turn in message.turns) + sum(tally.started for tally in message.tallies)
    stopped = sum(not turn.is_start for turn in message.turns) + sum(tally.stopped for tally in message.tallies)
    counts = ", ".join(f"{number:,} {word}" for number, word in ((started, "started"), (stopped, "stopped")) if number)
    severity = worst([*(turn.severity for turn in message.turns), *(tally.severity for tally in message.tallies)])
    names = {turn.rule_name for turn in message.turns} | {tally.rule_name for tally in message.tallies}
    about = next(iter(names)) if len(names) == 1 else f"{len(names)} rules"
    if message.kind is MessageKind.SUMMARY:
        return f"{severity}: summary of many violations, {about}: {counts}"
    workloads = {turn.workload for turn in message.turns}
    subject = f" by {next(iter(workloads))}" if len(workloads) == 1 else f" by {len(workloads)} workloads"
    return f"{severity}: {about}{subject}: {counts}"


def worst(severities: Sequence[Severity]) -> Severity:
    """The highest severity; ``info`` if there is none."""
    return max(severities, key=_RANK.index, default=Severity.INFO)


def describe(turn: AlertTurn) -> str:
    """``started: slurm:4711 of ada (llm) on gpu-017:0 and 7 more, since 2026-11-14 08:41 UTC``."""
    owner = f" of {turn.user}" if turn.user else ""
    project = f" ({turn.project})" if turn.project else ""
    units = f" on {shorten(turn.units)}" if turn.units else ""
    when = (
        f"since {format_time(turn.since)}" if turn.is_start else f"{format_time(turn.since)} to {format_time(turn.at)}"
    )
    return f"{turn.rule_name} {turn.turn.value}: {turn.workload}{owner}{project}{units}, {when}"


def describe_tally(tally: Tally) -> str:
    """``Low utilization: 40 started, 12 stopped between … and …``."""
    return (
        f"{tally.rule_name}: {tally.started:,} started, {tally.stopped:,} stopped"
        f" between {format_time(tally.first_at)} and {format_time(tally.last_at)}"
    )


def write_plain(text: MessageText, site: SiteInfo, key: str) -> str:
    """The body as plain text."""
    lines = [f"- {describe_tally(tally)}" for tally in text.tallies]
    for turn in text.turns:
        lines.append(f"- {describe(turn)}")
        lines += [f"  {part}" for part in (turn.readings, site.workload_url(turn.workload)) if part]
    if text.unlisted:
        lines.append(f"… and {text.unlisted:,} more; the page shows them all.")
    for name, reason in text.reasons:
        lines += ["", f"{name}: {reason}"]
    lines += ["", *([site.page_url] if site.page_url else []), f"ClusterScape, message {key}"]
    return "\n".join(lines)


def shorten(units: Sequence[str], most: int = 4) -> str:
    """``gpu-017:0, gpu-017:1 and 6 more``."""
    if len(units) <= most:
        return ", ".join(units)
    return f"{', '.join(units[: most - 1])} and {len(units) - most + 1} more"


def format_time(at: UnixMs) -> str:
    """A time in UTC, to the minute."""
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M} UTC"
