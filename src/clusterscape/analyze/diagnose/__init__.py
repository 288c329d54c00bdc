"""Which GPU of a run is odd, when, and what the odd ones share: pure functions on (time × GPU) arrays, NaN where missing."""
