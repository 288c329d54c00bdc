"""A whole pretend cluster behind real protocols."""
