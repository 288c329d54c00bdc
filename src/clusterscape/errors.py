"""All errors that ClusterScape raises on purpose, with a message and a hint; and logging of repeated errors.

ClusterScapeError            exit 1, HTTP 500
├── ConfigError              exit 2: a setting is unknown, of the wrong type or out of range
├── StoreError               a store cannot be opened, read or written
│   ├── StoreVersionError    written by a newer version: refused, untouched
│   ├── StoreFullError       no space left: writing pauses, reading goes on
│   ├── QuotaError           HTTP 507: the quota of uploads is used up
│   └── StoreBusyError       another process holds the embedded store
├── SourceError              a source did not respond, or its response is invalid
│   └── RefusedError         a server refuses a request permanently
├── NotFoundError            HTTP 404: no such workload, node, unit
├── QueryError               HTTP 422: an invalid query
│   ├── RuleSyntaxError      exit 2: a rule's text is wrong at a column
│   ├── RuleDocumentError    exit 2: a rule's JSON or form is wrong at a path
│   ├── UploadStalledError   HTTP 408: the body of an upload did not arrive in time
│   └── TooLargeError        HTTP 413: a file or list is larger than a limit of the settings
├── WarmingUpError           HTTP 503: the server has just started and compiles what the answer needs
├── GoneError                HTTP 410: it was deleted, and is not accepted again
├── StoppedError             HTTP 409: a user stopped it before it was done
└── AccessError              HTTP 401: not authenticated
    ├── SignInError          HTTP 401: sign-in through a provider failed
    ├── ForbiddenError       HTTP 403: not permitted
    └── ThrottledError       HTTP 429: rate limit exceeded
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

    def __reduce__(self) -> "tuple[object, ...]":
        """Errors pass between processes whatever their constructors ask for."""
        return _restore, (type(self), self.args, self.__dict__)

    @property
    def public_message(self) -> str:
        """The message for clients, without paths of the server."""
        return hide_folders(self.message)

    @property
    def public_hint(self) -> str | None:
        """The hint for clients, without paths of the server."""
        return None if self.hint is None else hide_folders(self.hint)


def _restore(kind: type[ClusterScapeError], args: tuple[object, ...], fields: dict[str, object]) -> ClusterScapeError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error


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
    """The quota of uploads is used up. ``setting`` names the limit; collection continues."""

    code = "quota"
    http_status = 507

    def __init__(self, message: str, *, setting: str, hint: str = "") -> None:
        super().__init__(message, hint=f"{hint} The setting {setting} bounds this.".lstrip())
        self.setting = setting


class StoreBusyError(StoreError):
    """Another process holds the embedded store."""

    code = "store_busy"


class SourceError(ClusterScapeError):
    """A source did not respond, or its response is invalid."""

    code = "source"
    http_status = 502


class RefusedError(SourceError):
    """A server refuses a request permanently: a retry is of no use."""

    code = "refused"


class NotFoundError(ClusterScapeError):
    """The object does not exist."""

    code = "not_found"
    http_status = 404


class QueryError(ClusterScapeError):
    """An invalid query."""

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
        line = "".join(" " if character in "\r\n\t\v\f" else character for character in self.text)
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
    """A user stopped it before it was done."""

    code = "stopped"
    http_status = 409


class AccessError(ClusterScapeError):
    """The request is not authenticated."""

    code = "access"
    http_status = 401


class SignInError(AccessError):
    """Signing in through a provider failed. ``reason`` is stable: the page has words for each."""

    code = "sign_in"

    def __init__(self, message: str, *, reason: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class ForbiddenError(AccessError):
    """The user is not permitted to do this."""

    code = "forbidden"
    http_status = 403


class ThrottledError(AccessError):
    """Rate limit exceeded; ``retry_after_s`` says when to retry."""

    code = "throttled"
    http_status = 429

    def __init__(self, message: str, *, retry_after_s: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class Trouble:
    """Logs repeated attempts: the first failure, each different failure, and the recovery."""

    def __init__(self, log: logging.Logger, fails: str, works: str) -> None:
        """``fails``: "rules could not be judged"; ``works``: "rules are judged again"."""
        self._log = log
        self._fails = fails
        self._works = works
        self._last_message: str | None = None

    def tell(self, error: Exception) -> None:
        """Log a failure, unless it is the same as before. Unexpected errors are logged with a traceback."""
        text = error.message if isinstance(error, ClusterScapeError) else f"{type(error).__name__}: {error}"
        if self._last_message == text:
            return
        self._last_message = text
        if isinstance(error, ClusterScapeError):
            self._log.warning("%s: %s %s", self._fails, text, error.hint or "")
        else:
            self._log.error("%s: %s", self._fails, text, exc_info=error)

    def end(self) -> None:
        """Log the recovery after a failure."""
        if self._last_message is not None:
            self._last_message = None
            self._log.warning("%s", self._works)
