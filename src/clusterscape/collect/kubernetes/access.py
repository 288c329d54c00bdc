"""URL, TLS and credentials of the API server: from a kubeconfig, this pod's service account, or URL and token.

Sends nothing. Unsupported features of a kubeconfig raise SourceError with an alternative.
"""

import base64
import binascii
import os
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

from clusterscape.collect.kubernetes.tokens import CommandToken, FileToken, FixedToken, Token
from clusterscape.collect.kubernetes.values import Json, as_object, iter_objects, read_text
from clusterscape.errors import SourceError
from clusterscape.settings import KubernetesSettings

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class Access:
    """URL, TLS and token of an API server; ``tls`` is None for plain HTTP."""

    url: str
    tls: ssl.SSLContext | None
    token: Token


def open_access(settings: KubernetesSettings, *, service_account: Path = SERVICE_ACCOUNT) -> Access:
    """Build the access from the settings. Reads files; raises SourceError if that fails."""
    match settings.mode:
        case "kubeconfig":
            return _from_kubeconfig(settings.kubeconfig.expanduser(), settings.context)
        case "in_cluster":
            return _in_cluster(service_account)
        case _:
            if settings.url is None:
                raise SourceError(
                    "collect.kubernetes.url is not set", hint="Set it to https://HOST:6443, or choose another mode."
                )
            authorities = None if settings.ca_file is None else _read(settings.ca_file)
            token = FixedToken(settings.token.strip() if settings.token else None)
            return Access(settings.url.rstrip("/"), _make_tls(settings.url, authorities), token)


def _in_cluster(folder: Path) -> Access:
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (folder / "token").is_file():
        raise SourceError(
            "not running in a pod with a service account",
            hint='Run ClusterScape from deploy/kubernetes, or set collect.kubernetes.mode = "kubeconfig".',
        )
    url = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Access(url, _make_tls(url, _read(folder / "ca.crt")), FileToken(folder / "token"))


def _from_kubeconfig(path: Path, context_name: str | None) -> Access:
    import yaml  # 30 ms, and only where Kubernetes is read

    try:
        config = as_object(yaml.safe_load(_read(path)))
    except yaml.YAMLError as error:
        raise SourceError(f"{path} is not YAML: {error}", hint="Fix the line in the message.") from None
    name = context_name or read_text(config.get("current-context"))
    context = _entry(config, "contexts", "context", name, path)
    cluster = _entry(config, "clusters", "cluster", read_text(context.get("cluster")), path)
    user = _entry(config, "users", "user", read_text(context.get("user")), path)
    url = (read_text(cluster.get("server")) or "").rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise SourceError(f"{path}: the server of context {name!r} is not a URL", hint="Fix clusters[].cluster.server.")
    if cluster.get("proxy-url"):
        raise SourceError(
            f"{path}: proxy-url is not supported", hint="Use a kubeconfig that reaches the server directly."
        )
    authorities = _material(cluster, "certificate-authority", path)
    tls = _make_tls(
        url,
        authorities,
        certificate=_material(user, "client-certificate", path),
        key=_material(user, "client-key", path),
        server_name=read_text(cluster.get("tls-server-name")),
        is_checked=cluster.get("insecure-skip-tls-verify") is not True,
    )
    return Access(url, tls, _find_token(user, path))


def _entry(config: Json, section: str, inner: str, name: str | None, path: Path) -> dict[str, object]:
    names = [read_text(item.get("name")) for item in iter_objects(config.get(section))]
    for item in iter_objects(config.get(section)):
        if name is not None and read_text(item.get("name")) == name:
            return as_object(item.get(inner))
    available = ", ".join(entry_name for entry_name in names if entry_name) or "none"
    raise SourceError(
        f"{path} has no entry {name!r} among its {section}",
        hint=f"It has: {available}. Set collect.kubernetes.context to a context that `kubectl config get-contexts` shows.",
    )


def _find_token(user: Json, path: Path) -> Token:
    if user.get("auth-provider") or user.get("username") or user.get("password"):
        raise SourceError(
            f"{path}: this authentication method (auth-provider or password) is not supported",
            hint="Create a service account with deploy/kubernetes/clusterscape.yaml and use its token.",
        )
    file = read_text(user.get("tokenFile"))
    if file is not None:
        return FileToken(path.parent / file)
    if user.get("exec"):
        return CommandToken.from_kubeconfig(as_object(user["exec"]), path)
    return FixedToken(read_text(user.get("token")))


def _material(entry: Json, key: str, path: Path) -> bytes | None:
    """A certificate or key: inline, or in a file relative to the kubeconfig."""
    data = read_text(entry.get(f"{key}-data"))
    if data is not None:
        try:
            return base64.b64decode(data, validate=True)
        except binascii.Error:
            raise SourceError(f"{path}: {key}-data is not base64", hint="Create the kubeconfig again.") from None
    file = read_text(entry.get(key))
    return None if file is None else _read(path.parent / file)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SourceError(
            f"cannot read {path}: {error.strerror}", hint="Allow the user of ClusterScape to read it, or fix the path."
        ) from None


def _make_tls(
    url: str,
    authorities: bytes | None,
    *,
    certificate: bytes | None = None,
    key: bytes | None = None,
    server_name: str | None = None,
    is_checked: bool = True,
) -> ssl.SSLContext | None:
    if not url.startswith("https://"):
        return None
    if server_name is not None:
        raise SourceError("tls-server-name is not supported", hint="Use an address that the certificate names.")
    try:
        tls = ssl.create_default_context(cadata=None if authorities is None else authorities.decode("ascii"))
        if not is_checked:
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        if certificate is not None and key is not None:
            _load_client_certificate(tls, certificate, key)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise SourceError(
            f"a certificate or key for {url} is not PEM ({error})", hint="Create the kubeconfig or ca_file again."
        ) from None
    return tls


def _load_client_certificate(tls: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """OpenSSL loads these only from a file: a private temporary one, deleted at once."""
    with tempfile.NamedTemporaryFile(prefix="clusterscape-", suffix=".pem") as file:
        file.write(certificate + b"\n" + key)
        file.flush()
        tls.load_cert_chain(file.name)
