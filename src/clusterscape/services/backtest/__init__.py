"""Backtests of wait forecasts on job traces. The live queue does not use this.

``forecasting``: the queue at one moment of a trace, and its simulated futures.
``oracles``: forecasts that know true run times or true arrivals.
``running``: forecasts of sampled jobs of a trace, with checkpoints.
``report``: errors, coverage and shares of predictors.
"""
