"""What every section of the settings is."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Unknown keys are refused; nothing changes after the start."""

    model_config = ConfigDict(extra="forbid", frozen=True)
