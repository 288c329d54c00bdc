"""How benchmarks report: rows of ours and a peer, with the ratio and the budget, printed and kept for docs/benchmarks.md."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

KEPT_AT = "BENCHMARK_ROWS"
"""Environment variable of `make bench`: the file that a benchmark appends its report to."""


@dataclass(frozen=True)
class Row:
    """One measurement of ours, and the peer's where there is one."""

    what: str
    ours: float
    unit: str
    peer: float | None
    peer_name: str | None
    budget: float | None
    higher_is_better: bool

    @property
    def times_better(self) -> float | None:
        """Ratio to the peer, above 1 where ours is better."""
        if not self.peer or not self.ours:
            return None
        return self.ours / self.peer if self.higher_is_better else self.peer / self.ours

    @property
    def is_within_budget(self) -> bool | None:
        """None without a budget."""
        if self.budget is None:
            return None
        return self.ours >= self.budget if self.higher_is_better else self.ours <= self.budget

    def cells(self) -> tuple[str, str, str, str, str]:
        """As text: what, ours, peer, times better, budget."""
        better, within = self.times_better, self.is_within_budget
        return (
            self.what,
            f"{written(self.ours)} {self.unit}",
            "" if self.peer is None else f"{written(self.peer)} {self.unit} ({self.peer_name})",
            "" if better is None else f"{better:,.2f}×",
            "" if self.budget is None else f"{written(self.budget)} {'kept' if within else 'MISSED'}",
        )


def written(value: float) -> str:
    """A number in four digits, or in whole ones where it has more."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


HEAD = ("", "ours", "peer", "times better", "budget")


@dataclass
class Report:
    """Rows of one benchmark. Lower is better unless a row says otherwise."""

    title: str
    rows: list[Row] = field(default_factory=list)

    @classmethod
    def from_dict(cls, kept: dict[str, Any]) -> Self:
        """Reads a report that :meth:`publish` stored."""
        return cls(kept["title"], [Row(**row) for row in kept["rows"]])

    def add(
        self,
        label: str,
        ours: float,
        unit: str,
        peer: float | None = None,
        peer_name: str | None = None,
        *,
        budget: float | None = None,
        higher_is_better: bool = False,
    ) -> None:
        """One measurement."""
        self.rows.append(
            Row(
                label,
                float(ours),
                unit,
                None if peer is None else float(peer),
                peer_name,
                None if budget is None else float(budget),
                higher_is_better,
            )
        )

    def publish(self, *, as_json: bool = False) -> None:
        """Print the report, and store it where `make bench` expects it."""
        if place := os.environ.get(KEPT_AT):
            with Path(place).open("a", encoding="utf-8") as kept:
                kept.write(json.dumps(asdict(self)) + "\n")
        print(json.dumps([asdict(row) for row in self.rows]) if as_json else self.text(), flush=True)

    def text(self) -> str:
        """The table for a terminal."""
        body = [row.cells() for row in self.rows]
        widths = [max(len(line[i]) for line in (HEAD, *body)) for i in range(len(HEAD))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in (HEAD, *body)
        ]
        return "\n".join([f"\n{self.title}", *lines])
