"""The ``clusterscape`` command: one file per sub-command; imported by nothing."""

import sys


def main() -> None:
    """The command. What stands in front of a user's own script starts without the rest."""
    if sys.argv[1:2] == ["run"]:
        from clusterscape.cli.run import run_words

        sys.exit(run_words(sys.argv[2:]))
    from clusterscape.cli.entry import main as whole

    whole()


__all__ = ["main"]
