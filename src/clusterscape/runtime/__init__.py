"""A running server: builds its objects, runs its loops, and the processes beside it. Commands in ``cli/`` start it."""
