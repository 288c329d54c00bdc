"""Order and backfill rules, one file each. A policy sees a Turn and starts jobs through it."""
