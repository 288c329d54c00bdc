"""Job traces: statistics of their jobs, and predictions of run times and waits. Pure; one file per question.

``columns``: a job trace as arrays, and jobs grouped into classes.
``comparisons``: tests of claims that compare traces; the table is in docs/design/scheduling.md.
``describe``: the whole description as one document; a new measure is a file here and a field there.
``distributions``: quantiles, histogram and distribution function of values.
``failures``: how jobs ended.
``features``: model features of a job at a point in time.
``geometry``: arrivals, waits and occupancy over time.
``intervals``: values with 95 % intervals, verdicts on claims, and conformal calibration.
``kernels``: compiled loops over jobs.
``runtime``: the interface and accuracy of run time predictors, and predictors without a model.
``runtime_boosted``: gradient-boosted trees over features at submission.
``runtime_estimates``: predictions for every job of a trace, as a site would have made them.
``runtime_forest``: a quantile forest that predicts the distribution of run times.
``runtime_report``: comparison of run time predictors; a new one is a file ``runtime_*`` and an entry there.
``takeaways``: tests of claims about one trace; the table is in docs/design/scheduling.md.
``users``: user behavior: repeated jobs, and what users submit when the queue is long.
``wait_choice``: chooses the estimate of each wait and its interval, for live forecasts and backtests.
``wait_guesses``: simple guesses of a wait from waits of the past.
``wait_intervals``: levels, bins and coverage of intervals of waits.
``wait_kernels``: compiled loops of wait forecasts.
"""
