"""Text from strangers (names of jobs, comments, error texts) made safe for a terminal: control characters become visible.

Imports nothing of ours and nothing heavy: ``clusterscape run`` uses it, too.
"""

import re

# C0 with tab and newline, DEL, C1, marks and overrides of text direction, line separators, halves of surrogate pairs.
_UNSAFE = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE_SIGN = re.compile(f"[{_UNSAFE}]")
_UNSAFE_IN_LINES = re.compile(f"(?!\n)[{_UNSAFE}]")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def one_line(text: str) -> str:
    """``text`` with every control character written as an escape such as ``\\x1b`` or ``\\n``."""
    return _UNSAFE_SIGN.sub(_escaped, text)


def plain_lines(text: str) -> str:
    """The same for text of several lines: newlines stay."""
    return _UNSAFE_IN_LINES.sub(_escaped, text)


def safe_json(document: str) -> str:
    """A JSON document with the same meaning that has no control character but its own newlines."""
    return _UNSAFE_IN_LINES.sub(lambda sign: f"\\u{ord(sign[0]):04x}", document)


def _escaped(sign: re.Match[str]) -> str:
    code = ord(sign[0])
    return _NAMED.get(sign[0]) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
