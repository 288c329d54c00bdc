"""The HTTP API, live updates and the built client.

``admission``: the checks before every route: minimum role, compiled parts, a free slot for its cost.
``app``: the app factory: queries, live updates and the page behind one ASGI app.
``costs``: the cost of every route, and concurrency limits by cost.
``http_guard``: limits that all connections share; ends slow transfers.
``http_protocol``: limits of one connection: header size, time, pipelining.
``identity``: authentication: who sends a request.
``live``: one stream of version ticks; ``spread_s`` is the time over which clients are notified of a change.
``page``: the built client.
``problems``: one error shape; which part of an error is public.
``redaction``: every route redacts its response.
``refusals``: the response to each kind of refused request, with counts and logs.
``request_limits``: limits on request bodies and URLs.
``response_cache``: responses shared among viewers with the same scope (``SHARED``).
``routes``: one file per area of the API.
``state``: the objects that routes receive as dependencies.
``telemetry``: the server's own metrics.
``uploads``: reads bodies of uploads, with timeouts.
``wire``: Arrow, Parquet and compression of responses.
"""
