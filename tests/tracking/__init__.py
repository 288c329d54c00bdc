"""Shared by tests of tracked runs: the command in front of real scripts, with a state folder of its own."""
