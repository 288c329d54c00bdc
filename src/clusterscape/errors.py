"""Every error ClusterScape raises on purpose. Each says what was wrong (message) and what to do (hint); and how one that comes
back again and again is logged.

ClusterScapeError            exit 1, HTTP 500
├── ConfigError              exit 2: a setting is unknown, of the wrong type or out of range
├── StoreError               a store cannot be opened, read or written
│   ├── StoreVersionError    written by a newer version: refused, untouched
│   ├── StoreFullError       no space left: writing pauses, reading goes on
│   └── StoreBusyError       another process holds the embedded store
├── SourceError              a collector's source did not answer or answered nonsense
├── NotFoundError            HTTP 404: no such workload, node, unit
├── QueryError               HTTP 422: a question that cannot be answered as asked
│   ├── RuleSyntaxError      exit 2: a rule's text is wrong at a column
│   └── RuleDocumentError    exit 2: a rule's JSON or form is wrong at a path
├── StoppedError             HTTP 409: somebody stopped it before it was done
└── AccessError              HTTP 401: who asks is not known
    ├── SignInError          HTTP 401: a provider did not, or not rightly, say who they are
    ├── ForbiddenError       HTTP 403: they are known, and may not
    └── ThrottledError       HTTP 429: tried too often
"""

import logging


class ClusterScapeError(Exception):
    """The root. ``code`` is stable and machine-readable."""

    code = "internal"
    http_status = 500
    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ConfigError(ClusterScapeError):
    """A setting is unknown, of the wrong type or out of range."""

    code = "config"
    exit_code = 2


class StoreError(ClusterScapeError):
    """A store cannot be opened, read or written."""

    code = "store"
    http_status = 503


class StoreVersionError(StoreError):
    """The store was written by a newer version; it is left untouched."""

    code = "store_version"


class StoreFullError(StoreError):
    """No space left on the store's device."""

    code = "store_full"


class StoreBusyError(StoreError):
    """Another process holds the embedded store."""

    code = "store_busy"


class SourceError(ClusterScapeError):
    """A collector's source did not answer, or its answer made no sense."""

    code = "source"
    http_status = 502


class NotFoundError(ClusterScapeError):
    """There is no such thing."""

    code = "not_found"
    http_status = 404


class QueryError(ClusterScapeError):
    """A question that cannot be answered as asked."""

    code = "query"
    http_status = 422


class RuleSyntaxError(QueryError):
    """A rule's text is wrong. ``column`` counts from 1; ``length`` characters from there on are meant (0: the end)."""

    code = "rule_syntax"
    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        text: str,
        column: int,
        length: int,
        suggestion: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint or (f"Did you mean `{suggestion}`?" if suggestion else None))
        self.text = text
        self.column = column
        self.length = length
        self.suggestion = suggestion

    def render(self) -> str:
        """The text with a caret line below what is wrong."""
        line = "".join(" " if sign in "\r\n\t\v\f" else sign for sign in self.text)
        return f"{line}\n{' ' * (self.column - 1)}{'^' * max(1, self.length)}"


class RuleDocumentError(QueryError):
    """A rule's JSON or form is wrong. ``path`` leads to the field: ``expression.terms.0.metric``."""

    code = "rule_document"
    exit_code = 2

    def __init__(self, message: str, *, path: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.path = path


class StoppedError(ClusterScapeError):
    """Somebody stopped it before it was done."""

    code = "stopped"
    http_status = 409


class AccessError(ClusterScapeError):
    """Who asks is not known."""

    code = "access"
    http_status = 401


class SignInError(AccessError):
    """Signing in through a provider failed. ``reason`` is stable: the page has words for each."""

    code = "sign_in"

    def __init__(self, message: str, *, reason: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class ForbiddenError(AccessError):
    """Who asks is known, and may not."""

    code = "forbidden"
    http_status = 403


class ThrottledError(AccessError):
    """Tried too often; ``retry_after_s`` says when to try again."""

    code = "throttled"
    http_status = 429

    def __init__(self, message: str, *, retry_after_s: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class Trouble:
    """Logs what is tried again and again: once that it fails, again where it fails otherwise, once that it works again."""

    def __init__(self, log: logging.Logger, fails: str, works: str) -> None:
        """``fails``: "rules could not be judged"; ``works``: "rules are judged again"."""
        self._log = log
        self._fails = fails
        self._works = works
        self._told: str | None = None

    def tell(self, error: ClusterScapeError) -> None:
        """It failed."""
        if self._told != error.message:
            self._told = error.message
            self._log.warning("%s: %s %s", self._fails, error.message, error.hint or "")

    def end(self) -> None:
        """It worked."""
        if self._told is not None:
            self._told = None
            self._log.warning("%s", self._works)
