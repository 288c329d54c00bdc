"""What every message of a site has in common: whose it is, and where its page is."""

from dataclasses import dataclass
from urllib.parse import quote

from clusterscape.model.hardware import find_node, is_hardware


@dataclass(frozen=True, slots=True, kw_only=True)
class Letterhead:
    """``page_url`` is where people reach the page; None: messages carry no links."""

    cluster: str
    page_url: str | None = None

    def workload_url(self, workload: str) -> str | None:
        """The page with the workload selected, or the node that is named in its place; a source has nothing to select."""
        if self.page_url is None:
            return None
        page = f"{self.page_url.rstrip('/')}/"
        node = find_node(workload)
        if node is not None:
            return f"{page}?select=node:{quote(node, safe=':')}"
        return page if is_hardware(workload) else f"{page}?select=workload:{quote(workload, safe=':')}"
