"""Decoded columns of segments, kept for a while: who looks at one past minute looks at its neighbors next.

Bounded by bytes; the least recently used go first. Knows nothing of files: whoever reads a column puts it here.
"""

import threading
from collections import OrderedDict

from clusterscape.model.samples import Float64s, Int64s

KEPT_BYTES = 256 * 1024 * 1024

Column = Float64s | Int64s


class KeptColumns:
    """At most ``limit_bytes`` of columns by (file, name), none of which may be changed. Thread-safe."""

    def __init__(self, limit_bytes: int = KEPT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._columns: OrderedDict[tuple[str, str], Column] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def find(self, file: str, name: str) -> Column | None:
        """The column, where it is kept."""
        with self._lock:
            found = self._columns.get((file, name))
            if found is not None:
                self._columns.move_to_end((file, name))
            return found

    def keep(self, file: str, name: str, column: Column) -> None:
        """Keep the column, at the cost of others."""
        with self._lock:
            if (file, name) in self._columns or column.nbytes > self._limit_bytes:
                return
            self._columns[file, name] = column
            self._bytes += column.nbytes
            while self._bytes > self._limit_bytes:
                _, dropped = self._columns.popitem(last=False)
                self._bytes -= dropped.nbytes
