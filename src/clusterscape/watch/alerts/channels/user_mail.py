"""The mail to the user of a job: what is wrong with the job, and what they can do. Not for operators."""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clusterscape.watch.alerts.channels.message_text import describe_tally, format_time, shorten
from clusterscape.watch.alerts.channels.site_info import SiteInfo
from clusterscape.watch.alerts.contract import Message
from clusterscape.watch.alerts.turns import AlertTurn

_LISTED_JOBS = 50


@dataclass(frozen=True, slots=True)
class MailText:
    """The content of a mail."""

    subject: str
    plain: str
    html: str


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job, or the tasks of an array, with its turns in a message."""

    title: str
    workload: str
    turns: Sequence[AlertTurn]

    @property
    def is_open(self) -> bool:
        """Whether the violation is still open after the last turn."""
        return self.turns[-1].is_start


def build_user_mail(message: Message, site: SiteInfo) -> MailText:
    """Build the mail to one user."""
    jobs = find_jobs(message.turns)
    subject = f"[{site.cluster}] {_subject(message, jobs)}"
    advice = {turn.rule_name: turn.advice for turn in message.turns if turn.is_start and turn.advice}
    return MailText(subject, _plain(message, jobs, advice, site), _html(message, jobs, advice, site))


def find_jobs(turns: Sequence[AlertTurn]) -> list[JobLine]:
    """The jobs of a message; tasks of an array are grouped."""
    parts: dict[tuple[str, str], list[AlertTurn]] = {}
    for turn in turns:
        parts.setdefault((turn.rule, turn.array or turn.workload), []).append(turn)
    return [JobLine(_title(group), group[0].workload, group) for group in parts.values()]


def _title(turns: Sequence[AlertTurn]) -> str:
    first = turns[0]
    name = f"“{first.name}”" if first.name else None
    if first.array is None:
        number = first.workload.partition(":")[2] or first.workload
        return f"Your job {name} ({number})" if name else f"Your job {number}"
    tasks = len({turn.workload for turn in turns})
    count = "1 task" if tasks == 1 else f"{tasks:,} tasks"
    return f"{count} of your array {name} ({first.array})" if name else f"{count} of your array {first.array}"


def _subject(message: Message, jobs: Sequence[JobLine]) -> str:
    rules = list(
        dict.fromkeys([*(turn.rule_name for turn in message.turns), *(tally.rule_name for tally in message.tallies)])
    )
    about = rules[0] if len(rules) == 1 else f"{len(rules)} problems"
    if not jobs:
        return f"Your jobs: {about}"
    suffix = "" if any(job.is_open for job in jobs) else " (resolved)"
    return f"{jobs[0].title if len(jobs) == 1 else f'{len(jobs)} of your jobs'}: {about}{suffix}"


def _lines(job: JobLine) -> list[str]:
    last = job.turns[-1]
    units = list(dict.fromkeys(unit for turn in job.turns for unit in turn.units))
    where = f" on {shorten(units)}" if units else ""
    start = format_time(min(turn.since for turn in job.turns))
    when = f"since {start}" if job.is_open else f"from {start} to {format_time(last.at)}; resolved"
    return [f"{job.title}: {last.rule_name}{where}, {when}.", *([last.readings] if last.readings else [])]


def _plain(message: Message, jobs: Sequence[JobLine], advice: dict[str, str], site: SiteInfo) -> str:
    lines = [f"- {describe_tally(tally)}" for tally in message.tallies]
    for job in jobs[:_LISTED_JOBS]:
        head, *more = _lines(job)
        lines += [head, *(f"  {text}" for text in more)]
        lines += [f"  {url}" for url in _as_list(site.workload_url(job.workload))]
    if len(jobs) > _LISTED_JOBS:
        lines.append(f"… and {len(jobs) - _LISTED_JOBS:,} more of your jobs.")
    for name, text in advice.items():
        lines += ["", f"What you can do ({name}):" if len(advice) > 1 else "What you can do:", text]
    lines += ["", "Sent by ClusterScape, which monitors the GPUs of this cluster.", f"Message {message.key}"]
    return "\n".join(lines)


def _html(message: Message, jobs: Sequence[JobLine], advice: dict[str, str], site: SiteInfo) -> str:
    """HTML that all mail clients support."""
    items = [f"<p>{html.escape(describe_tally(tally))}</p>" for tally in message.tallies]
    for job in jobs[:_LISTED_JOBS]:
        head, *more = (html.escape(line) for line in _lines(job))
        links = [
            f'<a href="{html.escape(url)}">Open in ClusterScape</a>'
            for url in _as_list(site.workload_url(job.workload))
        ]
        small = " · ".join([*more, *links])
        items.append(f'<p>{head}<br><span style="color: #777">{small}</span></p>')
    if len(jobs) > _LISTED_JOBS:
        items.append(f"<p>… and {len(jobs) - _LISTED_JOBS:,} more of your jobs.</p>")
    for name, text in advice.items():
        about = f" ({html.escape(name)})" if len(advice) > 1 else ""
        items.append(f"<p><b>What you can do{about}</b><br>{html.escape(text)}</p>")
    return (
        f'<div style="font-family: sans-serif; font-size: 14px; line-height: 1.5">{"".join(items)}'
        '<p style="color: #777; font-size: 12px">Sent by ClusterScape, which monitors the GPUs of this cluster.'
        f" Message {message.key}</p></div>"
    )


def _as_list(url: str | None) -> Iterable[str]:
    return () if url is None else (url,)
