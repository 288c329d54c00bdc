"""Parses the clauses after a rule's conditions: what it applies to, from when on, and what it reports.

clause = "for" filter name { "," name } | "for" ( "mine" | "all" ) | "after" duration
       | "for every" ( "GPU" | "node" | "source" | "user" | "project" )
       | "with" [ "at least" ] count ( "samples" | "GPUs" )
       | "on" ( "each GPU" | "any GPU" | "all GPUs" | [ "at least" ] percent "of GPUs" )
"""

import re
from collections.abc import Callable
from decimal import Decimal

from clusterscape.analyze.rules.checking import UNSUPPORTED_CLAUSES
from clusterscape.analyze.rules.scanner import Expected, Scanner, TextPiece
from clusterscape.analyze.rules.writing import BARE_NAME, CLAUSE_WORDS, SUBJECT_WORDS
from clusterscape.model.rules import Quantifier, RuleScope, Subject, standard_scope

SUBJECTS = {
    "gpu": Subject.GPUS,
    "node": Subject.NODES,
    "source": Subject.SOURCES,
    "user": Subject.USERS,
    "project": Subject.PROJECTS,
}
FILTER_WORDS = (
    *("user", "project", "partition", "machine type", "name", "mine", "all"),
    *("every GPU", "every node", "every source", "every user", "every project"),
)
QUANTIFIER_WORDS = {"each": Quantifier.EACH, "any": Quantifier.ANY, "all": Quantifier.ALL}
_FIELDS = {"user": "users", "project": "projects", "partition": "partitions", "name": "names", "workload": "names"}
_COMMA = re.compile(r",")
_PERCENT = re.compile(r"%")
_COUNT = re.compile(r"\d{1,9}(?![\d.])", re.ASCII)


def read_scope(scanner: Scanner, take_duration_ms: Callable[[], int], *, me: str | None) -> RuleScope:
    """Parse clauses up to the end or to the first word that does not start a clause."""
    return _ScopeReader(scanner, take_duration_ms, me).read()


