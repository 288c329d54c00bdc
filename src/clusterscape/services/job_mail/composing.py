"""Composes mails: of one job with its card, of many jobs as a digest. Text and HTML say the same. Pure."""

import html
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from typing import Any
from urllib.parse import quote

from clusterscape.analyze.jobcard.rounding import format_clock
from clusterscape.analyze.jobcard.text import card_text, job_number, page_address
from clusterscape.model.quantities import format_hours
from clusterscape.services.job_mail.picture import draw_curve

MAX_ADVICE = 3
MAX_LISTED = 50
Card = Mapping[str, Any]
_STATES = {"node_failed": "NODE_FAIL"}
_SMALL = "color: #666; font-size: 12px"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedJob:
    """A job of a digest. ``card`` only of some."""

    job: str
    name: str | None
    state: str
    run_s: float | None
    card: Card | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMailText:
    """Subject, text and HTML; ``picture`` is shown in the HTML."""

    subject: str
    plain: str
    page: str
    picture: bytes | None = None


def has_waste(card: Card) -> bool:
    """Whether the card has something to say on waste: advice that saves something, or a critical note."""
    is_wasteful = any(piece["saved"] is not None for piece in card["advice"])
    return is_wasteful or any(note["level"] == "critical" for note in card["notes"])


def write_job(card: Card, *, page_url: str | None) -> JobMailText:
    """The mail on one job."""
    state, number = _state(card["state"]), job_number(card)
    name = " ".join((card["name"] or "").split())[:64]
    title = f"Job {number}{f' {name}' if name else ''}: {state} after {format_clock(card['run_s'])}"
    advice = card["advice"][:MAX_ADVICE]
    curve = _main_curve(card)
    plain = [title, ""]
    if advice:
        plain += ["What would have been enough:", *(f"- {piece['option']}: {piece['text']}" for piece in advice), ""]
    plain += [card_text({**card, "advice": [], "similar": None}, url=page_url).strip("\n"), ""]
    parts = [f'<h2 style="font-size: 16px">{html.escape(title)}</h2>', _bars(card)]
    if curve is not None:
        label = html.escape(f"{curve['label']} over the run")
        parts.append(f'<p style="margin: 12px 0 2px; {_SMALL}">{label}</p>')
        parts.append(f'<img src="cid:curve" alt="{label}" width="600" style="max-width: 100%">')
    parts += _advice_html(advice)
    parts += [f"<p>{html.escape(note['text'])}</p>" for note in card["notes"] if note["level"] == "critical"]
    if page_url is not None:
        parts.append(f'<p><a href="{html.escape(page_address(page_url, card))}">The card of the job</a></p>')
    picture = None if curve is None else draw_curve(curve["values"], curve["most"])
    return _mail(f"[{card['cluster']}] {title}", plain, parts, page_url, picture)


def write_without_card(subject: str, job: str | None, *, cluster: str, page_url: str | None) -> JobMailText:
    """The mail of Slurm, with a link: of a job that began, or whose card is unknown."""
    link = None if page_url is None or job is None else _job_url(page_url, cluster, job)
    parts = [f"<p>{html.escape(subject)}</p>"]
    if link is not None:
        parts.append(f'<p><a href="{html.escape(link)}">The card of the job</a></p>')
    return _mail(f"[{cluster}] {subject}", [subject, "", *([link] if link else [])], parts, page_url)


def write_digest(jobs: Sequence[EndedJob], *, cluster: str, page_url: str | None) -> JobMailText:
    """One mail on many jobs: how they ended, what the same advice would have saved, and the list."""
    states = Counter(_state(job.state) for job in jobs)
    tally = ", ".join(f"{count:,} {state}" for state, count in states.most_common())
    title = f"{len(jobs):,} of your jobs ended: {tally}"
    advice = _common_advice([job.card for job in jobs if job.card is not None])
    listed = sorted(jobs, key=lambda job: (job.state == "completed", job.job))[:MAX_LISTED]
    plain, parts = [title, ""], [f'<h2 style="font-size: 16px">{html.escape(title)}</h2>']
    if advice:
        plain += ["What would have been enough:", *(f"- {piece['option']}: {piece['text']}" for piece in advice), ""]
        parts += _advice_html(advice)
    plain += [f"  {job.job:<16}{_state(job.state):<14}{_run(job):>11}  {job.name or ''}"[:100] for job in listed]
    rows = []
    for job in listed:
        link = None if page_url is None else _job_url(page_url, cluster, job.job)
        number = html.escape(job.job) if link is None else f'<a href="{html.escape(link)}">{html.escape(job.job)}</a>'
        cells = (number, html.escape(_state(job.state)), _run(job), html.escape(job.name or ""))
        rows.append("<tr>" + "".join(f'<td style="padding: 2px 14px 2px 0">{cell}</td>' for cell in cells) + "</tr>")
    parts.append(f"<table>{''.join(rows)}</table>")
    if len(jobs) > len(listed):
        more = f"… and {len(jobs) - len(listed):,} more."
        plain.append(f"  {more}")
        parts.append(f"<p>{more}</p>")
    return _mail(f"[{cluster}] {title}", plain, parts, page_url)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserWeek:
    """What one user's jobs did in a week."""

    user: str
    jobs: int
    gpu_hours: float
    idle_gpu_hours: float
    core_hours: float


