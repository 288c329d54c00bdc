"""Follows ingest: keeps the statistics of every life, judges rules by them, keeps violations and tells of them."""
