"""Real servers for integration tests, started from installed packages."""
