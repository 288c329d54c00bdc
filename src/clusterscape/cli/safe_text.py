"""Escapes control characters in untrusted text (job names, comments, error messages) for a terminal.

Light to import: ``clusterscape run`` uses it, too.
"""

import re
import sys

# C0 including tab and newline, DEL, C1, bidirectional controls, line separators, surrogates.
_UNSAFE = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE_CHARACTER = re.compile(f"[{_UNSAFE}]")
_UNSAFE_IN_LINES = re.compile(f"(?!\n)[{_UNSAFE}]")
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def one_line(text: str) -> str:
    """``text`` with every control character written as an escape such as ``\\x1b`` or ``\\n``."""
    return _UNSAFE_CHARACTER.sub(_escape, text)


def plain_lines(text: str) -> str:
    """Like ``one_line``, but newlines stay."""
    return _UNSAFE_IN_LINES.sub(_escape, text)


def safe_json(document: str) -> str:
    """An equivalent JSON document without control characters, except newlines."""
    return _UNSAFE_IN_LINES.sub(lambda match: f"\\u{ord(match[0]):04x}", document)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return _SHORT_ESCAPES.get(match[0]) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def warn_of_old_server() -> None:
    """Say on standard error that ``--server`` has another name now."""
    sys.stderr.write("clusterscape: --server is now --url; the old name still works\n")
