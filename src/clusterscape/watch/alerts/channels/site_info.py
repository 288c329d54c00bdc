"""The site in messages: the name of the cluster and links to its page."""

from dataclasses import dataclass
from urllib.parse import quote

from clusterscape.model.rules import find_node, is_no_workload


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteInfo:
    """``page_url``: the URL of the page; None: messages contain no links."""

    cluster: str
    page_url: str | None = None

    def workload_url(self, workload: str) -> str | None:
        """The page with the workload or node selected; for a source, just the page."""
        if self.page_url is None:
            return None
        page = f"{self.page_url.rstrip('/')}/"
        node = find_node(workload)
        if node is not None:
            return f"{page}?select=node:{quote(node, safe=':')}"
        return page if is_no_workload(workload) else f"{page}?select=workload:{quote(workload, safe=':')}"
