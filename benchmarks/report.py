"""How benchmarks print: one table, each row ours beside a peer, with the ratio and the budget."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Report:
    """Rows of one benchmark. Lower is better unless a row says otherwise."""

    title: str
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(
        self,
        what: str,
        ours: float,
        unit: str,
        peer: float | None = None,
        peer_name: str | None = None,
        *,
        budget: float | None = None,
        higher_is_better: bool = False,
    ) -> None:
        """One measurement."""
        better = None if peer is None else (ours / peer if higher_is_better else peer / ours)
        within = None if budget is None else (ours >= budget if higher_is_better else ours <= budget)
        self.rows.append(
            {
                "what": what, "ours": ours, "unit": unit, "peer": peer, "peer_name": peer_name,
                "times_better": better, "budget": budget, "within_budget": within,
            }
        )  # fmt: skip

    def text(self) -> str:
        """The table."""
        head = ("", "ours", "peer", "times better", "budget")
        body = [
            (
                row["what"],
                f"{row['ours']:,.4g} {row['unit']}",
                "" if row["peer"] is None else f"{row['peer']:,.4g} {row['unit']} ({row['peer_name']})",
                "" if row["times_better"] is None else f"{row['times_better']:.2f}×",
                "" if row["budget"] is None else f"{row['budget']:,.4g} {'kept' if row['within_budget'] else 'MISSED'}",
            )
            for row in self.rows
        ]
        widths = [max(len(line[i]) for line in (head, *body)) for i in range(len(head))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in (head, *body)
        ]
        return "\n".join([f"\n{self.title}", *lines])
