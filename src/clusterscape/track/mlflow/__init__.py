"""MLflow on both sides of a run: what its script says to MLflow is picked up, and whole runs are sent to an MLflow server.

Speaks MLflow's REST interface with the standard library: a tracker never imports MLflow.
"""
