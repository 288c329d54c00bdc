"""One error shape everywhere: ``{"error": {"code", "message", "hint"}}``."""

import logging

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from clusterscape.errors import ClusterScapeError, ThrottledError, Trouble, WarmingUpError
from clusterscape.model.identity_fields import PublicText, ScopedText
from clusterscape.query.redaction.redactor import Redactor
from clusterscape.serve.identity.security_headers import secure
from clusterscape.serve.redaction import REDACTOR_KEY

log = logging.getLogger(__name__)


class Problem(BaseModel):
    """What was wrong and what to do."""

    code: PublicText
    message: ScopedText
    hint: ScopedText | None = None


class ProblemAnswer(BaseModel):
    """The body of every answer that is not a success."""

    error: Problem


class ProblemError(HTTPException):
    """A refusal that is raised while a body is read. FastAPI lets only its own kind of exception pass from there."""

    def __init__(
        self, status: int, code: str, message: str, hint: str | None, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(status, message, headers)
        self.code = code
        self.hint = hint


def problem(status: int, code: str, message: str, hint: str | None = None) -> JSONResponse:
    """A response in the one error shape."""
    return answer_problem(status, Problem(code=code, message=message, hint=hint))


def answer_problem(status: int, error: Problem) -> JSONResponse:
    """The same of what is described already."""
    return JSONResponse({"error": error.model_dump()}, status_code=status)


def describe_error(error: ClusterScapeError) -> Problem:
    """What is said of an error."""
    return Problem(code=error.code, message=error.public_message, hint=error.public_hint)


def problem_of(error: ClusterScapeError) -> JSONResponse:
    """The answer to an error."""
    return answer_problem(error.http_status, describe_error(error))


def answer_refusal(error: ProblemError) -> JSONResponse:
    """The answer to a refusal."""
    answer = problem(error.status_code, error.code, str(error.detail), error.hint)
    answer.headers.update(error.headers or {})
    return answer


def install_problem_handlers(app: FastAPI, strictest: Redactor | None) -> None:
    """Every error leaves in the one shape, redacted; by ``strictest`` where it is not known yet who asks."""

    def redact(request: Request, error: Problem) -> Problem:
        redactor: Redactor | None = request.scope.get(REDACTOR_KEY, strictest)
        return error if redactor is None else redactor.redact(error)

    failing = Trouble(log, "a request failed", "requests succeed again")

    @app.exception_handler(ClusterScapeError)
    async def ours(request: Request, error: ClusterScapeError) -> JSONResponse:
        if error.http_status >= 500 and not isinstance(error, WarmingUpError):  # the answer does not say where
            failing.tell(error)
        answer = answer_problem(error.http_status, redact(request, describe_error(error)))
        if isinstance(error, ThrottledError | WarmingUpError):
            answer.headers["Retry-After"] = str(error.retry_after_s)
        return answer

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        message, hint = f"parameter `{where}`: {first['msg']}", "GET /openapi.json says what is allowed."
        return answer_problem(422, redact(request, Problem(code="query", message=message, hint=hint)))

    @app.exception_handler(ProblemError)
    async def refused(_: Request, error: ProblemError) -> JSONResponse:
        return answer_refusal(error)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        code = {401: "access", 403: "forbidden", 404: "not_found", 405: "method"}.get(error.status_code, "http")
        return answer_problem(error.status_code, redact(request, Problem(code=code, message=str(error.detail))))

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        answer = problem(500, "internal", "The server failed on this request.", "Its log has the details.")
        secure(answer.headers, is_https=False, is_personal=True)  # it is made outside of the gate
        return answer
