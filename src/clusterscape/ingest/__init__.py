"""Validates, normalises, deduplicates and batches what collectors observe; the only writer of the store."""
