"""The rule language and judging by it: text, JSON and form fields ↔ records; statistics of lives → verdicts."""
