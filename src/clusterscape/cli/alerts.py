"""``clusterscape alerts``: a test message to a channel, and how the channels do."""

import asyncio
import dataclasses
import secrets
import time
from typing import TYPE_CHECKING, Annotated

import typer

from clusterscape.cli.options import ConfigOption, JsonOption
from clusterscape.cli.output import answers, count, listing_table, print_json
from clusterscape.errors import NotFoundError
from clusterscape.model.quantities import format_duration

if TYPE_CHECKING:
    from clusterscape.watch.alerts import ChannelState

app = typer.Typer(help="Who is told of violations, and whether it works.", no_args_is_help=True)


@app.command("test")
def send_test(
    channel: Annotated[str, typer.Argument(help="Name of the channel in the settings.")],
    user: Annotated[
        str | None, typer.Option(help="Whom to write to, where the channel writes to the workloads' users.")
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send a marked test message to a channel and tell its answer. Ends with 1 where it is not accepted."""
    from clusterscape.runtime.site import system_clock
    from clusterscape.settings import find_config, read_settings
    from clusterscape.watch.alerts import Message, MessageKind, build_channels

    settings = read_settings(find_config(config))
    channels = {
        each.name: each for each in build_channels(settings.alerts, cluster=settings.cluster, clock=system_clock)
    }
    if channel not in channels:
        known = f"Configured: {', '.join(channels)}." if channels else "None is configured: see [alerts.channels.NAME]."
        raise NotFoundError(f"there is no channel `{channel}`", hint=known)
    message = Message(
        key=f"test-{secrets.token_hex(6)}", kind=MessageKind.TEST, created_at=system_clock(), lane=user or ""
    )
    answer = asyncio.run(channels[channel].send(message))
    if as_json:
        print_json({"channel": channel, "key": message.key, "is_accepted": answer.is_accepted, "answer": answer.text})
    elif answer.is_accepted:
        answers.print(f"{channel} accepted the test message {message.key}: {answer.text}", soft_wrap=True)
    else:
        answers.print(f"{channel} did not accept it: {answer.text}", style="red", soft_wrap=True)
    if not answer.is_accepted:
        raise typer.Exit(1)


@app.command("status")
def show_status(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show what waits for each channel, what was delivered and what fails; also while ClusterScape is running."""
    from clusterscape.cli.site_settings import read_site_settings
    from clusterscape.watch.alerts import SPOOL_FILE, read_spool

    settings = read_site_settings(config)
    states = read_spool(settings.storage.data_dir / SPOOL_FILE)
    if as_json:
        configured = settings.alerts.channels
        print_json([{**dataclasses.asdict(each), "is_configured": each.name in configured} for each in states])
    elif not states:
        answers.print(
            "No alerts were ever sent from here. Channels: " + (", ".join(settings.alerts.channels) or "none.")
        )
    else:
        _print(states, set(settings.alerts.channels))


def _print(states: "list[ChannelState]", configured: set[str]) -> None:
    table = listing_table()
    for heading in ("channel", "kind", "waiting", "delivered", "last"):
        table.add_column(
            heading, justify="right" if heading in ("waiting", "delivered", "last") else "left", no_wrap=True
        )
    now = time.time() * 1000
    for each in states:
        name = each.name if each.name in configured else f"{each.name} (not configured)"
        last = "–" if each.delivered_at is None else f"{format_duration((now - each.delivered_at) / 1000)} ago"
        table.add_row(name, each.kind, f"{each.waiting_turns:,}", f"{each.delivered:,}", last)
    answers.print(table)
    for each in states:
        if each.last_error is None:
            continue
        since = f" for {format_duration((now - each.failing_since) / 1000)}" if each.failing_since is not None else ""
        answers.print(f"{each.name} fails{since}: {each.last_error}", style="yellow", soft_wrap=True)
        if each.next_attempt_at is not None:
            pause_s = max(0.0, (each.next_attempt_at - now) / 1000)
            lasts = "it will not mend by itself; " if each.is_lasting else ""
            tried = count(each.attempts, "attempt")
            answers.print(f"  → {lasts}{tried}, the next in {format_duration(pause_s)}", style="dim", highlight=False)
