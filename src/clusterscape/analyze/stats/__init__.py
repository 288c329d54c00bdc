"""Statistics of metrics over lives: the contract rules are judged by, the exact form and the mergeable sketch.

``bins``: how each metric is counted into bins, and the error that follows.
``contract``: what rules are judged by.
``exact``: exact statistics from samples.
``exact_kernels``: compiled loops over samples kept as pieces of flat arrays.
``kernels``: compiled loops of the sketch: samples in, moments, bins, rings and runs out.
``sketch``: mergeable statistics of one metric over many lives, updated sample by sample.
``window_kernels``: compiled loops over rings, the last samples of each row as they came.
"""
