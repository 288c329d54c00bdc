"""A search with MLflow's autologging: child runs, a model, tables as artifacts."""

import mlflow
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

mlflow.sklearn.autolog(max_tuning_runs=2)
features, labels = make_classification(200, random_state=0)
search = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2]}, cv=2)
search.fit(features, labels)
print("best", search.best_params_)
