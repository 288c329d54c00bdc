"""Who is asking: passwords, sessions, API tokens, OpenID Connect, proxy headers, and the gate that every request passes.

What somebody may see or do then is the matter of the routes and of query.
"""
