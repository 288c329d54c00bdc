"""Settings of the server: listen address, role, logging."""

from typing import Literal

from pydantic import Field

from clusterscape.settings.section import Section


class ServerSettings(Section):
    """Where the page and the API are served."""

    host: str = Field("127.0.0.1", description="Address to listen on; any but loopback needs a token or `auth.modes`.")
    port: int = Field(8321, ge=0, le=65535, description="Port to listen on; 0: any free port.")
    token: str | None = Field(
        None, min_length=16, repr=False, description="Static bearer token that every request must send."
    )
    role: Literal["all", "web", "collector"] = Field(
        "all",
        description="`web` only serves, `collector` only collects. Collectors that share a PostgreSQL elect one leader.",
    )
    compile_ahead: bool = Field(
        True,
        description="Compile numeric kernels at startup, in a separate process; otherwise each when it is first used.",
    )


class LogSettings(Section):
    """Logging to standard error."""

    format: Literal["text", "json"] = Field(
        "text", description="`text` for people; `json` for log collectors: one object per line."
    )
    level: Literal["debug", "info", "warning", "error"] = Field("info", description="Minimum level.")
