"""Pure analysis: columns in, columns or findings out. No I/O, no clock, no plotting."""
