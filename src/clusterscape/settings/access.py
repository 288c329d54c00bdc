"""Settings of who may come in and what people see of one another."""

import ipaddress
import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from clusterscape.model.viewers import Role
from clusterscape.settings.section import Section


class OidcSettings(Section):
    """A provider that speaks OpenID Connect: Keycloak, Entra, Okta, Google, GitLab, Dex and others."""

    issuer: str = Field(
        "", description="Its address, exactly as it names itself; `/.well-known/openid-configuration` follows it."
    )
    client_id: str = Field("", description="Name that ClusterScape has at the provider.")
    client_secret: str | None = Field(
        None, repr=False, description="Its secret there; without one it is a public client (PKCE is always used)."
    )
    title: str = Field("single sign-on", description="The button says: Sign in with …")
    scopes: tuple[str, ...] = Field(("openid", "profile"), description="What is asked for; `openid` is always.")
    login_claim: str = Field("preferred_username", description="Claim that holds the user name the scheduler knows.")
    title_claim: str = Field("name", description="Claim that holds the name to show.")
    groups_claim: str = Field(
        "groups", description="Claim that holds the groups; dots lead into objects: `realm_access.roles`."
    )
    timeout_s: float = Field(10.0, gt=0, description="Seconds after which an answer counts as missing.")


class ProxySettings(Section):
    """Headers that a trusted reverse proxy sets after it has found out who asks."""

    user_header: str = Field("X-Remote-User", min_length=1, description="Holds the user name.")
    groups_header: str = Field("X-Remote-Groups", min_length=1, description="Holds the groups, with commas between.")
    title_header: str = Field("X-Remote-Name", min_length=1, description="Holds the name to show.")


class AuthSettings(Section):
    """Who may come in, and how they prove who they are; see the [guide](../guide/access.md)."""

    modes: tuple[Literal["local", "oidc", "proxy"], ...] = Field(
        (),
        description="Ways to sign in beside `server.token`: `local` accounts, `oidc`, headers of a `proxy`. Empty and without a "
        "token: nobody has to, on loopback only.",
    )
    public_url: str | None = Field(
        None,
        pattern=r"^https?://[^/]+$",
        description="Where people reach the page, such as https://gpus.example.org; with https cookies are for https only.",
    )
    trusted_proxies: tuple[str, ...] = Field(
        (), description="Addresses or networks of reverse proxies whose forwarded headers are believed."
    )
    roles: dict[str, Role] = Field(
        {}, description="Role by group (OIDC, proxy): viewer, researcher, lead, operator, admin; the greatest counts."
    )
    projects: dict[str, tuple[str, ...]] = Field({}, description="Projects by group, for leads.")
    projects_pattern: str | None = Field(
        None, description="Groups that match this regular expression name a project: its first part in parentheses."
    )
    default_role: Role | None = Field(
        Role.RESEARCHER, description="Role of whoever is in none of those groups; `none`: they may not come in."
    )
    password_min_length: int = Field(12, ge=8, le=128, description="Fewest characters of a local account's password.")
    session_idle_hours: float = Field(12.0, gt=0, description="A session that is not used for so long ends.")
    session_max_hours: float = Field(7 * 24.0, gt=0, description="A session ends after so long, used or not.")
    token_max_days: float = Field(365.0, gt=0, description="Longest life of an API token.")
    login_attempts: int = Field(
        10,
        ge=1,
        description="Wrong passwords for one account from one address within `login_window_s`; five times as many for an account "
        "or an address in all.",
    )
    login_window_s: float = Field(300.0, gt=0, description="Seconds after which a wrong password is forgotten.")
    audit_days: float = Field(365.0, gt=0, description="Days for which the audit log is kept.")
    oidc: OidcSettings = OidcSettings()
    proxy: ProxySettings = ProxySettings()

    @field_validator("default_role", mode="before")
    @classmethod
    def _no_role(cls, value: object) -> object:
        return None if value == "none" else value

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            ipaddress.ip_network(each, strict=False)
        return value

    @field_validator("projects_pattern")
    @classmethod
    def _has_a_part(cls, value: str | None) -> str | None:
        if value is not None and re.compile(value).groups != 1:
            raise ValueError("needs exactly one part in parentheses, such as ^project-(.+)$")
        return value

    @model_validator(mode="after")
    def _is_whole(self) -> "AuthSettings":
        if "oidc" in self.modes and not (self.oidc.issuer and self.oidc.client_id):
            raise ValueError("mode oidc needs auth.oidc.issuer and auth.oidc.client_id")
        if "proxy" in self.modes and not self.trusted_proxies:
            raise ValueError("mode proxy needs auth.trusted_proxies: without it anybody could set the headers")
        return self


class SiteSettings(Section):
    """What people of this site see of one another; see the [guide](../guide/access.md#visibility)."""

    visibility: Literal["open", "private"] = Field(
        "open",
        description="`open`: everybody sees whose each workload is; `private`: others' names are replaced by pseudonyms, but for "
        "operators, and for leads within their projects.",
    )
