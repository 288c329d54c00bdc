"""PyTorch without a framework: metrics by step, a text, a state dict and a model."""

import mlflow
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs, targets = torch.randn(64, 4), torch.randn(64, 1)
mlflow.pytorch.autolog()
with mlflow.start_run():
    mlflow.log_param("lr", 0.01)
    for step in range(50):
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mlflow.log_metric("loss", loss, step=step)
    mlflow.log_text("hello", "notes/hello.txt")
    torch.save(model.state_dict(), "weights.pt")
    mlflow.log_artifact("weights.pt")
    mlflow.pytorch.log_model(model, name="m", input_example=inputs[:2].numpy())
print("loss", round(loss.item(), 4))
