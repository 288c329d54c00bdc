"""The part of MLflow's client that is recorded, as a package without MLflow: same module, class, methods and arguments."""

from pathlib import Path

CLIENT = '''\
"""Keeps what is logged in memory; the real client is in tests/integration."""

from types import SimpleNamespace


class TrackingServiceClient:
    def create_run(self, experiment_id, start_time=None, tags=None, run_name=None):
        self.count = getattr(self, "count", 0) + 1
        info = SimpleNamespace(run_id=f"{'ab'[self.count % 2]}{self.count:031d}", run_name=run_name or f"kind-owl-{self.count}",
                               experiment_id=experiment_id)
        return SimpleNamespace(info=info, data=SimpleNamespace(tags=dict(tags or {})))

    def get_experiment_by_name(self, name):
        return SimpleNamespace(experiment_id="7", name=name)

    def log_metric(self, run_id, key, value, timestamp=None, step=None, synchronous=True):
        if key == "refused":
            raise ValueError("refused by the server")

    def log_param(self, run_id, key, value, synchronous=True):
        return value

    def set_tag(self, run_id, key, value, synchronous=True):
        pass

    def log_batch(self, run_id, metrics=(), params=(), tags=(), synchronous=True):
        pass

    def log_artifact(self, run_id, local_path, artifact_path=None):
        pass

    def log_artifacts(self, run_id, local_dir, artifact_path=None):
        pass
'''


def write_client(folder: Path) -> None:
    """Put the package into a script's folder."""
    package = folder / "mlflow/tracking/_tracking_service"
    package.mkdir(parents=True)
    for above in (package, package.parent, package.parent.parent):
        (above / "__init__.py").touch()
    (package / "client.py").write_text(CLIENT)
