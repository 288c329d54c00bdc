"""Security headers of every response: browsers then forbid foreign scripts, frames and content sniffing."""

from starlette.datastructures import MutableHeaders

# Only styles may be inline: the menus and dialogs of the page's UI toolkit insert a <style> while they are open.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)

ALWAYS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
HTTPS_ONLY = "max-age=31536000"


def secure(headers: MutableHeaders, *, is_https: bool, is_personal: bool) -> None:
    """Add the headers to a response. ``is_personal``: it depends on the viewer, so no cache may share it."""
    for name, value in ALWAYS.items():
        headers.setdefault(name, value)
    if is_https:
        headers.setdefault("Strict-Transport-Security", HTTPS_ONLY)
    if is_personal:
        headers.setdefault("Cache-Control", "no-store")
        headers.add_vary_header("Cookie")
        headers.add_vary_header("Authorization")
