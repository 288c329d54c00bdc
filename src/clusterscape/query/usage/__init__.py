"""Usage over any period: GPU-hours, jobs, waits, money and budgets.

``answers``: the shapes of answers.
``measuring``: what held GPUs did, from stored samples.
``report``: a period in full, compared with those before, with findings.
``query``: usage by user, project and so on, and budgets.
"""

from clusterscape.analyze.usage.calendar import FORMS, CalendarStep
from clusterscape.query.usage.query import UsageQuery
from clusterscape.query.usage.report import UsageReportQuery

__all__ = ["FORMS", "CalendarStep", "UsageQuery", "UsageReportQuery"]
