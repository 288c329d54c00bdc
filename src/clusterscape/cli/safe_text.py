"""Escapes control characters in untrusted text (job names, comments, error messages) for a terminal.

Light to import: ``clusterscape run`` uses it, too.
"""

import re
import sys

from clusterscape.model.safe_text import UNSAFE, escape_character, one_line

__all__ = ["one_line", "plain_lines", "safe_json", "warn_of_old_server"]

_UNSAFE_IN_LINES = re.compile(f"(?!\n)[{UNSAFE}]")
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def plain_lines(text: str) -> str:
    """Like ``one_line``, but newlines stay."""
    return _UNSAFE_IN_LINES.sub(escape_character, text)


def safe_json(document: str) -> str:
    """An equivalent JSON document without control characters, except newlines."""
    return _UNSAFE_IN_LINES.sub(lambda match: f"\\u{ord(match[0]):04x}", document)


def warn_of_old_server() -> None:
    """Say on standard error that ``--server`` has another name now."""
    sys.stderr.write("clusterscape: --server is now --url; the old name still works\n")
