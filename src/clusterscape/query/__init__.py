"""Answers named after what a view asks; the only reader of the stores."""
