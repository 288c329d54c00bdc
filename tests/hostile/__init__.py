"""Hostile input and its cost: code runs in its own process, whose memory is measured."""
