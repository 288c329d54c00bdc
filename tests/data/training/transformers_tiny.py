"""A tiny transformer made from its configuration, with the trainer's MLflow callback."""

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)
config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
data = [{"input_ids": torch.randint(0, 50, (8,)), "labels": torch.tensor(at % 2)} for at in range(32)]
arguments = TrainingArguments(
    "out",
    report_to=["mlflow"],
    num_train_epochs=2,
    logging_steps=2,
    save_strategy="no",
    use_cpu=True,
    disable_tqdm=True,
)
result = Trainer(BertForSequenceClassification(config), arguments, train_dataset=data).train()
print("steps", result.global_step)
