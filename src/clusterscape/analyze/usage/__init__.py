"""Usage of a cluster over any period: who held how many GPU-hours, what came of them, and what they cost. Pure.

``budgets``: what is left of budgets, and when they run out at the recent pace.
``calendar``: periods such as a month, and their days to years in a time zone.
``findings``: what a period shows, as sentences with their numbers.
``measured``: what held GPUs did, by their metrics.
``prices``: price lists with a history.
``sums``: sums over executions by user, project, partition and so on.
"""
