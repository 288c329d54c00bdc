"""Logs and registers a model by hand."""

import mlflow
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

features, labels = make_classification(200, random_state=0)
mlflow.set_experiment("by hand")
with mlflow.start_run(run_name="first"):
    model = LogisticRegression(C=0.5).fit(features, labels)
    mlflow.log_params({"C": 0.5})
    mlflow.log_metric("accuracy", model.score(features, labels), step=1)
    info = mlflow.sklearn.log_model(model, name="m", input_example=features[:2])
    mlflow.register_model(info.model_uri, "kept")
print("accuracy", model.score(features, labels))
