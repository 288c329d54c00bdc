"""Scheduling: job traces described, waits explained and foretold, policies tried. Each file answers one question."""
