"""Validates, normalizes, deduplicates and batches what collectors observe; the only writer of the store."""
