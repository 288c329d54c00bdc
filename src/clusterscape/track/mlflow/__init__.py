"""MLflow integration: records what scripts log to MLflow, and sends whole runs to an MLflow server.

The tracker never imports MLflow: inside a script, calls of the script's own MLflow are recorded; servers are sent to by
MLflow's REST API, with the standard library.

``naming``: names of metrics and states in MLflow.
``recording``: records inside the script what MLflow's client logs.
``sending``: sends runs to MLflow servers.
``server``: client of an MLflow server's REST API: experiments, runs, batches, artifacts.
"""