def write_week(project: str, users: Sequence[UserWeek], *, cluster: str, page_url: str | None) -> JobMailText:
    """The weekly mail on a project, to its lead."""
    total = sum(user.gpu_hours for user in users)
    idle = sum(user.idle_gpu_hours for user in users)
    title = f"{project} last week: {format_hours(total)} GPU-hours, {format_hours(idle)} of them idle"
    ordered = sorted(users, key=lambda user: (-user.gpu_hours, -user.core_hours, user.user))[:MAX_LISTED]
    head = ("User", "Jobs", "GPU-hours", "idle", "Core-hours")
    lines = [f"  {head[0]:<20}{head[1]:>8}{head[2]:>12}{head[3]:>10}{head[4]:>13}"]
    rows = [_row(head, "th")]
    for user in ordered:
        cells = (
            user.user,
            f"{user.jobs:,}",
            format_hours(user.gpu_hours),
            format_hours(user.idle_gpu_hours),
            format_hours(user.core_hours),
        )
        lines.append(f"  {cells[0][:20]:<20}{cells[1]:>8}{cells[2]:>12}{cells[3]:>10}{cells[4]:>13}")
        rows.append(_row(cells, "td"))
    parts = [f'<h2 style="font-size: 16px">{html.escape(title)}</h2>', f"<table>{''.join(rows)}</table>"]
    return _mail(f"[{cluster}] {title}", [title, "", *lines], parts, page_url)


def _row(cells: Sequence[str], tag: str) -> str:
    style = "padding: 2px 14px 2px 0; text-align: left"
    return "<tr>" + "".join(f'<{tag} style="{style}">{html.escape(cell)}</{tag}>' for cell in cells) + "</tr>"


def build_message(mail: JobMailText, *, key: str, sender: str, recipient: str, at_ms: int) -> EmailMessage:
    """The message. Its Message-ID is the key, the same at every attempt."""
    message = EmailMessage()
    message["From"], message["To"] = sender, recipient
    message["Subject"] = " ".join(mail.subject.split())
    message["Date"] = formatdate(at_ms / 1000)
    message["Message-ID"] = f"<{key}@{sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(mail.plain)
    message.add_alternative(mail.page, subtype="html")
    if mail.picture is not None:
        # The last part is the HTML.
        page = message.get_payload()[-1]  # type: ignore[index]  # a list: the message is multipart
        page.add_related(mail.picture, "image", "png", cid="<curve>")  # type: ignore[union-attr]
    return message


def _mail(
    subject: str, plain: Sequence[str], parts: Sequence[str], page_url: str | None, picture: bytes | None = None
) -> JobMailText:
    choice = "" if page_url is None else f"{page_url.rstrip('/')}/"
    footer = "Sent by ClusterScape, because the job asked for mail (--mail-type)."
    hint = f" Choose which mails you get: `clusterscape mail waste` or `clusterscape mail none`{f', or {choice}' * bool(choice)}."
    page = (
        '<div style="font-family: sans-serif; font-size: 14px; line-height: 1.5">'
        f'{"".join(parts)}<p style="{_SMALL}">{html.escape(footer + hint)}</p></div>'
    )
    return JobMailText(subject=subject, plain="\n".join([*plain, "", footer + hint]), page=page, picture=picture)


def _state(state: str) -> str:
    return _STATES.get(state, state.upper())


def _run(job: EndedJob) -> str:
    return "" if job.run_s is None else format_clock(job.run_s)


def _job_url(page_url: str, cluster: str, job: str) -> str:
    return f"{page_url.rstrip('/')}/job/{quote(cluster, safe='')}/{quote(job, safe='+')}"


def _main_curve(card: Card) -> Card | None:
    """GPU utilization, or of a job without GPUs its busy cores."""
    curves = {curve["name"]: curve for curve in card["curves"]}
    return curves.get("gpu_util") or curves.get("cpu_cores")


def _bars(card: Card) -> str:
    """The four shares as bars that every mail client shows."""
    names = {"cpu": "CPU", "cpu_memory": "CPU memory", "gpu": "GPU", "gpu_memory": "GPU memory"}
    rows = []
    for key, name in names.items():
        share = card[key]
        if share is None:
            continue
        percent = share["percent"]
        width = 0 if percent is None else max(0, min(100, percent))
        bar = (
            '<div style="background: #e8eaee; width: 220px; height: 10px">'
            f'<div style="background: #2f6fd0; width: {width}%; height: 10px"></div></div>'
        )
        text = "unknown" if percent is None else f"{percent}%"
        cells = (name, bar, text)
        rows.append("<tr>" + "".join(f'<td style="padding: 2px 12px 2px 0">{cell}</td>' for cell in cells) + "</tr>")
    return f"<table>{''.join(rows)}</table>"


def _advice_html(advice: Sequence[Card]) -> list[str]:
    if not advice:
        return []
    items = "".join(
        f"<li><code>{html.escape(piece['option'])}</code><br>{html.escape(piece['text'])}</li>" for piece in advice
    )
    return [f"<p><b>What would have been enough</b></p><ul>{items}</ul>"]


def _common_advice(cards: Sequence[Card]) -> list[Card]:
    """At most three different pieces of advice, those on the most jobs first."""
    pieces: dict[str, Card] = {}
    counts: Counter[str] = Counter()
    for card in cards:
        for piece in card["advice"]:
            pieces.setdefault(piece["option"], piece)
            counts[piece["option"]] += 1
    return [pieces[option] for option, _ in counts.most_common(MAX_ADVICE)]
