"""Lightning with its own MLflow logger."""

import lightning
import torch
from lightning.pytorch.demos.boring_classes import BoringModel
from lightning.pytorch.loggers import MLFlowLogger


class Model(BoringModel):
    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        loss = self.loss(self.layer(batch))
        self.log("train_loss", loss)
        return loss


lightning.seed_everything(0, verbose=False)
logger = MLFlowLogger("of the logger", run_name="one", log_model=True, tracking_uri="sqlite:///mlflow.db")
trainer = lightning.Trainer(
    max_epochs=2,
    accelerator="cpu",
    enable_progress_bar=False,
    logger=logger,
    limit_train_batches=8,
    log_every_n_steps=2,
)
trainer.fit(Model())
