"""``python -m clusterscape.cli`` is the ``clusterscape`` command."""

from clusterscape.cli import main

main()
