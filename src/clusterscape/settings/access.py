"""Settings of authentication, roles and visibility."""

import ipaddress
import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from clusterscape.model.access import Role
from clusterscape.settings.section import Section


class OidcSettings(Section):
    """An OpenID Connect provider: Keycloak, Entra, Okta, Google, GitLab, Dex and others."""

    issuer: str = Field("", description="Issuer URL, exactly as in the provider's `/.well-known/openid-configuration`.")
    client_id: str = Field("", description="Client ID of ClusterScape at the provider.")
    client_secret: str | None = Field(
        None, repr=False, description="Client secret; without one, a public client. PKCE is always used."
    )
    provider_name: str = Field("single sign-on", description="Name on the button: Sign in with …")
    scopes: tuple[str, ...] = Field(("openid", "profile"), description="Requested scopes; `openid` is always added.")
    username_claim: str = Field("preferred_username", description="Claim with the user name, as in the scheduler.")
    name_claim: str = Field("name", description="Claim with the display name.")
    groups_claim: str = Field(
        "groups", description="Claim with the groups; dots select nested objects: `realm_access.roles`."
    )
    timeout_s: float = Field(10.0, gt=0, description="Request timeout, seconds.")


class ProxySettings(Section):
    """Headers that a trusted reverse proxy sets after it has authenticated the user."""

    user_header: str = Field("X-Remote-User", min_length=1, description="Header with the user name.")
    groups_header: str = Field("X-Remote-Groups", min_length=1, description="Header with the groups, comma-separated.")
    name_header: str = Field("X-Remote-Name", min_length=1, description="Header with the display name.")


class AuthSettings(Section):
    """Authentication: ways to sign in, roles, sessions; see the [guide](../guide/access.md)."""

    modes: tuple[Literal["local", "oidc", "proxy"], ...] = Field(
        (),
        description="Ways to sign in, in addition to `server.token`: `local` accounts, `oidc`, headers of a `proxy`. If empty "
        "and without a token, no sign-in is needed, and the server listens on loopback only.",
    )
    public_url: str | None = Field(
        None,
        pattern=r"^https?://[^/]+$",
        description="Public URL of the page, such as https://gpus.example.org; with https, cookies are marked secure.",
    )
    trusted_proxies: tuple[str, ...] = Field(
        (), description="Addresses or networks of reverse proxies whose forwarded headers are trusted."
    )
    roles: dict[str, Role] = Field(
        {}, description="Role by group (OIDC, proxy): viewer, researcher, lead, operator, admin; the highest applies."
    )
    projects: dict[str, tuple[str, ...]] = Field({}, description="Projects by group, for leads.")
    projects_pattern: str | None = Field(
        None, description="Regular expression; the first capture group of a matching group name is a project."
    )
    default_role: Role | None = Field(
        Role.RESEARCHER, description="Role of users who are in none of those groups; `none`: they cannot sign in."
    )
    password_min_length: int = Field(12, ge=8, le=128, description="Minimum password length of local accounts.")
    session_idle_hours: float = Field(12.0, gt=0, description="Idle timeout of sessions, hours.")
    session_max_hours: float = Field(7 * 24.0, gt=0, description="Maximum lifetime of sessions, hours.")
    token_max_days: float = Field(365.0, gt=0, description="Maximum lifetime of API tokens, days.")
    login_attempts: int = Field(
        10,
        ge=1,
        description="Rate limit: failed sign-ins for one account from one address within `login_window_s`; five times as many "
        "per account and per address.",
    )
    login_window_s: float = Field(300.0, gt=0, description="Window of that rate limit, seconds.")
    audit_days: float = Field(365.0, gt=0, description="Retention of the audit log, days.")
    oidc: OidcSettings = OidcSettings()
    proxy: ProxySettings = ProxySettings()

    @field_validator("default_role", mode="before")
    @classmethod
    def _parse_none(cls, value: object) -> object:
        return None if value == "none" else value

    @field_validator("trusted_proxies")
    @classmethod
    def _check_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for network in value:
            ipaddress.ip_network(network, strict=False)
        return value

    @field_validator("projects_pattern")
    @classmethod
    def _check_pattern(cls, value: str | None) -> str | None:
        if value is not None and re.compile(value).groups != 1:
            raise ValueError("needs exactly one capture group, such as ^project-(.+)$")
        return value

    @model_validator(mode="after")
    def _check_modes(self) -> "AuthSettings":
        if "oidc" in self.modes and not (self.oidc.issuer and self.oidc.client_id):
            raise ValueError("mode oidc needs auth.oidc.issuer and auth.oidc.client_id")
        if "proxy" in self.modes and not self.trusted_proxies:
            raise ValueError("mode proxy needs auth.trusted_proxies: without it anybody could set the headers")
        return self


class SiteSettings(Section):
    """What users of this site see of each other; see the [guide](../guide/access.md#visibility)."""

    visibility: Literal["open", "private"] = Field(
        "open",
        description="`open`: everybody sees the users of all workloads; `private`: names of others are replaced by pseudonyms, "
        "except for operators, and for leads within their projects.",
    )
