"""JAX on the processor."""

import jax
import jax.numpy as jnp
import mlflow


@jax.jit
def step(weights, inputs, targets):
    return weights - 0.1 * jax.grad(lambda w: jnp.mean((inputs @ w - targets) ** 2))(weights)


inputs = jax.random.normal(jax.random.key(0), (64, 3))
targets = inputs @ jnp.array([1.0, 2.0, 3.0])
weights = jnp.zeros(3)
with mlflow.start_run(tags={"kind": "jax"}):
    for at in range(20):
        weights = step(weights, inputs, targets)
        mlflow.log_metrics({"loss": jnp.mean((inputs @ weights - targets) ** 2)}, step=at)
    mlflow.log_dict({"weights": [round(float(w), 4) for w in weights]}, "weights.json")
print("trained")
