"""Tracked runs compared: which executed together, baselines, repeats, and lines over time, step or epoch. Pure."""
