"""Hugging Face accelerate with its MLflow tracker."""

import torch
from accelerate import Accelerator

torch.manual_seed(0)
accelerator = Accelerator(cpu=True, log_with="mlflow")
accelerator.init_trackers("accelerated", config={"lr": 0.01})
model = torch.nn.Linear(4, 1)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.01))
inputs, targets = torch.randn(32, 4), torch.randn(32, 1)
for step in range(10):
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    accelerator.log({"loss": loss.item()}, step=step)
accelerator.end_training()
