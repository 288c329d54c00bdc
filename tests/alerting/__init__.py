"""Turns of violations for tests of alerts, and endpoints that receive them."""
