"""XGBoost under MLflow's autologging."""

import mlflow
import numpy as np
import xgboost

mlflow.xgboost.autolog()
random = np.random.default_rng(0)
features = random.normal(size=(200, 5))
data = xgboost.DMatrix(features, label=(features[:, 0] > 0).astype(int))
booster = xgboost.train(
    {"max_depth": 2, "nthread": 1}, data, num_boost_round=5, evals=[(data, "train")], verbose_eval=False
)
print("trees", booster.num_boosted_rounds())
