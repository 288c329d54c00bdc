"""``python -m clusterscape.cli`` is the ``clusterscape`` command."""

from clusterscape.cli.entry import main

main()
