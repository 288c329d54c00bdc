"""Pure analysis: columns in, columns or findings out. No I/O, no clock, no plotting.

``diagnose``: which GPU of a run is odd, when, and what the odd ones share.
``hang``: who hangs in a run that makes no steps, where and why.
``jobcard``: the card of a job: shares of CPU, memory and GPUs, roundings and notes.
``jobs``: what jobs of job traces are like, and predictions of run times and waits.
``periods``: sums of the jobs of users and projects over days.
``rules``: the rule language and judging by it.
``runs``: tracked runs compared.
``stats``: statistics of metrics over lives.
``usage``: sums of accounting over any period, prices, budgets, reconciliation.
``trace``: why a distributed step is slow, what if, and what the page draws of a trace.
"""
