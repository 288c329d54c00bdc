"""Entry point of the command: sub-commands, global options, and how errors are printed."""

import json
import logging
import sys
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from clusterscape import __version__
from clusterscape.cli import (
    alerts,
    ask,
    audit,
    backup,
    demo,
    diagnose,
    doctor,
    hang,
    init,
    job,
    listing,
    mail,
    migrate,
    monthly,
    plan,
    rules,
    rules_site,
    runs,
    sched,
    serve,
    status,
    token,
    trace,
    usage,
    user,
)
from clusterscape.cli.options import example
from clusterscape.cli.output import set_up_log, stderr
from clusterscape.cli.safe_text import plain_lines, warn_of_old_server
from clusterscape.cli.unused_input import watch
from clusterscape.errors import ClusterScapeError


class _Commands(TyperGroup):
    """Accepts former names of options, with a warning."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        command = next((word for word in args if not word.startswith("-")), None)
        # What follows `run` may belong to the script.
        is_old = [command != "run" and (word == "--server" or word.startswith("--server=")) for word in args]
        if any(is_old):
            warn_of_old_server()
            pairs = zip(args, is_old, strict=True)
            args = [word.replace("--server", "--url", 1) if old else word for word, old in pairs]
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="clusterscape",
    cls=_Commands,
    help="Shows who uses which GPUs of a shared cluster, for what, and how efficiently.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=example("clusterscape demo", "clusterscape status", "clusterscape COMMAND --help"),
)
START = "Start"
INSPECT = "Inspect a cluster"
RUNS = "Runs and traces"
ADMIN = "Administration"

app.command(
    "demo", rich_help_panel=START, epilog=example("clusterscape demo", "clusterscape demo --gpus 4096 --port 9000")
)(demo.demo)
app.command("init", rich_help_panel=START, epilog=example("clusterscape init", "clusterscape init --slurm cli --yes"))(
    init.init
)
app.command("serve", rich_help_panel=START, epilog=example("clusterscape serve --config clusterscape.toml"))(
    serve.serve
)
app.command("doctor", rich_help_panel=START, epilog=example("clusterscape doctor --config clusterscape.toml"))(
    doctor.doctor
)

app.command(
    "status",
    rich_help_panel=INSPECT,
    epilog=example("clusterscape status", 'clusterscape status --at "2026-11-14 09:41"'),
)(status.status)
app.command(
    "list",
    rich_help_panel=INSPECT,
    epilog=example(
        "clusterscape list workloads --user alice --state waiting",
        "clusterscape list units --format csv --output units.csv",
    ),
)(listing.listing)
app.command(
    "job",
    rich_help_panel=INSPECT,
    epilog=example("clusterscape job 4711", "clusterscape job 4711_3 4711+1 --json"),
)(job.job)
app.command(
    "usage",
    rich_help_panel=INSPECT,
    epilog=example(
        "clusterscape usage --period 2026-10 --by project",
        "clusterscape usage --period 2026 --by user --by gpu_model --step month --csv",
        "clusterscape usage --budgets",
    ),
)(usage.usage)
app.command(
    "report",
    rich_help_panel=INSPECT,
    epilog=example(
        "clusterscape report --month 2026-10 --output 2026-10.pdf",
        "clusterscape report --month 2026-10 --project nlp --output nlp.html",
    ),
)(monthly.monthly)
app.command(
    "mail",
    rich_help_panel=INSPECT,
    epilog=example("clusterscape mail", "clusterscape mail waste"),
)(mail.mail)
app.command(
    "diagnose",
    rich_help_panel=INSPECT,
    epilog=example("clusterscape diagnose 4711", 'clusterscape diagnose 4711 --from "2h ago" --html report.html'),
)(diagnose.diagnose)
app.command("violations", rich_help_panel=INSPECT, epilog=example("clusterscape violations --since 7d --user alice"))(
    rules_site.list_violations
)
rules.app.add_typer(rules_site.notes_app)
app.add_typer(rules.app, name="rules", rich_help_panel=INSPECT)
app.add_typer(sched.app, name="sched", rich_help_panel=INSPECT)
app.command(
    "ask",
    rich_help_panel=INSPECT,
    epilog=example(
        "clusterscape ask '/workloads?state=running'", "clusterscape ask /units.parquet --output units.parquet"
    ),
)(ask.ask)


@app.command(
    "run",
    rich_help_panel=RUNS,
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    epilog=example("clusterscape run train.py --epochs 3", "clusterscape run --devices 0+1 -- torchrun train.py"),
)
def run(
    words: Annotated[list[str], typer.Argument(help="Options, then a script with its arguments, or -- and a command.")],
) -> None:
    """Run a script or command unchanged and track its hardware metrics; `clusterscape run --help` lists the options."""
    from clusterscape.cli.run import run_words

    raise typer.Exit(run_words(words))


app.add_typer(runs.app, name="runs", rich_help_panel=RUNS)
app.command(
    "plan", rich_help_panel=RUNS, epilog=example("clusterscape plan sweep.toml --dry-run", "clusterscape plan runs.csv")
)(plan.plan)
app.add_typer(trace.app, name="trace", rich_help_panel=RUNS)
app.command(
    "hang",
    rich_help_panel=RUNS,
    epilog=example("clusterscape hang dumps/", "clusterscape hang first-look/ second-look/ --json"),
)(hang.hang)

app.add_typer(alerts.app, name="alerts", rich_help_panel=ADMIN)
app.add_typer(user.app, name="user", rich_help_panel=ADMIN)
app.add_typer(token.app, name="token", rich_help_panel=ADMIN)
app.command("audit", rich_help_panel=ADMIN, epilog=example("clusterscape audit --hours 24 --actor alice"))(audit.audit)
app.command("backup", rich_help_panel=ADMIN, epilog=example("clusterscape backup clusterscape-2026-11-14.tar"))(
    backup.backup
)
app.command(
    "restore",
    rich_help_panel=ADMIN,
    epilog=example("clusterscape restore backup.tar --check", "clusterscape restore backup.tar"),
)(backup.restore)
app.command(
    "migrate",
    rich_help_panel=ADMIN,
    epilog=example(
        "clusterscape migrate --to postgresql://clusterscape@db/clusterscape --dry-run",
        "clusterscape migrate --to http://victoria-metrics:8428 --to s3://bucket/clusterscape",
    ),
)(migrate.migrate)


def _print_version(is_set: bool) -> None:
    if is_set:
        typer.echo(f"clusterscape {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log debug messages.")] = False,
) -> None:
    del version
    watch(context)
    set_up_log(logging.DEBUG if verbose else logging.INFO)


def main() -> None:
    """Run the command. An expected error is printed as one sentence and a hint, without a traceback."""
    try:
        app()
    except ClusterScapeError as error:
        if "--json" in sys.argv:
            body = {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
            sys.stdout.write(json.dumps(body) + "\n")
        else:
            stderr.print(f"error: {error.message}", style="bold red", highlight=False, soft_wrap=True)
            if error.hint:
                # A hint may have several lines, such as a rule with a caret below it.
                stderr.print(Text(plain_lines(error.hint)), highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
