"""Lengths of time, in the unit that each name ends with. Defined once; ``tests/unit/model/test_shared_names.py`` checks it."""

MINUTE_S = 60
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S
WEEK_S = 7 * DAY_S

MINUTE_MS = 1000 * MINUTE_S
HOUR_MS = 1000 * HOUR_S
DAY_MS = 1000 * DAY_S
