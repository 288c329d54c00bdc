"""Escapes control characters in untrusted text, such as names of jobs. Light to import."""

import re

# C0 including tab and newline, DEL, C1, bidirectional controls, line separators, surrogates.
UNSAFE = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE_CHARACTER = re.compile(f"[{UNSAFE}]")
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def one_line(text: str) -> str:
    """``text`` with every control character written as an escape such as ``\\x1b`` or ``\\n``."""
    return _UNSAFE_CHARACTER.sub(escape_character, text)


def escape_character(match: re.Match[str]) -> str:
    """The escape of one character."""
    code = ord(match[0])
    return _SHORT_ESCAPES.get(match[0]) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
