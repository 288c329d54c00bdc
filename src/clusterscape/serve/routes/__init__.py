"""One file per area of the API."""
