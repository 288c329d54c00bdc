"""``clusterscape token``: API tokens for scripts and trackers."""

import time
from typing import Annotated

import typer

from clusterscape.cli.options import ConfigOption, JsonOption
from clusterscape.cli.output import answers, errors, listing_table, print_json
from clusterscape.model.access import ApiToken, Scope, Way
from clusterscape.model.quantities import format_duration

app = typer.Typer(help="API tokens: what scripts show instead of a password.", no_args_is_help=True)


@app.command("create")
def create(
    login: Annotated[str, typer.Argument(help="Account that the token acts for.", show_default=False)],
    title: Annotated[str, typer.Option(help="What it is for.")] = "made by the command",
    scope: Annotated[
        list[Scope] | None, typer.Option(help="What it may be used for; may be repeated.", show_default="read")
    ] = None,
    days: Annotated[float, typer.Option(min=0.001, help="Days until it expires.")] = 90.0,
    way: Annotated[Way, typer.Option(help="How the account comes in.")] = Way.LOCAL,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token and show it, this once."""
    from clusterscape.cli.access import open_access
    from clusterscape.runtime.site import system_clock
    from clusterscape.serve.identity.tokens import ApiTokens

    with open_access(config) as access:
        tokens = ApiTokens(access.store, access.settings.auth, clock=system_clock)
        token, secret = tokens.create(access.account(way, login), title=title, scopes=scope or [Scope.READ], days=days)
        access.note("token.create", token.key, owner=login, title=title, scopes=",".join(sorted(token.scopes)))
    if as_json:
        print_json({**_plain(token), "secret": secret})
        return
    errors.print("This is the only time it is shown; send it as `Authorization: Bearer …`.", highlight=False)
    answers.print(secret, highlight=False, soft_wrap=True)


@app.command("list")
def list_tokens(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show all tokens, whose they are and when they were last used."""
    from clusterscape.cli.access import open_access

    with open_access(config) as access:
        tokens = access.store.tokens()
    if as_json:
        print_json([_plain(token) for token in tokens])
        return
    if not tokens:
        answers.print("There are no API tokens. `clusterscape token create NAME` makes one.")
        return
    table = listing_table()
    for heading in ("key", "begins with", "owner", "for", "scopes", "last used", "ends"):
        table.add_column(heading, no_wrap=heading != "for")
    now = time.time() * 1000
    for each in tokens:
        used = "never" if each.used_at is None else f"{format_duration((now - each.used_at) / 1000)} ago"
        left_s = (each.expires_at - now) / 1000
        ends = "revoked" if each.revoked_at else "expired" if left_s <= 0 else f"in {format_duration(left_s)}"
        table.add_row(each.key, f"{each.start}…", each.login, each.title, ", ".join(sorted(each.scopes)), used, ends)
    answers.print(table)


@app.command("revoke")
def revoke(
    key: Annotated[str, typer.Argument(help="Key of the token, as `list` shows it.")], config: ConfigOption = None
) -> None:
    """End a token; it opens nothing from the next request on."""
    from clusterscape.cli.access import open_access
    from clusterscape.runtime.site import system_clock
    from clusterscape.serve.identity.tokens import ApiTokens

    with open_access(config) as access:
        token = ApiTokens(access.store, access.settings.auth, clock=system_clock).revoke(key, owner=None)
        access.note("token.revoke", key, owner=token.login)
    answers.print(f"The token {key} of {token.login} is revoked.", highlight=False)


def _plain(token: ApiToken) -> dict[str, object]:
    return {
        "key": token.key,
        "start": token.start,
        "title": token.title,
        "login": token.login,
        "way": token.way.value,
        "scopes": sorted(scope.value for scope in token.scopes),
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "used_at": token.used_at,
        "revoked_at": token.revoked_at,
    }
