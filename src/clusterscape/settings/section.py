"""The base class of all settings sections."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Immutable; unknown keys are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)
