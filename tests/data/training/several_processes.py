"""Forked and spawned processes that log to one run, and one that is killed."""

import multiprocessing
import os
import signal

import mlflow


def work(run: str, rank: int) -> None:
    with mlflow.start_run(run_id=run):
        for at in range(5):
            mlflow.log_metric(f"loss_{rank}", 1 / (at + 1), step=at)
        if rank == 2:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    with mlflow.start_run() as run:
        mlflow.log_param("ranks", 3)
        for rank, method in enumerate(("fork", "spawn", "spawn")):
            process = multiprocessing.get_context(method).Process(target=work, args=(run.info.run_id, rank))
            process.start()
            process.join()
            print(rank, process.exitcode)
