"""Settings of the server itself: where it listens, what it logs."""

from typing import Literal

from pydantic import Field

from clusterscape.settings.section import Section


class ServerSettings(Section):
    """Where the page and the API are served."""

    host: str = Field(
        "127.0.0.1", description="Address to listen on; another than loopback needs a token or `auth.modes`."
    )
    port: int = Field(8321, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    token: str | None = Field(
        None, min_length=16, repr=False, description="Static token that every request must carry."
    )
    role: Literal["all", "web", "collector"] = Field(
        "all",
        description="`web` only serves, `collector` only collects; of all that may collect over one PostgreSQL, one does.",
    )
    compile_ahead: bool = Field(
        True,
        description="Compile after a start what answers need, in a process of its own; else each part when it is first used.",
    )


class LogSettings(Section):
    """What the server writes to standard error."""

    format: Literal["text", "json"] = Field(
        "text", description="`text` for people; `json` for collectors of logs: one object a line."
    )
    level: Literal["debug", "info", "warning", "error"] = Field("info", description="The least that is written.")
