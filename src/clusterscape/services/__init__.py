"""Background work and writes: promises, forecasts, simulations, and what users save. Queries only read.

``backtest``: tests of wait forecasts on job traces.
``context``: the dependencies of every service: the stores that it writes, and the context of queries.
``forecasts``: trains the models, logs wait forecasts, and records their outcomes.
``hang_alerts``: alerts on jobs that hang, and on their end.
``job_mail``: mails to users whose jobs ended.
``job_summaries``: summarizes ended jobs.
``job_traces``: uploads of job traces.
``promises``: the first planned start of every waiting workload, and every later slip with its cause.
``rules``: changes of rules, mutes and comments.
``saved_views``: saved views and insights.
``simulated_choices``: what a simulation computes, in a process of its own.
``simulation_answers``: the shapes of requests and answers of the simulator.
``simulation_results``: the chart data of a simulation.
``simulations``: simulations of job traces: run one at a time, can be stopped, cached by fingerprint.
``site_secret``: the secret of pseudonyms on a private site.
``whatif_runs``: what-ifs that run in the background.
"""

from dataclasses import replace

from clusterscape.query import Queries
from clusterscape.query.redaction.scoped_records import ScopedDocuments
from clusterscape.query.views import INSIGHT
from clusterscape.services.context import ServiceContext
from clusterscape.services.forecasts import ForecastKeeper
from clusterscape.services.job_mail.choices import MailChoices
from clusterscape.services.job_traces import JobTraceKeeper
from clusterscape.services.promises import PromiseKeeper
from clusterscape.services.rules import NoteKeeper, RuleKeeper
from clusterscape.services.saved_views import ViewKeeper
from clusterscape.services.simulations import Simulations
from clusterscape.services.whatif_runs import WhatIfRuns


class Services:
    """All services that write for a site or its viewers; ``promises`` and ``forecasts`` also run in the background."""

    def __init__(self, queries: Queries, context: ServiceContext) -> None:
        self.context = context
        self.promises = PromiseKeeper(context, queries.promises)
        self.forecasts = ForecastKeeper(context, queries.waits)
        self.simulations = Simulations(context, queries.job_traces)
        reads = context.reads
        self.what_if_runs = WhatIfRuns(queries.what_if, reads.work, is_private=reads.is_private)
        self._add_user_services(queries)

    def _add_user_services(self, queries: Queries) -> None:
        """Adds the services by which the viewers of ``queries`` save data."""
        context, redactor = self.context, queries.redactor
        may_comment = (lambda _: True) if redactor is None else redactor.covers_workload
        self.views = ViewKeeper(context)
        self.mail_choices = MailChoices(context)
        self.insights = ViewKeeper(context, INSIGHT)
        self.job_traces = JobTraceKeeper(context, queries.job_traces)
        self.rules = RuleKeeper(context, queries.watch, queries.rules)
        self.notes = NoteKeeper(context, queries.watch.book, may_comment=may_comment)

    def scoped_to(self, queries: Queries) -> "Services":
        """The services for the viewers of ``queries``: these, or scoped ones if the queries are scoped."""
        return self if queries.redactor is None else ScopedServices(self, queries)


class ScopedServices(Services):
    """The same services within one viewer scope: its viewers may write only their own documents."""

    def __init__(self, unscoped: Services, queries: Queries) -> None:
        assert queries.redactor is not None, "scoped queries have a redactor"
        documents = ScopedDocuments(unscoped.context.records, queries.redactor)
        self.context = replace(unscoped.context, reads=queries.context, check_free=documents.check_free)
        self.promises = unscoped.promises
        self.forecasts = unscoped.forecasts
        self.simulations = unscoped.simulations.within(queries.job_traces)
        self.what_if_runs = WhatIfRuns(
            queries.what_if,
            queries.context.work,
            is_private=True,
            scope=queries.redactor.code,
            unscoped=unscoped.what_if_runs,
        )
        self._add_user_services(queries)


__all__ = ["ServiceContext", "Services"]
