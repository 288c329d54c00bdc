"""``clusterscape user``: local accounts, and accounts of users who have signed in."""

import time
from typing import Annotated

import typer

from clusterscape.cli.options import ConfigOption, JsonOption, example
from clusterscape.cli.output import listing_table, print_json, stdout
from clusterscape.model.access import Account, Role, Way
from clusterscape.model.quantities import format_duration

app = typer.Typer(help="Add, list, change and remove user accounts.", no_args_is_help=True)

LoginArgument = Annotated[str, typer.Argument(help="User name, as in the scheduler.", show_default=False)]
WayOption = Annotated[Way, typer.Option(help="How the user signs in.")]
StdinOption = Annotated[bool, typer.Option("--password-stdin", help="Read the password from standard input.")]
ProjectOption = Annotated[list[str] | None, typer.Option("--project", help="Project of a lead; repeatable.")]


@app.command("add", epilog=example("clusterscape user add alice --role admin"))
def add(
    login: LoginArgument,
    role: Annotated[Role, typer.Option(help="Role of the user.")] = Role.RESEARCHER,
    project: ProjectOption = None,
    title: Annotated[str | None, typer.Option(help="Display name.")] = None,
    password_stdin: StdinOption = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a local account; prompts for its password."""
    from clusterscape.cli.access import open_access, warn_if_unused
    from clusterscape.errors import QueryError
    from clusterscape.runtime.site import system_clock
    from clusterscape.serve.identity.passwords import check_login

    check_login(login)
    with open_access(config) as access:
        password_hash = access.ask_password_hash(login, from_input=password_stdin)
        account = Account(
            way=Way.LOCAL,
            login=login,
            role=role,
            projects=frozenset(project or ()),
            title=title,
            created_at=system_clock(),
        )
        if not access.store.add_account(account, password_hash=password_hash):
            raise QueryError(f"account {login} already exists", hint="Change it with `clusterscape user role`.")
        access.note("account.add", login, role=role.value)
        if as_json:
            print_json(_plain(account))
            return
        stdout.print(f"Added {login} with role {role}.", highlight=False)
        warn_if_unused(access.settings)


@app.command("list", epilog=example("clusterscape user list"))
def list_accounts(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List accounts."""
    from clusterscape.cli.access import open_access

    with open_access(config) as access:
        accounts = access.store.accounts()
    if as_json:
        print_json([_plain(account) for account in accounts])
        return
    if not accounts:
        stdout.print("No accounts. Add one with `clusterscape user add NAME --role admin`.")
        return
    table = listing_table()
    for heading in ("login", "way", "role", "projects", "name", "last sign-in"):
        table.add_column(heading, no_wrap=heading != "projects")
    now = time.time() * 1000
    for account in accounts:
        last = "–" if account.signed_in_at is None else f"{format_duration((now - account.signed_in_at) / 1000)} ago"
        role = f"{account.role} (disabled)" if account.is_disabled else account.role
        table.add_row(
            account.login, account.way, role, ", ".join(sorted(account.projects)) or "–", account.title or "–", last
        )
    stdout.print(table)


@app.command("passwd", epilog=example("clusterscape user passwd alice"))
def change_password(login: LoginArgument, password_stdin: StdinOption = False, config: ConfigOption = None) -> None:
    """Change the password of a local account and end its sessions."""
    from clusterscape.cli.access import open_access

    with open_access(config) as access:
        access.account(Way.LOCAL, login)
        access.store.set_password(login, access.ask_password_hash(login, from_input=password_stdin))
        access.store.end_sessions(Way.LOCAL, login)
        access.note("account.password", login)
    stdout.print(f"Changed the password of {login} and ended its sessions.", highlight=False)


@app.command("role", epilog=example("clusterscape user role alice lead --project vision"))
def change_role(
    login: LoginArgument,
    role: Annotated[Role, typer.Argument(help="New role.")],
    project: ProjectOption = None,
    config: ConfigOption = None,
) -> None:
    """Change the role and, with --project, the projects of a local account; takes effect with the next request."""
    from dataclasses import replace

    from clusterscape.cli.access import open_access

    with open_access(config) as access:
        account = access.account(Way.LOCAL, login)
        projects = account.projects if project is None else frozenset(project)
        access.store.change_account(replace(account, role=role, projects=projects))
        access.note("account.change", login, role=role.value)
    stdout.print(f"{login} now has role {role}.", highlight=False)


@app.command("remove", epilog=example("clusterscape user remove alice"))
def remove(login: LoginArgument, way: WayOption = Way.LOCAL, config: ConfigOption = None) -> None:
    """Remove an account with its sessions and tokens."""
    from clusterscape.cli.access import open_access

    with open_access(config) as access:
        access.account(way, login)
        access.store.remove_account(way, login)
        access.note("account.remove", login)
    stdout.print(f"Removed {login}.", highlight=False)


def _plain(account: Account) -> dict[str, object]:
    return {
        "login": account.login,
        "way": account.way.value,
        "role": account.role.value,
        "projects": sorted(account.projects),
        "title": account.title,
        "is_disabled": account.is_disabled,
        "created_at": account.created_at,
        "signed_in_at": account.signed_in_at,
    }
