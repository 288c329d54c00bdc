"""Scheduling: describes job traces, explains and forecasts waits, and simulates changes of the live queue.

``description``: lists and descriptions of job traces.
``explaining``: why one workload waits, and what would start it sooner.
``forecast_why``: why a forecast is what it is: the estimate that was chosen, and what makes it uncertain (``WaitUncertainty``).
``history``: this cluster's history as a job trace.
``live_forecast``: start forecasts of waiting jobs: futures sampled from the models.
``live_queue``: the live queue: waiting jobs, their order, nodes and limits. All answers about waiting are based on it.
``models``: models that are trained on this cluster's history.
``placement_history``: which placement recent starts show, and what another one would have left free.
``priority_parts``: the factors of priorities.
``promises``: promised starts, and causes of slips (``SlipCause``).
``queue``: rows of the live queue, and the explanation of one workload.
``queue_answers``: the shapes of answers about the live queue.
``queue_plan``: a plan of the queue by time limits, with reservations and preemption.
``wait_bins``: forecast errors by job size and queue length.
``waiting``: start forecasts, of jobs before they are submitted and of waiting ones.
``waiting_log``: past forecasts and their outcomes.
``whatif``: what-ifs: reads the queue and samples futures.
``whatif_answers``: the shapes of what-if requests and answers.
``whatif_course``: which workload would hold which GPUs over time, for the picture.
``whatif_scenario``: the queue as a simulation scenario, unchanged or changed (``change_queue``).
``whatif_simulation``: computes a what-if, in a separate process (``MEASURES``).
``whatif_warnings``: side effects that a mean does not show.
"""
