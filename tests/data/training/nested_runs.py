"""A search by hand: nested runs of the same name, two threads, one failed run, and asynchronous logging."""

from concurrent.futures import ThreadPoolExecutor

import mlflow
from mlflow.tracking import MlflowClient

mlflow.set_experiment("nested")
client = MlflowClient()
with mlflow.start_run(run_name="search") as parent:

    def trial(number: int) -> None:
        run = client.create_run(
            parent.info.experiment_id, run_name="trial", tags={"mlflow.parentRunId": parent.info.run_id}
        ).info.run_id
        for at in range(5):
            client.log_metric(run, "loss", 1 / (at + number + 1), step=at)
        client.set_terminated(run, "FAILED" if number == 1 else "FINISHED")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(trial, range(3)))
    mlflow.log_metrics({"best": 0.1}, step=0, synchronous=False)
    mlflow.flush_async_logging()
    try:
        mlflow.log_param("lr", 1)
        mlflow.log_param("lr", 2)
    except mlflow.MlflowException as error:
        print("refused:", type(error).__name__)
with mlflow.start_run(run_name="after"):
    mlflow.log_metric("loss", float("nan"))