class _ScopeReader:
    def __init__(self, scanner: Scanner, take_duration_ms: Callable[[], int], me: str | None) -> None:
        self._scanner = scanner
        self._take_duration_ms = take_duration_ms
        self._me = me
        self._names: dict[str, tuple[str, ...]] = {}
        self._numbers: dict[str, int] = {}
        self._quantifier: tuple[Quantifier, float | None] | None = None
        self._subject = Subject.WORKLOADS
        self._places: dict[str, TextPiece] = {}  # positions of clauses that not every subject supports

    def read(self) -> RuleScope:
        readers = {
            "for": self._read_filter,
            "after": self._read_age,
            "with": self._read_minimum,
            "on": self._read_quantifier,
        }
        while (word := self._scanner.peek_word()) in readers:
            self._scanner.skip_space()
            piece = self._scanner.take_word()
            assert piece is not None
            readers[word](piece)
        self._check_subject()
        quantifier, share = self._quantifier or (Quantifier.EACH, None)
        standard = standard_scope(self._subject)
        return RuleScope(
            users=self._names.get("users", ()),
            projects=self._names.get("projects", ()),
            partitions=self._names.get("partitions", ()),
            machine_types=self._names.get("machine_types", ()),
            names=self._names.get("names", ()),
            min_age_ms=self._numbers.get("age", standard.min_age_ms),
            min_samples=self._numbers.get("samples", standard.min_samples),
            min_gpus=self._numbers.get("gpus", standard.min_gpus),
            quantifier=quantifier,
            share=share,
            subject=self._subject,
        )

    def _check_subject(self) -> None:
        for field, piece in self._places.items():
            if field in UNSUPPORTED_CLAUSES[self._subject]:
                message = f"{SUBJECT_WORDS[self._subject]} has no {UNSUPPORTED_CLAUSES[self._subject][field]}"
                raise self._scanner.error(message, piece, hint="Remove this clause, or apply the rule to workloads.")

    def _read_subject(self, piece: TextPiece) -> None:
        word = self._scanner.peek_word().removesuffix("s")
        if word not in SUBJECTS:
            message = "expected `GPU`, `node`, `source`, `user` or `project`"
            choices = ("GPU", "node", "source", "user", "project")
            raise self._scanner.error(message, expected=Expected.FILTER, choices=choices)
        self._scanner.take_word()
        if self._subject is not Subject.WORKLOADS:
            raise self._scanner.error("`for every` occurs twice", piece)
        self._subject = SUBJECTS[word]

    def _read_filter(self, piece: TextPiece) -> None:
        if self._scanner.take_words("every"):
            self._read_subject(piece)
            return
        if self._scanner.take_words("all") or self._scanner.take_words("everyone"):
            return
        if self._scanner.take_words("mine") or self._scanner.take_words("me"):
            if self._me is None:
                raise self._scanner.error(
                    "nobody is signed in, so `mine` has no meaning", piece, hint="Write `for user NAME`."
                )
            self._set_names("users", (self._me,), piece)
            return
        field = self._take_field()
        names = [self._read_name()]
        while self._scanner.take(_COMMA):
            names.append(self._read_name())
        self._set_names(field, tuple(names), piece)

    def _take_field(self) -> str:
        for first in ("machine", "machines"):
            for second in ("type", "types"):
                if self._scanner.take_words(first, second):
                    return "machine_types"
        if self._scanner.take_words("machine_type"):
            return "machine_types"
        word = self._scanner.peek_word()
        singular = word.removesuffix("s")
        if singular not in _FIELDS:
            message = "expected a filter: `user`, `project`, `partition`, `machine type`, `name` or `mine`"
            raise self._scanner.error(message, expected=Expected.FILTER, choices=FILTER_WORDS)
        self._scanner.take_word()
        return _FIELDS[singular]

    def _read_name(self) -> str:
        quoted = self._scanner.take_quoted()
        if quoted is not None:
            if not quoted.text:
                raise self._scanner.error("a name must not be empty", quoted)
            return quoted.text
        back = self._scanner.at
        bare = self._scanner.take(BARE_NAME)
        if bare is None or bare.text.lower() in CLAUSE_WORDS:
            self._scanner.at = back
            message = "expected a name; use quotes if it has spaces or is a keyword"
            raise self._scanner.error(message, expected=Expected.NAME)
        return bare.text

    def _set_names(self, field: str, names: tuple[str, ...], piece: TextPiece) -> None:
        if field in self._names:
            raise self._scanner.error(
                f"{field.replace('_', ' ')} occur twice", piece, hint="Join them: `for user a, b`."
            )
        self._names[field] = names
        self._places[field] = piece

    def _set_number(self, key: str, number: int, piece: TextPiece) -> None:
        if key in self._numbers:
            raise self._scanner.error("this clause occurs twice", piece)
        self._numbers[key] = number
        self._places[key] = piece

    def _read_age(self, piece: TextPiece) -> None:
        self._set_number("age", self._take_duration_ms(), piece)

    def _read_minimum(self, piece: TextPiece) -> None:
        self._scanner.take_words("at", "least")
        count = self._scanner.take(_COUNT)
        if count is None or int(count.text) < 1:
            raise self._scanner.error("expected a whole number of at least 1", count, expected=Expected.AMOUNT)
        for words, key in (
            (("sample", "samples"), "samples"),
            (("gpu", "gpus"), "gpus"),
        ):
            if any(self._scanner.take_words(word) for word in words):
                self._set_number(key, int(count.text), piece)
                return
        raise self._scanner.error("expected `samples` or `GPUs`", expected=Expected.AMOUNT, choices=("samples", "GPUs"))

    def _read_quantifier(self, piece: TextPiece) -> None:
        if self._quantifier is not None:
            raise self._scanner.error("`on` occurs twice", piece)
        self._places["blame"] = piece
        word = self._scanner.peek_word()
        if word in QUANTIFIER_WORDS:
            self._scanner.take_word()
            self._quantifier = QUANTIFIER_WORDS[word], None
        else:
            self._quantifier = Quantifier.SHARE, self._read_share()
        if not (self._scanner.take_words("gpu") or self._scanner.take_words("gpus")):
            raise self._scanner.error("expected `GPU`", expected=Expected.QUANTIFIER, choices=("GPU", "GPUs"))

    def _read_share(self) -> float:
        self._scanner.take_words("at", "least")
        number_piece = self._scanner.take_number()
        if number_piece is None:
            message = "expected `each GPU`, `any GPU`, `all GPUs` or a share such as `50% of GPUs`"
            raise self._scanner.error(message, expected=Expected.QUANTIFIER, choices=(*QUANTIFIER_WORDS, "50%"))
        number, piece = number_piece
        if self._scanner.take(_PERCENT) is None:
            raise self._scanner.error("expected `%`", expected=Expected.QUANTIFIER)
        share = float(number / Decimal(100))
        if not 0 < share <= 1:
            raise self._scanner.error("a share of GPUs must be above 0% and at most 100%", piece)
        if not self._scanner.take_words("of"):
            raise self._scanner.error("expected `of GPUs`", expected=Expected.QUANTIFIER, choices=("of",))
        self._scanner.take_words("the")
        return share
