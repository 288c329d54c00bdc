"""A message in the words of the people whose jobs it is about: what their job does, and what they can do. Not for operators."""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clusterscape.watch.alerts.channels.letterhead import Letterhead
from clusterscape.watch.alerts.channels.words import describe_tally, moment, shorten
from clusterscape.watch.alerts.contract import Message
from clusterscape.watch.alerts.turns import AlertTurn

_LISTED_JOBS = 50


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail without its addresses."""

    subject: str
    plain: str
    html: str


@dataclass(frozen=True, slots=True)
class Job:
    """A job, or all tasks of an array that a message is about, with what is said of it in a line."""

    title: str
    workload: str
    turns: Sequence[AlertTurn]

    @property
    def goes_on(self) -> bool:
        """Whether the last that is told is that it breaks the rule."""
        return self.turns[-1].is_start


def word_for_user(message: Message, letterhead: Letterhead) -> Letter:
    """The mail to one user."""
    jobs = find_jobs(message.turns)
    subject = f"[{letterhead.cluster}] {_subject(message, jobs)}"
    advice = {turn.rule_name: turn.advice for turn in message.turns if turn.is_start and turn.advice}
    return Letter(subject, _plain(message, jobs, advice, letterhead), _html(message, jobs, advice, letterhead))


def find_jobs(turns: Sequence[AlertTurn]) -> list[Job]:
    """The jobs of a message; tasks of an array are one."""
    parts: dict[tuple[str, str], list[AlertTurn]] = {}
    for turn in turns:
        parts.setdefault((turn.rule, turn.array or turn.workload), []).append(turn)
    return [Job(_title(group), group[0].workload, group) for group in parts.values()]


def _title(turns: Sequence[AlertTurn]) -> str:
    first = turns[0]
    name = f"“{first.name}”" if first.name else None
    if first.array is None:
        number = first.workload.partition(":")[2] or first.workload
        return f"Your job {name} ({number})" if name else f"Your job {number}"
    tasks = len({turn.workload for turn in turns})
    count = "1 task" if tasks == 1 else f"{tasks:,} tasks"
    return f"{count} of your array {name} ({first.array})" if name else f"{count} of your array {first.array}"


def _subject(message: Message, jobs: Sequence[Job]) -> str:
    rules = list(dict.fromkeys([*(turn.rule_name for turn in message.turns), *(t.rule_name for t in message.tallies)]))
    about = rules[0] if len(rules) == 1 else f"{len(rules)} kinds of trouble"
    if not jobs:
        return f"Your jobs: {about}"
    ended = "" if any(job.goes_on for job in jobs) else " (over)"
    return f"{jobs[0].title if len(jobs) == 1 else f'{len(jobs)} of your jobs'}: {about}{ended}"


def _lines(job: Job) -> list[str]:
    last = job.turns[-1]
    units = list(dict.fromkeys(unit for turn in job.turns for unit in turn.units))
    where = f" on {shorten(units)}" if units else ""
    begun = moment(min(turn.since for turn in job.turns))
    when = f"since {begun}" if job.goes_on else f"from {begun} to {moment(last.at)}; it is over"
    return [f"{job.title}: {last.rule_name}{where}, {when}.", *([last.readings] if last.readings else [])]


def _plain(message: Message, jobs: Sequence[Job], advice: dict[str, str], letterhead: Letterhead) -> str:
    lines = [f"- {describe_tally(each)}" for each in message.tallies]
    for job in jobs[:_LISTED_JOBS]:
        head, *more = _lines(job)
        lines += [head, *(f"  {text}" for text in more)]
        lines += [f"  {url}" for url in _filled(letterhead.workload_url(job.workload))]
    if len(jobs) > _LISTED_JOBS:
        lines.append(f"… and {len(jobs) - _LISTED_JOBS:,} more of your jobs.")
    for name, text in advice.items():
        lines += ["", f"What you can do ({name}):" if len(advice) > 1 else "What you can do:", text]
    lines += ["", "Sent by ClusterScape, which watches the GPUs of this cluster.", f"Message {message.key}"]
    return "\n".join(lines)


def _html(message: Message, jobs: Sequence[Job], advice: dict[str, str], letterhead: Letterhead) -> str:
    """Only what mail programs agree on."""
    items = [f"<p>{html.escape(describe_tally(each))}</p>" for each in message.tallies]
    for job in jobs[:_LISTED_JOBS]:
        head, *more = (html.escape(line) for line in _lines(job))
        links = [
            f'<a href="{html.escape(url)}">Look at it</a>' for url in _filled(letterhead.workload_url(job.workload))
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
        '<p style="color: #777; font-size: 12px">Sent by ClusterScape, which watches the GPUs of this cluster.'
        f" Message {message.key}</p></div>"
    )


def _filled(url: str | None) -> Iterable[str]:
    return () if url is None else (url,)
