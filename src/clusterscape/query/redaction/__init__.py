"""Who reads whose names on a private site.

Two rules hold for every answer: stores are read within the viewer's scope where a question goes by names (``scoped_records.py``),
and every answer is redacted by the markers of its type when it leaves (``redactor.py``). Routes decide only who may ask at all.
"""

from clusterscape.query.redaction.plans import UnmarkedTextError
from clusterscape.query.redaction.redactor import Redactor
from clusterscape.query.redaction.viewer_scope import ViewerScope, scope_of

__all__ = ["Redactor", "UnmarkedTextError", "ViewerScope", "scope_of"]
