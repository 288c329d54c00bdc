"""What every message of a site has in common: whose it is, and where its page is."""

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True, kw_only=True)
class Letterhead:
    """``page_url`` is where people reach the page; None: messages carry no links."""

    cluster: str
    page_url: str | None = None

    def workload_url(self, workload: str) -> str | None:
        """The page with the workload selected."""
        return (
            None
            if self.page_url is None
            else f"{self.page_url.rstrip('/')}/?select=workload:{quote(workload, safe=':')}"
        )
