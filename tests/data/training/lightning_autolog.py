"""Lightning under MLflow's autologging."""

import lightning
import mlflow
import torch


class Model(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        loss = torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)


lightning.seed_everything(0, verbose=False)
mlflow.pytorch.autolog(log_models=True)
data = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
trainer = lightning.Trainer(
    max_epochs=3, accelerator="cpu", enable_progress_bar=False, logger=False, log_every_n_steps=1
)
trainer.fit(Model(), torch.utils.data.DataLoader(data, batch_size=16))
