"""The command's front door: sub-commands, and how an error reaches the terminal."""

import json
import logging
import sys
from typing import Annotated

import typer
from rich.text import Text

from clusterscape import __version__
from clusterscape.cli import (
    alerts,
    ask,
    audit,
    backup,
    demo,
    diagnose,
    doctor,
    init,
    listing,
    migrate,
    plan,
    rule_notes,
    rules,
    rules_site,
    runs,
    sched,
    serve,
    status,
    token,
    trace,
    user,
)
from clusterscape.cli.output import errors, set_up_log
from clusterscape.cli.safe_text import plain_lines
from clusterscape.errors import ClusterScapeError

app = typer.Typer(
    name="clusterscape",
    help="Makes a shared GPU cluster transparent: who uses which GPU, for what, and how well.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("serve")(serve.serve)
app.command("init")(init.init)
app.command("doctor")(doctor.doctor)
app.command("status")(status.status)
app.command("list")(listing.listing)
app.command("ask")(ask.ask)
app.command("backup")(backup.backup)
app.command("restore")(backup.restore)
app.command("migrate")(migrate.migrate)
rules.app.add_typer(rule_notes.app)
app.add_typer(rules.app, name="rules")
app.command("violations")(rules_site.list_violations)
app.command("diagnose")(diagnose.diagnose)
app.add_typer(alerts.app, name="alerts")
app.add_typer(user.app, name="user")
app.add_typer(token.app, name="token")
app.command("audit")(audit.audit)
app.add_typer(runs.app, name="runs")
app.command("plan")(plan.plan)


@app.command("run", context_settings={"ignore_unknown_options": True, "help_option_names": []})
def run(
    words: Annotated[list[str], typer.Argument(help="Options, then a script with its arguments, or -- COMMAND.")],
) -> None:
    """Run a script or command unchanged and track its hardware; `clusterscape run --help` lists the options."""
    from clusterscape.cli.run import run_words

    raise typer.Exit(run_words(words))


app.add_typer(sched.app, name="sched")
app.add_typer(trace.app, name="trace")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"clusterscape {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Say the version and end.", callback=_show_version, is_eager=True)
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what happens, in detail.")] = False,
) -> None:
    del version
    set_up_log(logging.DEBUG if verbose else logging.INFO)


def main() -> None:
    """Run the command; a known error is one sentence and a hint, never a traceback."""
    try:
        app()
    except ClusterScapeError as error:
        if "--json" in sys.argv:
            body = {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
            sys.stdout.write(json.dumps(body) + "\n")
        else:
            errors.print(f"error: {error.message}", style="bold red", highlight=False, soft_wrap=True)
            if error.hint:
                # A hint may have several lines: a rule's text with a caret below.
                errors.print(Text(plain_lines(error.hint)), highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
