"""``clusterscape user``: local accounts, and everybody who ever came in."""

import time
from typing import Annotated

import typer

from clusterscape.cli.options import ConfigOption, JsonOption
from clusterscape.cli.output import answers, listing_table, print_json
from clusterscape.model.access import Account, Way
from clusterscape.model.quantities import format_duration
from clusterscape.model.viewers import Role

app = typer.Typer(help="Who may come in, and as what.", no_args_is_help=True)

LoginArgument = Annotated[str, typer.Argument(help="User name, as the scheduler knows it.", show_default=False)]
WayOption = Annotated[Way, typer.Option(help="How the account comes in.")]
StdinOption = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password as one line from standard input.")
]
ProjectOption = Annotated[
    list[str] | None, typer.Option("--project", help="A project that a lead answers for; may be repeated.")
]


@app.command("add")
def add(
    login: LoginArgument,
    role: Annotated[Role, typer.Option(help="What they are on this site.")] = Role.RESEARCHER,
    project: ProjectOption = None,
    title: Annotated[str | None, typer.Option(help="Name to show.")] = None,
    password_stdin: StdinOption = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a local account; asks for its password."""
    from clusterscape.cli.access import open_access, warn_if_unused
    from clusterscape.errors import QueryError
    from clusterscape.runtime.site import system_clock
    from clusterscape.serve.identity.passwords import check_login

    check_login(login)
    with open_access(config) as access:
        hashed = access.ask_password_hash(login, from_input=password_stdin)
        account = Account(
            way=Way.LOCAL,
            login=login,
            role=role,
            projects=frozenset(project or ()),
            title=title,
            created_at=system_clock(),
        )
        if not access.store.add_account(account, password_hash=hashed):
            raise QueryError(f"there is an account {login} already", hint="Change it: `clusterscape user role`.")
        access.note("account.add", login, role=role.value)
        if as_json:
            print_json(_plain(account))
            return
        answers.print(f"{login} may come in as {role}.", highlight=False)
        warn_if_unused(access.settings)


@app.command("list")
def list_accounts(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show all accounts."""
    from clusterscape.cli.access import open_access

    with open_access(config) as access:
        accounts = access.store.accounts()
    if as_json:
        print_json([_plain(account) for account in accounts])
        return
    if not accounts:
        answers.print("Nobody has an account. `clusterscape user add NAME --role admin` makes one.")
        return
    table = listing_table()
    for heading in ("login", "way", "role", "projects", "name", "last sign-in"):
        table.add_column(heading, no_wrap=heading != "projects")
    now = time.time() * 1000
    for each in accounts:
        last = "–" if each.signed_in_at is None else f"{format_duration((now - each.signed_in_at) / 1000)} ago"
        role = f"{each.role} (shut out)" if each.is_disabled else each.role
        table.add_row(each.login, each.way, role, ", ".join(sorted(each.projects)) or "–", each.title or "–", last)
    answers.print(table)


@app.command("passwd")
def change_password(login: LoginArgument, password_stdin: StdinOption = False, config: ConfigOption = None) -> None:
    """Give a local account another password; it is signed out everywhere."""
    from clusterscape.cli.access import open_access

    with open_access(config) as access:
        access.account(Way.LOCAL, login)
        access.store.set_password(login, access.ask_password_hash(login, from_input=password_stdin))
        access.store.end_sessions(Way.LOCAL, login)
        access.note("account.password", login)
    answers.print(f"{login} has a new password and is signed out everywhere.", highlight=False)


@app.command("role")
def change_role(
    login: LoginArgument,
    role: Annotated[Role, typer.Argument(help="What they are from now on.")],
    project: ProjectOption = None,
    config: ConfigOption = None,
) -> None:
    """Give a local account another role and, where named, other projects; it counts from the next request on."""
    from dataclasses import replace

    from clusterscape.cli.access import open_access

    with open_access(config) as access:
        account = access.account(Way.LOCAL, login)
        projects = account.projects if project is None else frozenset(project)
        access.store.change_account(replace(account, role=role, projects=projects))
        access.note("account.change", login, role=role.value)
    answers.print(f"{login} is {role} now.", highlight=False)


@app.command("remove")
def remove(login: LoginArgument, way: WayOption = Way.LOCAL, config: ConfigOption = None) -> None:
    """Forget an account with its sessions and tokens."""
    from clusterscape.cli.access import open_access

    with open_access(config) as access:
        access.account(way, login)
        access.store.remove_account(way, login)
        access.note("account.remove", login)
    answers.print(f"{login} is removed.", highlight=False)


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
