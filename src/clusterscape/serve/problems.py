"""One error shape everywhere: ``{"error": {"code", "message", "hint"}}``."""

import logging

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from clusterscape.errors import ClusterScapeError, ThrottledError, Trouble, WarmingUpError
from clusterscape.serve.identity.security_headers import secure

log = logging.getLogger(__name__)


class Problem(BaseModel):
    """What was wrong and what to do."""

    code: str
    message: str
    hint: str | None = None


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
    return JSONResponse({"error": {"code": code, "message": message, "hint": hint}}, status_code=status)


def problem_of(error: ClusterScapeError) -> JSONResponse:
    """The answer to an error."""
    return problem(error.http_status, error.code, error.public_message, error.public_hint)


def answer_problem(error: ProblemError) -> JSONResponse:
    """The answer to a refusal."""
    answer = problem(error.status_code, error.code, str(error.detail), error.hint)
    answer.headers.update(error.headers or {})
    return answer


def install_problem_handlers(app: FastAPI) -> None:
    """Every error leaves in the one shape."""
    failing = Trouble(log, "a request failed", "requests succeed again")

    @app.exception_handler(ClusterScapeError)
    async def ours(_: Request, error: ClusterScapeError) -> JSONResponse:
        if error.http_status >= 500 and not isinstance(error, WarmingUpError):  # the answer does not say where
            failing.tell(error)
        answer = problem_of(error)
        if isinstance(error, ThrottledError | WarmingUpError):
            answer.headers["Retry-After"] = str(error.retry_after_s)
        return answer

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        return problem(422, "query", f"parameter `{where}`: {first['msg']}", "GET /openapi.json says what is allowed.")

    @app.exception_handler(ProblemError)
    async def refused(_: Request, error: ProblemError) -> JSONResponse:
        return answer_problem(error)

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> JSONResponse:
        code = {401: "access", 403: "forbidden", 404: "not_found", 405: "method"}.get(error.status_code, "http")
        return problem(error.status_code, code, str(error.detail))

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        answer = problem(500, "internal", "The server failed on this request.", "Its log has the details.")
        secure(answer.headers, is_https=False, is_personal=True)  # it is made outside of the gate
        return answer
