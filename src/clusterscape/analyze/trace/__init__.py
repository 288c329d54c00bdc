"""Span tables: matching, alignment, breakdowns, critical path, what-if, verdicts. Pure: tables in, tables out.

``activity``: when ranks are active: the overview of a trace, and a step without the idle time around it.
``aggregate``: level of detail: spans merged where they are too close to be distinguished, bands between rows, coarser copies.
``align``: one clock for all ranks.
``attribution``: what every rank spends each step with, in seconds that add up; add a new kind of time here.
``breakdown``: how a rank spends its step: compute, waiting, transfer, idle.
``cause_words``: causes in words: sentence, advice, evidence.
``causes``: what one rank does beyond its peers with equal work, what all do, and when; tests against chance.
``changes``: what-if questions on re-simulated steps; add a new kind here and in ``WhatIfChange`` of the routes.
``critical_path``: the chain of work that determines each step's length, across ranks.
``diff``: two runs of the same model compared.
``document``: the report as it is stored, and everything else that is stored of an analyzed trace.
``drawn``: spans as arrays ready to be drawn.
``evidence``: the spans that show a verdict.
``flow``: the execution flow: which operators are drawn alone, as a namespace, or stacked as "×n".
``flow_graph``: an operator graph ready to be drawn: blocks, classes of edges.
``flow_links``: which spans are which operators of the flow, on all ranks and in all steps.
``flow_spans``: an operator graph from spans and captured modules.
``intervals``: sets of time, as sorted arrays of [start, end).
``marey``: the enhanced Marey graph of a window.
``marey_kernels``: compiled loops of the Marey graph: nesting, merging, joining.
``match``: pairs the same collective across ranks and each send with its receive; finds the last rank to arrive.
``measures``: the measurements that verdicts are based on.
``pipeline``: stages, imbalance and the bubble.
``relations``: how each span relates to others (instance, partner, outlier); add a new per-span fact as one column here.
``report``: runs the whole analysis.
``resimulate``: steps re-simulated from the dependencies between ranks.
``run_wide``: verdicts about transfers and sequences of all ranks.
``savings``: the step re-simulated without a cause.
``unmarked``: the steps and micro-batches of timelines without markers.
``verdicts``: why the step is slow, ranked; the table is in docs/design/parallel.md.
``whatif``: the step as a dependency graph of recorded operators, with other durations.
``window_tables``: operators, links and curves of a window.
``work``: the amount of work of every rank and step, from recorded shapes.
"""
