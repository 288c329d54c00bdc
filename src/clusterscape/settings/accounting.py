"""Settings of usage accounting: time zone, prices, budgets."""

from datetime import date

from pydantic import Field, field_validator, model_validator

from clusterscape.model.timezones import find_timezone
from clusterscape.settings.section import Section


class PriceSettings(Section):
    """A price list; `DAY` is its first day, such as `"2026-01-01"`. It holds until the next one begins."""

    gpu_hour: float = Field(0.0, ge=0, description="Price of a GPU-hour.")
    gpu_models: dict[str, float] = Field({}, description="Price of a GPU-hour by GPU model, where it differs.")
    cpu_hour: float = Field(0.0, ge=0, description="Price of a CPU-core-hour.")
    energy_kwh: float = Field(0.0, ge=0, description="Price of a kWh, as far as energy is measured.")


class BudgetSettings(Section):
    """What a project or user may use within a time, in GPU-hours or in money."""

    project: str | None = Field(None, description="The project (account) that it is for.")
    user: str | None = Field(None, description="The user that it is for, if not a project.")
    since: date = Field(description="First day.")
    until: date = Field(description="Last day.")
    gpu_hours: float | None = Field(None, gt=0, description="Granted GPU-hours.")
    money: float | None = Field(None, gt=0, description="Granted money, in the currency of the price lists.")

    @model_validator(mode="after")
    def _check(self) -> "BudgetSettings":
        if (self.project is None) == (self.user is None):
            raise ValueError("a budget needs either a project or a user")
        if (self.gpu_hours is None) == (self.money is None):
            raise ValueError("a budget needs either gpu_hours or money")
        if self.until < self.since:
            raise ValueError("`until` is before `since`")
        return self


class AccountingSettings(Section):
    """Usage, cost and budgets; see the [guide](../guide/usage.md)."""

    timezone: str = Field("UTC", description="Time zone of days and months, such as Europe/Berlin.")
    currency: str = Field("EUR", max_length=8, description="Currency of prices and budgets.")
    prices: dict[date, PriceSettings] = Field({}, description="Price lists by their first day, see below.")
    budgets: dict[str, BudgetSettings] = Field({}, description="Budgets by name, see below.")

    @field_validator("timezone")
    @classmethod
    def _check_timezone(cls, value: str) -> str:
        find_timezone(value)
        return value
