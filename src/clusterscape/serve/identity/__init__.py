"""Authentication: passwords, sessions, API tokens, OpenID Connect, proxy headers, and the gate that every request passes.

Authorization (what a user may see or do) is the task of the routes and of ``query``.

``addresses``: the client's address and the requested host; forwarded headers count only from trusted proxies.
``audit``: which requests are written to the audit log, and as which action.
``caller``: the authenticated caller, the sign-in method and the client's address.
``gate``: the middleware that every request passes: the order of the checks.
``groups``: maps the groups that a provider or proxy reports to a role and projects.
``identity``: identifies the caller (``find_caller``) and signs users in.
``oidc``: sign-in with OpenID Connect.
``origins``: detects cross-site requests.
``passwords``: passwords of local accounts.
``security_headers``: headers that make browsers forbid foreign scripts, frames and content sniffing.
``sessions``: browser sessions: a random id in an HTTP-only cookie, its digest in the store.
``throttle``: rate limits of failed sign-ins, by address and account.
``tokens``: API tokens for scripts: shown once, stored as a digest; which requests each scope allows.
"""
