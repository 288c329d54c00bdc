"""Backtests of wait forecasts on job traces. The live queue does not use this."""
