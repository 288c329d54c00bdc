"""The one error shape: ``{"error": {"code", "message", "hint"}}``."""

import logging

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from clusterscape.errors import ClusterScapeError, ThrottledError, Trouble, WarmingUpError
from clusterscape.model.identity_fields import PublicText, ScopedText
from clusterscape.query.redaction.redactor import ScopeRedactor
from clusterscape.serve.identity.security_headers import secure
from clusterscape.serve.redaction import REDACTOR_KEY

log = logging.getLogger(__name__)


class Problem(BaseModel):
    """What went wrong and what to do."""

    code: PublicText
    message: ScopedText
    hint: ScopedText | None = None


class ProblemAnswer(BaseModel):
    """The body of every error response."""

    error: Problem


class ProblemError(HTTPException):
    """A refusal raised while a body is read. FastAPI passes on only HTTPException from there."""

    def __init__(
        self, status: int, code: str, message: str, hint: str | None, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(status, message, headers)
        self.code = code
        self.hint = hint


def problem(status: int, code: str, message: str, hint: str | None = None) -> JSONResponse:
    """An error response."""
    return problem_response(status, Problem(code=code, message=message, hint=hint))


def problem_response(status: int, error: Problem) -> JSONResponse:
    """The response to a ``Problem``."""
    return JSONResponse({"error": error.model_dump()}, status_code=status)


def to_problem(error: ClusterScapeError) -> Problem:
    """The public part of an error."""
    return Problem(code=error.code, message=error.public_message, hint=error.public_hint)


def error_response(error: ClusterScapeError) -> JSONResponse:
    """The response to an error."""
    return problem_response(error.http_status, to_problem(error))


def refusal_response(error: ProblemError) -> JSONResponse:
    """The response to a refusal."""
    response = problem(error.status_code, error.code, str(error.detail), error.hint)
    response.headers.update(error.headers or {})
    return response


def install_problem_handlers(app: FastAPI, strictest: ScopeRedactor | None) -> None:
    """Send every error in the one shape, redacted; by ``strictest`` if the viewer is not known yet."""

    def redact(request: Request, error: Problem) -> Problem:
        redactor: ScopeRedactor | None = request.scope.get(REDACTOR_KEY, strictest)
        return error if redactor is None else redactor.redact(error)

    failing = Trouble(log, "a request failed", "requests succeed again")

    @app.exception_handler(ClusterScapeError)
    async def ours(request: Request, error: ClusterScapeError) -> JSONResponse:
        if error.http_status >= 500 and not isinstance(error, WarmingUpError):  # the response does not say where
            failing.tell(error)
        response = problem_response(error.http_status, redact(request, to_problem(error)))
        if isinstance(error, ThrottledError | WarmingUpError):
            response.headers["Retry-After"] = str(error.retry_after_s)
        return response

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        message, hint = f"parameter `{where}`: {first['msg']}", "GET /openapi.json lists the allowed values."
        return problem_response(422, redact(request, Problem(code="query", message=message, hint=hint)))

    @app.exception_handler(ProblemError)
    async def refused(_: Request, error: ProblemError) -> JSONResponse:
        return refusal_response(error)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        code = {401: "access", 403: "forbidden", 404: "not_found", 405: "method"}.get(error.status_code, "http")
        return problem_response(error.status_code, redact(request, Problem(code=code, message=str(error.detail))))

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        response = problem(500, "internal", "The server failed on this request.", "See the server's log for details.")
        secure(response.headers, is_https=False, is_personal=True)  # it does not pass the gate
        return response
