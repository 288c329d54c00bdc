"""Measures libraries against our own code of the same purpose, for docs/design/libraries.md.

Not part of ``make bench``: the libraries are not installed with ClusterScape. docs/design/libraries.md has the commands.
"""
