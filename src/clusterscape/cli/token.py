"""``clusterscape token``: API tokens of scripts and trackers."""

import time
from typing import Annotated

import typer

from clusterscape.cli.options import ConfigOption, JsonOption, example
from clusterscape.cli.output import listing_table, print_json, stderr, stdout
from clusterscape.model.access import ApiToken, Scope, Way
from clusterscape.model.quantities import format_duration

app = typer.Typer(help="Create, list and revoke API tokens.", no_args_is_help=True)


@app.command("create", epilog=example("clusterscape token create alice --scope runs --days 30"))
def create(
    login: Annotated[str, typer.Argument(help="User that the token acts for.", show_default=False)],
    title: Annotated[str, typer.Option(help="Description.")] = "made by the command",
    scope: Annotated[
        list[Scope] | None, typer.Option(help="Scope of the token; repeatable.", show_default="read")
    ] = None,
    days: Annotated[float, typer.Option(min=0.001, help="Days until it expires.")] = 90.0,
    way: Annotated[Way, typer.Option(help="How the user signs in.")] = Way.LOCAL,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a token and print it; it cannot be shown again."""
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
    stderr.print("The token is shown only once. Send it as `Authorization: Bearer …`.", highlight=False)
    stdout.print(secret, highlight=False, soft_wrap=True)


@app.command("list", epilog=example("clusterscape token list"))
def list_tokens(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List tokens with their owner and last use."""
    from clusterscape.cli.access import open_access

    with open_access(config) as access:
        tokens = access.store.tokens()
    if as_json:
        print_json([_plain(token) for token in tokens])
        return
    if not tokens:
        stdout.print("No API tokens. Create one with `clusterscape token create NAME`.")
        return
    table = listing_table()
    for heading in ("key", "begins with", "owner", "for", "scopes", "last used", "ends"):
        table.add_column(heading, no_wrap=heading != "for")
    now = time.time() * 1000
    for token in tokens:
        used = "never" if token.used_at is None else f"{format_duration((now - token.used_at) / 1000)} ago"
        left_s = (token.expires_at - now) / 1000
        ends = "revoked" if token.revoked_at else "expired" if left_s <= 0 else f"in {format_duration(left_s)}"
        table.add_row(
            token.key, f"{token.start}…", token.login, token.title, ", ".join(sorted(token.scopes)), used, ends
        )
    stdout.print(table)


@app.command("revoke", epilog=example("clusterscape token revoke 3f9a1c"))
def revoke(
    key: Annotated[str, typer.Argument(help="Key of the token, from `token list`.")], config: ConfigOption = None
) -> None:
    """Revoke a token; takes effect with the next request."""
    from clusterscape.cli.access import open_access
    from clusterscape.runtime.site import system_clock
    from clusterscape.serve.identity.tokens import ApiTokens

    with open_access(config) as access:
        token = ApiTokens(access.store, access.settings.auth, clock=system_clock).revoke(key, owner=None)
        access.note("token.revoke", key, owner=token.login)
    stdout.print(f"Revoked token {key} of {token.login}.", highlight=False)


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
