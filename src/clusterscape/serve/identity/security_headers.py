"""What every answer tells a browser to forbid: foreign scripts, frames, guesses of types."""

from starlette.datastructures import MutableHeaders

# Styles alone may stand inline: the menus and dialogs of the page's toolkit put a <style> into it while they are open.
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
    """Add them to an answer. ``is_personal``: it depends on who asks, and no cache may give it to another."""
    for name, value in ALWAYS.items():
        headers.setdefault(name, value)
    if is_https:
        headers.setdefault("Strict-Transport-Security", HTTPS_ONLY)
    if is_personal:
        headers.setdefault("Cache-Control", "no-store")
        headers.add_vary_header("Cookie")
        headers.add_vary_header("Authorization")
