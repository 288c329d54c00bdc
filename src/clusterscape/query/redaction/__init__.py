"""Redaction: which viewer sees which names on a private site.

Two rules hold for every answer: queries by name read the stores within the viewer's scope (``scoped_records.py``), and every
answer is redacted by the markers of its type when it is sent (``redactor.py``). Routes only decide who may send a request.

``plans``: compiles a type into the function that redacts its values.
``pseudonyms``: pseudonyms of users, projects and workload ids.
``redactor``: redacts values by their markers, and defines viewer scopes.
``scoped_records``: the records and documents that a scope may read.
``scopes``: the queries of each scope, and the files that it may read.
"""

from clusterscape.query.redaction.plans import UnmarkedTextError
from clusterscape.query.redaction.redactor import ScopeRedactor, ViewerScope, scope_of

__all__ = ["ScopeRedactor", "UnmarkedTextError", "ViewerScope", "scope_of"]
