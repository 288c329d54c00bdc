"""A scheduling engine with policies and placements, seeded and without a clock of its own."""
