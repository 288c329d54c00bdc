"""Signing in on the page: the static token becomes a cookie that scripts cannot read."""

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from clusterscape.errors import AccessError
from clusterscape.serve.auth import COOKIE, matches
from clusterscape.serve.state import State

router = APIRouter(prefix="/api/v1", tags=["session"])


class SignIn(BaseModel):
    """What the sign-in form sends."""

    token: str = Field(max_length=1000)


@router.post("/session", status_code=204)
def sign_in(form: SignIn, request: Request, response: Response, state: State) -> None:
    """Set the session cookie where the token is right."""
    if state.token is None or not matches(state.token, form.token):
        raise AccessError("that token is not right", hint="It is the server's setting server.token.")
    response.set_cookie(
        COOKIE, form.token, httponly=True, samesite="strict", secure=request.url.scheme == "https", path="/"
    )


@router.delete("/session", status_code=204)
def sign_out(response: Response) -> None:
    """Forget the session cookie."""
    response.delete_cookie(COOKIE, path="/")
