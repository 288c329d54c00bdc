"""Forecasts of waits on one machine without nodes, for backtests on job traces. Importing this does not import numba."""

from clusterscape.simulate.backtest.forecasting import Futures, MachineState, forecast_waits, plan_waits

__all__ = ["Futures", "MachineState", "forecast_waits", "plan_waits"]
