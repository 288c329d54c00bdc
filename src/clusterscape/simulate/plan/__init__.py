"""A plan by time limits: when each waiting job starts at the latest if nobody else comes. Importing this compiles nothing."""

from clusterscape.simulate.plan.planning import NEVER_S, Plan, PlanJobs, PlanNodes, PlanTaken, plan_starts

__all__ = ["NEVER_S", "Plan", "PlanJobs", "PlanNodes", "PlanTaken", "plan_starts"]
