"""A message in words, for people: its subject and one line per workload. No markup; each channel adds its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from clusterscape.model.ids import UnixMs
from clusterscape.model.rules import Severity
from clusterscape.watch.alerts.contract import Message, MessageKind, Tally
from clusterscape.watch.alerts.turns import AlertTurn

_RANK = list(Severity)


@dataclass(frozen=True, slots=True)
class Wording:
    """A message of many turns lists the first ``turns``; ``unlisted`` says how many are not."""

    subject: str
    turns: Sequence[AlertTurn]
    unlisted: int
    tallies: Sequence[Tally]
    reasons: Sequence[tuple[str, str]]  # (rule's name, why it matters)


def put_into_words(message: Message, cluster: str, *, most: int) -> Wording:
    """The message for people; at most ``most`` turns one by one."""
    reasons = {turn.rule_name: turn.reason for turn in message.turns if turn.reason and turn.is_start}
    return Wording(
        subject=f"[{cluster}] {_subject(message)}",
        turns=message.turns[:most],
        unlisted=max(0, len(message.turns) - most),
        tallies=message.tallies,
        reasons=list(reasons.items()),
    )


def _subject(message: Message) -> str:
    if message.kind is MessageKind.TEST:
        return "Test message: alerts of ClusterScape arrive here"
    started = sum(turn.is_start for turn in message.turns) + sum(each.started for each in message.tallies)
    stopped = sum(not turn.is_start for turn in message.turns) + sum(each.stopped for each in message.tallies)
    counts = ", ".join(f"{number:,} {word}" for number, word in ((started, "started"), (stopped, "stopped")) if number)
    severity = worst([*(turn.severity for turn in message.turns), *(each.severity for each in message.tallies)])
    names = {turn.rule_name for turn in message.turns} | {each.rule_name for each in message.tallies}
    about = next(iter(names)) if len(names) == 1 else f"{len(names)} rules"
    if message.kind is MessageKind.SUMMARY:
        return f"{severity}: summary of many violations, {about}: {counts}"
    workloads = {turn.workload for turn in message.turns}
    who = f" by {next(iter(workloads))}" if len(workloads) == 1 else f" by {len(workloads)} workloads"
    return f"{severity}: {about}{who}: {counts}"


def worst(severities: Sequence[Severity]) -> Severity:
    """The gravest; ``info`` of none."""
    return max(severities, key=_RANK.index, default=Severity.INFO)


def describe(turn: AlertTurn) -> str:
    """``started: slurm:4711 of ada (llm) on gpu-017:0 and 7 more, since 2026-11-14 08:41 UTC``."""
    owner = f" of {turn.user}" if turn.user else ""
    project = f" ({turn.project})" if turn.project else ""
    units = f" on {shorten(turn.units)}" if turn.units else ""
    when = f"since {moment(turn.since)}" if turn.is_start else f"{moment(turn.since)} to {moment(turn.at)}"
    return f"{turn.rule_name} {turn.turn.value}: {turn.workload}{owner}{project}{units}, {when}"


def describe_tally(each: Tally) -> str:
    """``Low utilization: 40 started, 12 stopped between … and …``."""
    return (
        f"{each.rule_name}: {each.started:,} started, {each.stopped:,} stopped"
        f" between {moment(each.first_at)} and {moment(each.last_at)}"
    )


def shorten(units: Sequence[str], most: int = 4) -> str:
    """``gpu-017:0, gpu-017:1 and 6 more``."""
    if len(units) <= most:
        return ", ".join(units)
    return f"{', '.join(units[: most - 1])} and {len(units) - most + 1} more"


def moment(at: UnixMs) -> str:
    """A minute in UTC: readers sit in many zones."""
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M} UTC"
