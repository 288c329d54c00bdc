"""The HTTP API, live updates and the built client."""
