"""The cards of jobs.

``advice``: what would have been enough, and how much sooner the job would have started.
``answers``: the shapes of answers.
``curves``: what a job used over its life, in few points.
``query``: the card, joined from records and samples.
``usage``: what a job used of its nodes, from samples.
"""

from clusterscape.query.jobs.query import JobQuery

__all__ = ["JobQuery"]
