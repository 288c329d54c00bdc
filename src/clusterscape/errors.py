"""Every error ClusterScape raises on purpose. Each says what was wrong (message) and what to do (hint); and how one that comes
back again and again is logged.

ClusterScapeError            exit 1, HTTP 500
├── ConfigError              exit 2: a setting is unknown, of the wrong type or out of range
├── StoreError               a store cannot be opened, read or written
│   ├── StoreVersionError    written by a newer version: refused, untouched
│   ├── StoreFullError       no space left: writing pauses, reading goes on
│   ├── QuotaError           HTTP 507: uploads take as much as they may
│   └── StoreBusyError       another process holds the embedded store
├── SourceError              a collector's source did not answer or answered nonsense
│   └── RefusedError         a server refuses what it is sent, and would again
├── NotFoundError            HTTP 404: no such workload, node, unit
├── QueryError               HTTP 422: a question that cannot be answered as asked
│   ├── RuleSyntaxError      exit 2: a rule's text is wrong at a column
│   ├── RuleDocumentError    exit 2: a rule's JSON or form is wrong at a path
│   ├── UploadStalledError   HTTP 408: the body of an upload did not arrive in time
│   └── TooLargeError        HTTP 413: a file or list is larger than a limit of the settings
├── WarmingUpError           HTTP 503: the server has just started and compiles what the answer needs
├── GoneError                HTTP 410: it was deleted, and is not accepted again
├── StoppedError             HTTP 409: somebody stopped it before it was done
└── AccessError              HTTP 401: who asks is not known
    ├── SignInError          HTTP 401: a provider did not, or not rightly, say who they are
    ├── ForbiddenError       HTTP 403: they are known, and may not
    └── ThrottledError       HTTP 429: tried too often
"""

import logging
import re

_SERVER_PATH = re.compile(
    r"(?<![\w.:/~@%-])/(?!api/|openapi\.json|metrics\b|healthz\b)(?:[^\s/:'\"`,;()<>]+/)*([^\s/:'\"`,;()<>]+)"
)


def hide_folders(text: str) -> str:
    """``text`` with ``…/records.db`` in place of a file's whole path: where files are is for the log and the command line."""
    return _SERVER_PATH.sub(r"…/\1", text)


class ClusterScapeError(Exception):
    """The root. ``code`` is stable and machine-readable."""

    code = "internal"
    http_status = 500
    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def public_message(self) -> str:
        """For answers to clients: without folders of the server."""
        return hide_folders(self.message)

    @property
    def public_hint(self) -> str | None:
        """The same of the hint."""
        return None if self.hint is None else hide_folders(self.hint)


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


class QuotaError(StoreError):
    """Uploads take as much of the disk as they may. ``setting`` names the limit; collection goes on."""

    code = "quota"
    http_status = 507

    def __init__(self, message: str, *, setting: str, hint: str = "") -> None:
        super().__init__(message, hint=f"{hint} The setting {setting} bounds this.".lstrip())
        self.setting = setting


class StoreBusyError(StoreError):
    """Another process holds the embedded store."""

    code = "store_busy"


class SourceError(ClusterScapeError):
    """A collector's source did not answer, or its answer made no sense."""

    code = "source"
    http_status = 502


class RefusedError(SourceError):
    """A server refuses what it is sent, and would again: sending it once more is of no use."""

    code = "refused"


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


class UploadStalledError(QueryError):
    """The body of an upload did not arrive in time."""

    code = "stalled"
    http_status = 408


class WarmingUpError(ClusterScapeError):
    """The server has just started; ``retry_after_s`` says when to ask again."""

    code = "warming_up"
    http_status = 503

    def __init__(self, message: str, *, retry_after_s: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class TooLargeError(QueryError):
    """A file, or a list of what users keep, is larger than the settings allow. ``setting`` names the limit."""

    code = "too_large"
    http_status = 413

    def __init__(self, message: str, *, setting: str, hint: str = "") -> None:
        super().__init__(message, hint=f"{hint} The setting {setting} bounds this.".lstrip())
        self.setting = setting
        self.advice = hint


class GoneError(ClusterScapeError):
    """It was deleted, and is not accepted again."""

    code = "gone"
    http_status = 410


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

    def tell(self, error: Exception) -> None:
        """It failed. An error that is not ours is logged with its traceback."""
        text = error.message if isinstance(error, ClusterScapeError) else f"{type(error).__name__}: {error}"
        if self._told == text:
            return
        self._told = text
        if isinstance(error, ClusterScapeError):
            self._log.warning("%s: %s %s", self._fails, text, error.hint or "")
        else:
            self._log.error("%s: %s", self._fails, text, exc_info=error)

    def end(self) -> None:
        """It worked."""
        if self._told is not None:
            self._told = None
            self._log.warning("%s", self._works)
