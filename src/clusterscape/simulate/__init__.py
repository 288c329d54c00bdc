"""Scheduling engines, policies and placements: jobs and faults in, schedules out; deterministic, without a clock.

``backtest``: forecasts on one homogeneous machine, for backtests on job traces.
``backtest_kernels``: its compiled loops.
``batch``: a batch queue on one homogeneous machine.
``choices``: finds placements and policies by their files.
``cluster``: a cluster of GPU nodes.
``faults``: outages of nodes.
``futures``: sampled run times and arrivals, for live forecasts and backtests.
``placements``: which nodes a job's GPUs come from, one file each.
``placing``: the interface of a placement.
``plan``: plans a queue on GPU nodes by time limits.
``plan_kernels``: its compiled loops.
``published``: results published about job traces.
``sweep``: many simulations of one trace; ``cli/sched_sweep.py`` runs them.
"""
