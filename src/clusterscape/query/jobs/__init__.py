"""The cards of jobs.

``answers``: the shapes of answers.
``curves``: what a job used over its life, in few points.
``query``: the card, joined from records and samples.
``usage``: what a job used of its nodes, from samples.
"""

from clusterscape.query.jobs.query import JobQuery

__all__ = ["JobQuery"]
