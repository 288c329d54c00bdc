"""Small clusters with known contents, in real stores."""
