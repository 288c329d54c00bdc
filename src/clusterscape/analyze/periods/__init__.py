"""Users and projects over a period: sums and ratios of their ended jobs. Pure.

``sums``: one row per user or project, from the summaries of jobs.
"""
