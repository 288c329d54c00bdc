"""The tracker: starts a training script, samples its hardware, spools its logs and metrics, and uploads them.

Imports are light, so that ``import clusterscape`` in a script is fast.
``startup`` contains the files that are put on the path of tracked Python processes.

``api``: ``clusterscape.run()``.
``capture``: describes the model and process groups of a PyTorch run, in addition to its trace.
``devices``: which GPUs and MIG instances a run may use.
``hang_looks``: takes looks at the ranks of a run: stacks, recorder, processes.
``hang_watch``: notices that a run makes no steps, has its ranks looked at, and shows the verdict.
``listeners``: sample hardware metrics.
``mlflow``: MLflow on both sides of a run.
``places``: folders and files of the tracker.
``plans``: lists of runs.
``process_states``: what a process waits for, and counters of its progress.
``processes``: starts processes at a barrier, follows them in /proc, and determines their outcome.
``recording_notice``: shows the user which data is recorded.
``redaction``: detects and masks secrets.
``repeat``: repeats a recorded run, and compares code and environment.
``reproduce``: records what is needed to repeat a run (variables: see docs/guide/runs.md).
``scheduling``: what the kernel's scheduler counts of a thread.
``slow_steps``: records steps of PyTorch scripts that are slower than usual; loaded by path.
``spool``: writes a run's file; the clock of a run.
``spooled``: reads the runs on this disk.
``trace``: ``clusterscape.trace``.
``tracked_run``: one run, from its folder to its end event.
``tracker``: runs commands together and follows them to their end.
``upload``: sends files of runs to a server.
"""

from clusterscape.track.api import Run, run

__all__ = ["Run", "run"]
