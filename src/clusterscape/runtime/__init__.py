"""A running server: builds its objects, runs its background loops and child processes. Commands in ``cli/`` start it.

``compile_kernels``: compiles the numba kernels; one small workload per area of ``warm_up.py``.
``compiling``: runs this compiler in a child process, once per version and machine.
``dask_cluster``: connects to a Dask cluster, and reads traces there.
``job_mail``: builds the mailer of ended jobs from the settings.
``processes``: priority, memory and end of child processes.
``replicas``: several processes over the same stores: leader election, and following changes of the others.
``server``: starts the server, collectors and background loops.
``site``: builds everything: a new collector is one line there.
``steady_clock``: a clock for retention that ignores sudden jumps forward.
``trace_importing``: imports traces in a child process with limits on memory and time.
``worker_process``: child processes for long computations, so that they do not delay requests.
"""
