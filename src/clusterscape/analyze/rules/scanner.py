"""The tokenizer of rule text, with error positions. The grammar is in ``reading``."""

import json
import re
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

from clusterscape.analyze.rules.vocabulary import UNIT_WORDS, find_closest, parse_decimal
from clusterscape.errors import RuleSyntaxError

_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_UNIT = re.compile(r"%|°?[A-Za-z]+(?:/s(?![A-Za-z]))?")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'', re.DOTALL)
_JUNK = re.compile(r"\w+|\S")
_UNIT_WORDS = frozenset(unit.word.lower() for units in UNIT_WORDS.values() for unit in units) | {"%"}


class Expected(StrEnum):
    """What the parser expects at a position; completion offers it."""

    CONDITION = "condition"
    METRIC = "metric"
    STATISTIC = "statistic"
    SIDE = "side"
    OPERATOR = "operator"
    VALUE = "value"
    DURATION = "duration"
    CONTINUATION = "continuation"
    FILTER = "filter"
    NAME = "name"
    QUANTIFIER = "quantifier"
    AMOUNT = "amount"
    OTHER = "other"


class ExpectedError(RuleSyntaxError):
    """A syntax error with what was expected instead."""

    expected: Expected = Expected.OTHER


class TextPiece(NamedTuple):
    """A piece of the text with its position."""

    text: str
    start: int
    end: int


class Scanner:
    """A position in a text. ``take_*`` advances if it matches; ``error`` builds an exception for the caller to raise."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip_space(self) -> int:
        """Advance to the next non-space character and return its position."""
        match = _SPACE.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        return self.at

    @property
    def is_at_end(self) -> bool:
        """Whether only whitespace is left."""
        return self.skip_space() == len(self.text)

    def take(self, pattern: re.Pattern[str], *, is_adjacent: bool = False) -> TextPiece | None:
        """The match at the current position; None if there is none."""
        start = self.at if is_adjacent else self.skip_space()
        match = pattern.match(self.text, start)
        if match is None or match.end() == start:
            return None
        self.at = match.end()
        return TextPiece(match.group(), start, match.end())

    def peek_word(self) -> str:
        """The next word in lower case, or an empty string."""
        match = _WORD.match(self.text, self.skip_space())
        return match.group().lower() if match else ""

    def take_word(self) -> TextPiece | None:
        """The next word."""
        return self.take(_WORD)

    def take_words(self, *words: str) -> bool:
        """Advance over all of ``words``, or not at all."""
        back = self.at
        for word in words:
            if self.peek_word() != word:
                self.at = back
                return False
            self.take_word()
        return True

    def take_number(self, *, is_adjacent: bool = False) -> tuple[Decimal, TextPiece] | None:
        """The next number; raises if it is too large."""
        piece = self.take(_NUMBER, is_adjacent=is_adjacent)
        if piece is None:
            return None
        number = parse_decimal(piece.text)
        if number is None:
            raise self.error("this number is too large", piece)
        return number, piece

    def take_unit(self) -> TextPiece:
        """The unit after a number, with or without a space; an empty piece if the next word is not a unit."""
        is_touching = self.at < len(self.text) and not self.text[self.at].isspace()
        back = self.at
        piece = self.take(_UNIT)
        if piece and (is_touching or piece.text.lower() in _UNIT_WORDS):
            return piece
        self.at = back
        return TextPiece("", back, back)

    def take_quoted(self) -> TextPiece | None:
        """A name in quotes, unescaped."""
        piece = self.take(_QUOTED)
        if piece is None:
            return None
        if piece.text[0] == "'":
            return piece._replace(text=piece.text[1:-1])
        try:
            return piece._replace(text=str(json.loads(piece.text, strict=False)))
        except ValueError:
            raise self.error("invalid escape sequence in quotes; write a backslash as `\\\\`", piece) from None

    def error(
        self,
        message: str,
        piece: TextPiece | None = None,
        *,
        expected: Expected = Expected.OTHER,
        choices: tuple[str, ...] = (),
        suggestion: str | None = None,
        hint: str | None = None,
    ) -> ExpectedError:
        """An error at ``piece``, or at the next token; suggests the closest of ``choices``."""
        if piece is None:
            start = self.skip_space()
            match = _JUNK.match(self.text, start)
            piece = TextPiece(match.group(), start, match.end()) if match else TextPiece("", start, start)
        if suggestion is None and piece.text:
            suggestion = find_closest(piece.text, choices)
        actual = f", not `{_shorten(piece.text)}`" if choices and piece.text else ""
        at_end = " but the rule ends here" if choices and not piece.text else ""
        error = ExpectedError(
            f"column {piece.start + 1}: {message}{actual}{at_end}",
            text=self.text,
            column=piece.start + 1,
            length=piece.end - piece.start,
            suggestion=suggestion,
            hint=hint,
        )
        error.expected = expected
        return error


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"
