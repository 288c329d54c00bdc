"""MLflow integration: intercepts what scripts log to MLflow, and sends whole runs to an MLflow server.

Uses MLflow's REST API with the standard library: the tracker never imports MLflow.

``gateway``: a local endpoint that acts as an MLflow server for scripts.
``naming``: names of metrics and states in MLflow.
``sending``: sends runs to MLflow servers.
``server``: client of an MLflow server's REST API: experiments, runs, batches, artifacts.
``tracking_api``: the part of MLflow's API that the gateway implements.
"""
