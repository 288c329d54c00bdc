"""``clusterscape alerts``: tests alert channels and shows their state."""

import asyncio
import dataclasses
import secrets
import time
from typing import TYPE_CHECKING, Annotated

import typer

from clusterscape.cli.options import ConfigOption, JsonOption, example
from clusterscape.cli.output import count, listing_table, print_json, stdout
from clusterscape.errors import NotFoundError
from clusterscape.model.quantities import format_duration

if TYPE_CHECKING:
    from clusterscape.watch.alerts import ChannelState

app = typer.Typer(help="Test alert channels and show their state.", no_args_is_help=True)


@app.command("test", epilog=example("clusterscape alerts test operators"))
def send_test(
    channel: Annotated[str, typer.Argument(help="Name of the channel in the settings.")],
    user: Annotated[
        str | None, typer.Option(help="Recipient, if the channel writes to the users of workloads.")
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send a test message to a channel and print its response; exits with 1 if it is refused."""
    from clusterscape.runtime.site import system_clock
    from clusterscape.settings import find_config, read_settings
    from clusterscape.watch.alerts import Message, MessageKind, build_channels

    settings = read_settings(find_config(config))
    channels = {
        built.name: built for built in build_channels(settings.alerts, cluster=settings.cluster, clock=system_clock)
    }
    if channel not in channels:
        hint = f"Configured: {', '.join(channels)}." if channels else "None is configured: see [alerts.channels.NAME]."
        raise NotFoundError(f"no channel `{channel}`", hint=hint)
    message = Message(
        key=f"test-{secrets.token_hex(6)}", kind=MessageKind.TEST, created_at=system_clock(), lane=user or ""
    )
    response = asyncio.run(channels[channel].send(message))
    if as_json:
        print_json(
            {"channel": channel, "key": message.key, "is_accepted": response.is_accepted, "answer": response.text}
        )
    elif response.is_accepted:
        stdout.print(f"{channel} accepted the test message {message.key}: {response.text}", soft_wrap=True)
    else:
        stdout.print(f"{channel} refused the test message: {response.text}", style="red", soft_wrap=True)
    if not response.is_accepted:
        raise typer.Exit(1)


@app.command("status", epilog=example("clusterscape alerts status --json"))
def show_status(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show queued, delivered and failed messages of each channel; the server may be running."""
    from clusterscape.cli.site_settings import read_site_settings
    from clusterscape.watch.alerts import SPOOL_FILE, read_spool

    settings = read_site_settings(config)
    states = read_spool(settings.storage.data_dir / SPOOL_FILE)
    if as_json:
        configured = settings.alerts.channels
        print_json([{**dataclasses.asdict(state), "is_configured": state.name in configured} for state in states])
    elif not states:
        stdout.print("No alerts have been sent. Channels: " + (", ".join(settings.alerts.channels) or "none."))
    else:
        _print(states, set(settings.alerts.channels))


def _print(states: "list[ChannelState]", configured: set[str]) -> None:
    table = listing_table()
    for heading in ("channel", "kind", "waiting", "delivered", "last"):
        table.add_column(
            heading, justify="right" if heading in ("waiting", "delivered", "last") else "left", no_wrap=True
        )
    now = time.time() * 1000
    for state in states:
        name = state.name if state.name in configured else f"{state.name} (not configured)"
        last = "–" if state.delivered_at is None else f"{format_duration((now - state.delivered_at) / 1000)} ago"
        table.add_row(name, state.kind, f"{state.waiting_turns:,}", f"{state.delivered:,}", last)
    stdout.print(table)
    for state in states:
        if state.last_error is None:
            continue
        since = f" for {format_duration((now - state.failing_since) / 1000)}" if state.failing_since is not None else ""
        stdout.print(f"{state.name} fails{since}: {state.last_error}", style="yellow", soft_wrap=True)
        if state.next_attempt_at is not None:
            pause_s = max(0.0, (state.next_attempt_at - now) / 1000)
            permanent = "a permanent error; " if state.is_lasting else ""
            attempts = count(state.attempts, "attempt")
            stdout.print(
                f"  → {permanent}{attempts}, the next in {format_duration(pause_s)}", style="dim", highlight=False
            )
