"""The ``clusterscape`` command: one file per sub-command; no other package imports it. Shared modules:

``access``: opens the account store for one command, and writes its audit log.
``checks``: the checks of ``doctor``.
``demo_folder``: the data folder of a demo; refuses folders that no demo created.
``demo_traces``: traces for two workloads of the demo.
``entry``: entry point: sub-commands, global options, errors.
``hang_text``: prints the verdict on a hang.
``mailprog``: the MailProg of Slurm; a command of its own, which imports nothing.
``migrate_moving``: source and target of ``migrate``, and the move itself.
``options``: options that several commands share.
``output``: consoles, logging, JSON; ``SafeConsole`` escapes untrusted text.
``pdf``: prints an HTML report to PDF with an installed Chromium.
``recorded_lives``: reads an nvidia-smi log for ``rules test``.
``run_notice``: the notice of recorded data, shown before the first upload.
``run_repeat``: ``run --repeat``.
``safe_text``: escapes control characters of untrusted text.
``sched_output``: output of ``clusterscape sched``.
``site_checks``: checks of ``doctor`` on the data folder, permissions and node names.
``site_settings``: reads the site's settings and prepares its data folder.
``unused_input``: exit status of commands that could not use most of a file.
``trace_text``: prints the report of a trace.
"""

import os
import sys


def main() -> None:
    """Run the command. ``clusterscape run`` wraps a user's script, so it starts without importing the other commands."""
    try:
        try:
            _run_command()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise Python prints an error at exit
        sys.exit(1)  # as Typer does


def _run_command() -> None:
    if sys.argv[1:2] == ["run"]:
        from clusterscape.cli.run import run_words

        sys.exit(run_words(sys.argv[2:]))
    from clusterscape.cli.entry import main as run_app

    run_app()


__all__ = ["main"]
