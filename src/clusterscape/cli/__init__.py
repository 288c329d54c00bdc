"""The clusterscape command: one file per sub-command; composes everything and is imported by nothing."""
